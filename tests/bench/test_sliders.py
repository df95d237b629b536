"""What is measured of a slider is what the page does."""

import importlib.util

import pytest

from benchmarks import sliders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sliders.CHROMIUM is None or importlib.util.find_spec("playwright") is None,
        reason="Chromium and the package playwright, which drives it, are not both installed",
    ),
]


def test_moves_of_a_standing_and_of_a_playing_page_end_in_the_frame_that_shows_them():
    result = sliders.measure(["chaplygin_sleigh"], series=1, moves=4)
    assert [row["playing"] for row in result["rows"]] == [False, True]
    for row in result["rows"]:
        assert len(row["each"]) == 4
        assert not row["failed"]
        for move in row["each"]:
            assert 0 < move["computed"] <= move["drawn"] <= move["painted"]
        assert row["max"] == max(move["painted"] for move in row["each"])
    assert sliders.markdown(result).count("chaplygin_sleigh") == 2

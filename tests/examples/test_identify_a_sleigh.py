"""Parameters from noisy films: the Jacobian is exact, and the intervals cover as often as they say."""

from pathlib import Path

import numpy as np
import pytest

from worked import assert_page_shows, example

sleigh = example("07_identify_a_sleigh")


def test_the_estimates_of_one_film_are_near_the_truth_within_their_errors() -> None:
    x, error, iterations = sleigh.fit(sleigh.noisy(np.random.default_rng(3))[0])
    assert iterations <= 12
    assert np.all(np.abs(x - sleigh.TRUTH) < 4 * error)
    assert np.all(error < 0.05 * np.abs(sleigh.TRUTH))  # so that the line above can fail


def test_a_film_without_noise_gives_the_truth() -> None:
    x, error, _ = sleigh.fit(np.asarray(sleigh.film(sleigh.TRUTH)))
    np.testing.assert_allclose(x, sleigh.TRUTH, rtol=1e-10)
    assert np.all(error < 1e-9)


@pytest.mark.slow
@pytest.mark.all_pairs  # a minute of fits; the film without noise is fitted in the default run
def test_the_page_shows_what_the_script_prints_and_intervals_cover(tmp_path: Path, capsys) -> None:
    sleigh.main(tmp_path)
    output = capsys.readouterr().out
    assert_page_shows("identify_a_sleigh", output)
    assert (tmp_path / "identify.png").read_bytes().startswith(b"\x89PNG")
    line = output.splitlines()[-2]
    least, most = sleigh.limits(200)
    assert all(least <= int(word.strip(",")) <= most for word in line.split()[1::2])


def test_wrong_intervals_would_be_seen() -> None:
    """The limits are narrow enough to tell 95 % from 80 % and from 100 %."""
    least, most = sleigh.limits(200)
    assert 0.8 * 200 < least < 190 < most < 200

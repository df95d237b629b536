"""What is kept on disk for the next process: the same bits, never believed where there is a doubt."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from typer.testing import CliRunner

from noslip import System, simulate
from noslip.cli.app import app
from noslip.engine import kept, shelf, stored, told, written
from noslip.engine.backends import native, numpy_rows
from noslip.engine.program import TooLarge
from noslip.engine.translate import translate
from noslip.engine.translate.words import told_traced
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.numerics.linear import solve
from noslip.run import programs
from noslip.system.words import ARGUMENTS, OF_SYSTEM

STATE = ([0.2, 0.5, -0.1], [0.8, 0.6, 0.4])
X = jax.ShapeDtypeStruct((3,), float)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "cache"
    monkeypatch.setenv(shelf.VARIABLE, str(place))
    kept.forget()
    yield place
    kept.forget()


def particle(c=1.2):
    return System(
        lambda q, v, p: 0.5 * (1 + 0.1 * jnp.sin(c * q[0])) * jnp.dot(v, v) - p["k"] * q[1] ** 2,
        one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]),
        coordinates=("x", "y", "z"),
        parameters={"k": 1.3},
    )


def run(system):
    """As in a new process: nothing is in memory."""
    kept.forget()
    return simulate(system, RungeKutta4(), *STATE, step_size=0.1, steps=20, backend="native")


def names(place):
    return {path.name for path, _ in shelf.entries(place)}


def test_a_later_process_translates_and_compiles_nothing_and_has_the_same_bits(folder, monkeypatch):
    monkeypatch.setenv(shelf.VARIABLE, "")
    without = run(particle())
    monkeypatch.setenv(shelf.VARIABLE, str(folder))
    first = run(particle())
    assert len(names(folder)) >= 5

    def never(*args, **how):
        raise AssertionError("this was made already")

    with monkeypatch.context() as patch:
        for module in (programs, numpy_rows):
            patch.setattr(module, "translate", never)
        patch.setattr(native, "_compiled", never)
        second = run(particle())
    assert without == first == second

    for path, _ in shelf.entries(folder):  # damage is not believed, and mended
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    assert run(particle()) == without
    with monkeypatch.context() as patch:
        patch.setattr(native, "_compiled", never)
        assert run(particle()) == without


def test_no_flipped_bit_and_no_cut_is_believed(folder):
    shelf.put("words", b"some bytes")
    (name,) = names(folder)
    whole = (folder / name).read_bytes()
    for k in range(8 * len(whole)):
        data = bytearray(whole)
        data[k // 8] ^= 1 << k % 8
        (folder / name).write_bytes(data)
        assert shelf.find("words") is None
        assert not (folder / name).exists()
    for length in range(len(whole)):
        (folder / name).write_bytes(whole[:length])
        assert shelf.find("words") is None
    (folder / name).write_bytes(whole)
    (folder / name).chmod(0o600)
    assert shelf.find("words") == b"some bytes"
    (folder / name).rename(folder / shelf._name("others"))  # under the name of something else
    assert shelf.find("others") is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are POSIX's")
def test_what_others_could_have_written_is_not_used(folder, monkeypatch):
    shelf.put("words", b"some bytes")
    (name,) = names(folder)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.stat(folder / name).st_mode & 0o777 == 0o600
    for mode in (0o777, 0o770, 0o702):
        folder.chmod(mode)
        assert shelf.refusal(folder).endswith("can be written to by others")
        assert shelf.find("words") is None
    folder.chmod(0o700)
    assert shelf.find("words") == b"some bytes"
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert shelf.refusal(folder).endswith("belongs to another user")
        assert shelf.find("words") is None
    (folder / name).chmod(0o666)
    assert shelf.find("words") is None
    shelf.put("words", b"some bytes")
    (folder / name).rename(folder.parent / "elsewhere")
    (folder / name).symlink_to(folder.parent / "elsewhere")
    assert shelf.find("words") is None
    shelf.put("words", b"others")
    assert (folder.parent / "elsewhere").read_bytes().endswith(b"some bytes")  # no link is written through


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(folder, monkeypatch):
    folder.write_text("a file")
    assert shelf.refusal(folder) is not None
    shelf.put("words", b"some bytes")
    assert shelf.find("words") is None
    folder.unlink()
    shelf.put("words", b"some bytes")

    def refuse(*args):
        raise PermissionError(30, "read-only")

    monkeypatch.setattr(os, "open", lambda path, flags, mode=0: refuse() if flags & os.O_CREAT else os.dup(0))
    shelf.put("more", b"some bytes")
    assert len(names(folder)) == 1


def test_the_folder_is_bounded_and_what_was_used_last_stays(folder, monkeypatch):
    monkeypatch.setattr(shelf, "MOST", 1000)
    monkeypatch.setattr(shelf, "LESS", 700)
    for k in range(4):
        shelf.put(f"words {k}", bytes(150))
        os.utime(folder / shelf._name(f"words {k}"), (k, k))
    assert shelf.find("words 0") is not None  # used now
    shelf.put("words 4", bytes(150))
    shelf.put("words 5", bytes(150))
    kept_ones = [k for k in range(6) if shelf.find(f"words {k}") is not None]
    assert kept_ones == [0, 4, 5]
    assert sum(entry.st_size for _, entry in shelf.entries(folder)) <= 1000


def test_many_writers_and_readers_see_whole_entries_or_none(folder):
    def work(k):
        shelf.put("words", bytes([k]) * 5000)
        return shelf.find("words")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(64)))
    assert all(data is None or (len(data) == 5000 and len(set(data)) == 1) for data in found)
    assert len(names(folder)) == 1


@pytest.mark.slow
def test_two_processes_at_a_time_share_the_folder(folder):
    words = (
        "from noslip import simulate\nfrom noslip.systems import knife_edge as k\n"
        "from noslip.integrators import SemiImplicitDLA\n"
        "r = simulate(k.system(), SemiImplicitDLA(), *k.typical_state()[:2], step_size=0.1, steps=20)\n"
        "print(r.q.tobytes().hex())"
    )
    for _ in range(2):
        both = [
            subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        said = {process.communicate()[0] for process in both}
        assert len(said) == 1
        assert [process.returncode for process in both] == [0, 0]
    assert not any(name.startswith(".part-") for name in names(folder))


# ---- names ----------------------------------------------------------------------------------------------


def test_a_name_says_every_number_that_a_function_reads():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, np.nextafter(3.0, 4.0)])
    functions = [
        lambda x: x @ a,
        lambda x: x @ b,
        lambda x: 2.0 * x,
        lambda x: np.nextafter(2.0, 3.0) * x,
        lambda x: x * x,
        lambda x: lax.stop_gradient(x) * x,
        lambda x: lax.fori_loop(0, 3, lambda i, y: y * x, x),
        lambda x: lax.fori_loop(0, 4, lambda i, y: y * x, x),
        lambda x: x[::-1],
        lambda x: jnp.where(x[0] > 0, x, -x),
        lambda x: jnp.where(x[0] >= 0, x, -x),
        lambda x: jax.jacfwd(lambda y: jnp.concatenate([y, jnp.eye(3).at[0, 1].set(y[0]) @ y]))(x),
    ]
    said = [told_traced(f, X) for f in functions]
    assert len(set(said)) == len(said)
    assert said == [told_traced(lambda x, f=f: f(x), X) for f in functions]


def test_a_system_is_known_by_what_it_is_made_of():
    assert particle().told() == particle().told()
    assert particle().told() == particle().with_parameters({"k": 2.0}).told()
    assert particle(1.2).told() != particle(1.3).told()
    assert particle().told() != particle().with_orthogonal_forms().told()
    assert told.told(DiscreteGradient()) != told.told(DiscreteGradient("mean_value"))
    assert told.told(DiscreteGradient()) == told.told(DiscreteGradient())


def test_every_field_of_a_system_is_in_its_words():
    """Parameters are arguments of the code; `captured` is what the traces show; `scene` moves nothing."""
    told_of = {*OF_SYSTEM, *ARGUMENTS, "lagrangian", "constraint", "first_integrals", "inputs"}
    left = {f.name for f in fields(System)} - told_of
    assert left == {"parameters", "signals", "captured", "scene"}

    def pendulum(length):
        return System(
            lambda q, v, p: 0.5 * v @ v - q[1],
            holonomic=lambda q, p: (q @ q - length)[None],
            coordinates=("x", "y"),
        )

    assert pendulum(1.0).told() == pendulum(1.0).told() != pendulum(2.0).told()


def test_what_a_trace_does_not_show_has_no_name(folder):
    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda p, t: (p[0] ** 2, 3.0 * p[0] * t[0]))

    class Mine(RungeKutta4):
        pass

    for thing in (lambda x: x, Mine(), object(), square):
        with pytest.raises(told.CannotTell):
            told.told(thing)
    own = System(lambda q, v, p: 0.5 * jnp.dot(v, v) - square(q[0]), coordinates=("x", "y"))
    with pytest.raises(told.CannotTell):
        own.told()
    x, scalar = jax.ShapeDtypeStruct((2,), float), jax.ShapeDtypeStruct((), float)
    program = translate(lambda f, y: f[0].lagrangian(y, y, {}), (own, scalar), x)
    assert stored.program((own,), lambda: program) is program
    assert names(folder) == set()


def test_another_version_or_another_line_of_noslip_is_another_name(folder, tmp_path, monkeypatch):
    before = told.joined(("a",))
    told.surroundings.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(told, "__version__", "another")
        assert told.joined(("a",)) != before
    told.surroundings.cache_clear()
    assert told.joined(("a",)) == before
    (tmp_path / "a.py").write_text("x = 1\n")
    one = told.digest_of_files(tmp_path)
    (tmp_path / "a.py").write_text("x = 2\n")
    assert told.digest_of_files(tmp_path) != one
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert told.digest_of_files(tmp_path) != one


# ---- bytes ----------------------------------------------------------------------------------------------


def test_a_program_comes_back_as_it_was_written():
    def function(fixed, x):
        A = jnp.outer(x, x) + fixed * jnp.eye(3)
        y = lax.while_loop(lambda y: jnp.dot(y, y) > 1.0, lambda y: 0.5 * y * jnp.cos(y), x)
        z = lax.scan(lambda c, b: (solve(A, c) * b, c[0]), y, jnp.arange(40.0))
        return {"a": z, "b": (jnp.sum(x) > 0, jnp.argmax(x), jnp.inf)}

    program = translate(function, jax.ShapeDtypeStruct((), float), X)
    again = written.from_bytes(written.to_bytes(program))
    assert written.to_bytes(again) == written.to_bytes(program)
    assert again.nodes == program.nodes
    assert jax.tree.structure(again.shape) == jax.tree.structure(program.shape)


def test_a_later_process_knows_what_has_no_program(folder):
    asked = []

    def refuse():
        asked.append(1)
        raise TooLarge("the step is long")

    for _ in range(2):
        with pytest.raises(TooLarge, match="the step is long"):
            stored.program(("something",), refuse)
    assert asked == [1]


def test_words_that_are_no_program_are_not_read():
    good = translate(lambda f, x: x + 1.0, jax.ShapeDtypeStruct((), float), X)
    for data in (b"", b"nonsense", written.zlib.compress(b"[]"), written.zlib.compress(b'{"nodes": 3}')):
        with pytest.raises(written.Unreadable):
            written.from_bytes(data)
    said = written.json.loads(written.zlib.decompress(written.to_bytes(good)))
    hostile = [
        said | {"nodes": [["__import__('os')", [], "f", 0, None]]},
        said | {"outputs": ["__import__('os')"]},
        said | {"shape": ["of noslip", "os", "system", []]},
        said | {"shape": ["of noslip", "noslip.cli.app", "main", []]},
    ]
    for words in hostile:
        with pytest.raises(written.Unreadable):
            written.from_bytes(written.zlib.compress(written.json.dumps(words).encode()))


# ---- the command ----------------------------------------------------------------------------------------


def test_the_command_shows_and_clears_the_folder(folder, monkeypatch):
    call = CliRunner().invoke
    shelf.put("words", bytes(2**20))
    (folder / "mine.txt").write_text("not of the cache")
    shown = call(app, ["cache"])
    assert shown.exit_code == 0
    assert all(word in shown.output for word in (str(folder), "entries", "1.0 MB"))
    cleared = call(app, ["cache", "clear"])
    assert (cleared.exit_code, "1 entry removed" in cleared.output) == (0, True)
    assert names(folder) == set()
    assert (folder / "mine.txt").exists()
    monkeypatch.setenv(shelf.VARIABLE, "")
    assert "nothing is kept" in call(app, ["cache"]).output
    assert call(app, ["cache", "clear"]).exit_code == 2


def test_the_folder_is_among_the_users_caches(monkeypatch, tmp_path):
    monkeypatch.delenv(shelf.VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert shelf.folder() == tmp_path / ".cache" / "noslip"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert shelf.folder() == tmp_path / "other" / "noslip"

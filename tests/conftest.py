"""Systems that many tests use, written here so that the tests do not lean on the catalogue."""

import functools
import gc
import math
import os
import shutil
import tempfile
from importlib.metadata import version

import pytest

# The tests compile hundreds of small programs and run each briefly: compile quickly rather than well.
# XLA ends the process at a flag that it does not know, so this is for the version that has them.
if version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = " ".join(
        [
            os.environ.get("XLA_FLAGS", ""),
            "--xla_backend_optimization_level=0",
            "--xla_llvm_disable_expensive_passes=true",
            "--xla_cpu_parallel_codegen_split_count=1",
            "--xla_cpu_use_fusion_emitters=false",
        ]
    )

os.environ["NOSLIP_CACHE_DIR"] = ""  # nothing from earlier processes, but where a test asks for it

# XLA compiles the same text again for each new closure, and in each process: all of a run share what is made
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="noslip-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax.numpy as jnp
import typer.testing

from noslip import System
from noslip.engine.backends import native

# tracing makes many objects that live on: looking at them again and again took a tenth of the time
gc.set_threshold(50_000, 20, 10)
# typer's runner reads the types of all commands anew in each call, which takes longer than many of them
typer.testing._get_command = functools.cache(typer.testing._get_command)
native.OPTIMIZE = 0  # the bits are the same, which the tests of the engine see at the users' level


def _call(function, arguments):
    return function(**arguments)


# CPython takes memory for the frames of calls from the system in pieces of 16 kB, and gives one back as soon
# as it is empty: tracing goes up and down across such a border hundreds of thousands of times. A piece is as
# large as the frame that it begins with needs, and twice as large at most: below this one there is room for
# all others.
_call.__code__ = _call.__code__.replace(co_stacksize=70_000)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    _call(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    return True


def pytest_sessionfinish():
    gc.freeze()  # to look through all that was ever traced, before it goes anyway, takes five seconds


def pytest_unconfigure():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption(
        "--xla", action="store_true", help="let backend 'auto' be XLA; tests marked native are skipped"
    )
    parser.addoption("--site", help="the folder of the built documentation, for the tests of it")


def pytest_configure(config):
    if config.getoption("--xla"):
        from noslip.engine.program import TooLarge
        from noslip.run import many_native, pairing

        def never(system):
            raise TooLarge("the tests were told to use XLA")

        pairing.require_native = many_native.require_native = never


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Of a test or module marked `thorough` all cases of each test but the first are slow. Of a test marked
    `matrix` the slow ones off the diagonal are `all_pairs`."""
    seen, matrices = set(), {}
    for item in items:
        if item.get_closest_marker("matrix"):
            matrices.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if config.getoption("--xla") and item.get_closest_marker("native"):
            item.add_marker(pytest.mark.skip(reason="about native code"))
        name = item.nodeid.partition("[")[0]
        if item.get_closest_marker("thorough") and name in seen:
            item.add_marker(pytest.mark.slow)
        seen.add(name)

    for cases in matrices.values():
        for item in _off_the_diagonal(cases):
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.all_pairs)


def _off_the_diagonal(cases):
    """The diagonal meets every value of every argument: each value of the longest one, the k-th with the k-th
    of the combinations of the others, which begin again where there are fewer."""
    values = {}  # of each argument, in their order
    for item in cases:
        for name, value in item.callspec.params.items():
            values.setdefault(name, {}).setdefault(id(value), len(values[name]))
    longest = max(values, key=lambda name: len(values[name]))
    width = math.prod(len(known) for known in values.values()) // len(values[longest])
    for item in cases:
        place = 0
        for name, known in values.items():
            if name != longest:
                place = place * len(known) + known[id(item.callspec.params[name])]
        along = values[longest][id(item.callspec.params[longest])]
        if (along - place) % min(width, len(values[longest])):
            yield item


def particle_lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)


def particle_one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])


@pytest.fixture(scope="session")
def particle():
    """JS 6.4, LMS example 4.2: zdot = y xdot."""
    return System(
        particle_lagrangian,
        one_forms=particle_one_forms,
        coordinates=("x", "y", "z"),
        parameters={"k": 1.0},
        first_integrals={"energy_y": lambda q, v, p: v[1] ** 2 / 2 + p["k"] * q[1] ** 2},
    )


@pytest.fixture(scope="session")
def particle_state():
    return jnp.array([0.2, 0.5, -0.1]), jnp.array([0.8, 0.6, 0.4])


_compiled = []


@pytest.fixture(scope="session")
def compilations():
    """`with compilations() as count: ...; count()` is the number of XLA compilations inside."""
    import contextlib

    import jax

    def listen(event, duration, **_):
        if event.endswith("backend_compile_duration"):
            _compiled.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)

    @contextlib.contextmanager
    def counting():
        before = len(_compiled)
        yield lambda: len(_compiled) - before

    return counting

"""Kernels of a GPU without one: their members' functions run on the host, their PTX read and assembled."""

import re
import shutil
import subprocess

import jax
import mpmath
import numpy as np
import pytest

import driven
from engine.host_device import HostDevice
from noslip import systems
from noslip.engine.backends import native, ptx
from noslip.engine.program import Called, Loop, walk
from noslip.engine.translate import library, sweeps
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.run.events import Event
from noslip.run.given_events import checked
from noslip.run.many_gpu import GpuMembers
from noslip.run.many_native import NativeMembers
from noslip.run.member import Member, MemberGroup, MemberInputs
from noslip.run.observables import Watched
from noslip.system.inputs import Held

WATCH = (Watched("drift", "energy_error", ("max", "variance")),)


def members_of(name, count, h, stretch=0.1):
    module = systems.find(name)
    system, (q0, v0) = module.system(), map(np.asarray, module.typical_state()[:2])
    scale = np.linspace(1 - stretch, 1 + stretch, count)[:, None]
    return MemberInputs(system, MemberGroup(np.tile(q0, (count, 1)), scale * v0, {}, count), h, 0.0)


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("gearbox", DiscreteGradient()),
        ("rolling_disk_on_incline", SemiImplicitDLA()),
        pytest.param("gearbox", DiscreteGradient(frame="none"), marks=pytest.mark.slow),
        pytest.param("gearbox", EnergyCollocation(3), marks=pytest.mark.slow),
        pytest.param("quartic", DiscreteGradient(), marks=pytest.mark.slow),
        pytest.param("quartic", SemiImplicitDLA(), marks=pytest.mark.slow),
        pytest.param("chaplygin_sleigh", Composition(DiscreteGradient(), "suzuki4"), marks=pytest.mark.slow),
        pytest.param("chaplygin_sleigh", VelocityNonholonomic(0.5), marks=pytest.mark.slow),
        pytest.param("gearbox", GeneratingFunction(0.5), marks=pytest.mark.slow),
        pytest.param("gearbox", LobattoSpark(2), marks=pytest.mark.slow),
        pytest.param("rolling_disk_on_incline", RungeKutta4(), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_members_have_the_bits_of_native_code(name, method):
    inputs, member = members_of(name, 70, 0.1), Member(method, WATCH)  # three groups on two devices
    kernels = GpuMembers(member, inputs, [HostDevice(), HostDevice()])
    lanes = NativeMembers(member, inputs, 1)
    assert [share.groups for share in kernels.shares] == [1, 2]
    for stop in (7, 10):
        assert kernels.to(stop) == lanes.to(stop) == stop
    assert_same_bits(kernels.row(), lanes.row())
    assert_same_bits(kernels.final(), lanes.final())


def test_members_whose_step_calls_functions_have_these_bits_too(monkeypatch):
    monkeypatch.setattr(
        sweeps, "CALLED", 5
    )  # second derivatives of a bicycle are worth a call, not of a sleigh
    inputs, member = members_of("chaplygin_sleigh", 40, 0.05), Member(SemiImplicitDLA(), ())
    kernels = GpuMembers(member, inputs, [HostDevice()])
    step = kernels.code.programs["step"]
    assert any(isinstance(item, Called) for item in walk(step.main))
    kernels.to(9)
    monkeypatch.undo()
    lanes = NativeMembers(member, inputs, 1)
    lanes.to(9)
    assert_same_bits(kernels.final(), lanes.final())
    assert re.search(r"\.func .*function", ptx.compiled(kernels.code.text("usual"), 90))


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_members_with_inputs_have_these_bits_too(own):
    count, steps = 70, 10
    values = np.random.default_rng(0).normal(size=(2, count, steps))
    table = Held({"left": values[0] if own else values[0, 0], "right": values[1, 0]})
    group = MemberGroup(driven.Q0, np.linspace(0.9, 1.1, count)[:, None] * driven.V0, {}, count)
    inputs = MemberInputs(driven.ROBOT, group, 0.1, 0.0, table)
    member = Member(SemiImplicitDLA(), WATCH)
    kernels = GpuMembers(member, inputs, [HostDevice(), HostDevice()])
    lanes = NativeMembers(member, inputs, 1)
    for stop in (4, 7, 10):
        assert kernels.to(stop) == lanes.to(stop) == stop
        assert_same_bits(kernels.row(), lanes.row())
    assert_same_bits(kernels.final(), lanes.final())


def test_members_that_need_newton_or_fail_have_these_bits_too():
    inputs, member = members_of("nonholonomic_particle", 40, 2.0, 0.9), Member(SemiImplicitDLA(), WATCH)
    kernels, lanes = GpuMembers(member, inputs, [HostDevice()]), NativeMembers(member, inputs, 1)
    needed = []
    for stop in (3, 4, 12):
        kernels.to(stop)
        needed.append(int(kernels.shares[0].count.get((1,))[0]))
        lanes.to(stop)
    final = kernels.final()
    assert_same_bits(final, lanes.final())
    assert_same_bits(kernels.row(), lanes.row())
    failed = int(np.sum(final.carry.interval.status != 0))
    assert max(needed) > failed, "some member must go on by Newton's method alone"


def test_members_in_which_events_happen_have_these_bits_too():
    """A particle that bounces at one wall and ends at another, members at different times or never."""
    count = 40
    watch = checked(
        systems.find("nonholonomic_particle").system(),
        {
            "wall": Event(lambda q, v, p: q[1] - 0.55, reset=lambda q, v, p: (q, -0.8 * v)),
            "end": Event(lambda q, v, p: q[0] + 0.6, direction=-1, terminal=True),
        },
    )
    member, inputs = (
        Member(SemiImplicitDLA(), WATCH, watch),
        members_of("nonholonomic_particle", count, 0.1, 0.9),
    )
    kernels, lanes = GpuMembers(member, inputs, [HostDevice()]), NativeMembers(member, inputs, 1)
    left = []
    for stop in (3, 12, 40):
        kernels.to(stop)
        left.append(int(kernels.shares[0].count.get((1,))[0]))
        lanes.to(stop)
        assert_same_bits(kernels.row(), lanes.row())
    final, other = kernels.final(), lanes.final()
    ended = final.carry.watch.stopped >= 0  # a lane that has ended goes on beside the others and forgets why
    for x in (final, other):
        x.carry.watch.which[ended] = -1
    assert_same_bits(final, other)
    assert 0 < left[0] < kernels.shares[0].members, "the kernel of usual steps must run some members alone"
    happened = final.sums["event_wall"]["count"]
    assert set(np.minimum(happened, 2)) == {0, 1, 2}
    assert 0 < np.sum(ended) < count


def test_a_resumed_run_has_the_same_bits():
    inputs, member = members_of("gearbox", 5, 0.1), Member(SemiImplicitDLA(), WATCH)
    whole, first, second = (GpuMembers(member, inputs, [HostDevice()]) for _ in range(3))
    whole.to(9)
    first.to(4)
    second.resume(first.final(), 4)
    second.to(9)
    assert_same_bits(second.final(), whole.final())


def test_the_usual_step_has_no_rare_loop_and_fewer_operations():
    code = GpuMembers(Member(DiscreteGradient(), ()), members_of("gearbox", 1, 0.1), [HostDevice()]).code
    whole, usual = code.programs["step"], code.usual_step
    assert any(isinstance(item, Loop) and item.rare for item in walk(whole.main))
    assert not any(isinstance(item, Loop) and item.rare for item in walk(usual.main))
    assert usual.operations() < 0.7 * whole.operations()


@pytest.mark.parametrize("capability", [60, 90, 120])
def test_the_ptx_rounds_as_the_host_does(capability):
    """No product is contracted with a sum that LLVM was not told of, and nothing is flushed to zero."""
    code = GpuMembers(Member(SemiImplicitDLA(), ()), members_of("gearbox", 1, 0.1), [HostDevice()]).code
    text = ptx.compiled(code.text("usual"), capability)
    assert f".target sm_{min(capability, 90)}" in text
    assert ".visible .entry run(" in text
    written = code.text("usual").count("call double @llvm.fma.f64")
    assert 0 < text.count("fma.rn.f64") <= written
    assert not re.search(r"(div|sqrt)\.(approx|full)|\.ftz", text)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize("name", ["save", "usual", "whole"])
def test_the_ptx_can_be_assembled(name, tmp_path):
    code = GpuMembers(Member(SemiImplicitDLA(), WATCH), members_of("gearbox", 1, 0.1), [HostDevice()]).code
    (tmp_path / "kernel.ptx").write_text(ptx.compiled(code.text(name), 90))
    done = subprocess.run(
        ["ptxas", "-arch=sm_90", str(tmp_path / "kernel.ptx"), "-o", str(tmp_path / "kernel.cubin")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_of_huge_numbers(name):
    rng = np.random.default_rng(0)
    x = rng.choice([-1, 1], 300) * 2.0 ** rng.uniform(30, 1023.9, 300)
    worst = [6381956970095103 * 2.0**797, -(2.0**30), 1.7976931348623157e308]  # the first nearly k pi/2
    x = np.concatenate([x, worst, [np.inf, -np.inf, np.nan]])
    out = np.zeros(len(x))
    native.map_function(library.program(name), 1)(np.zeros(1, np.int64), x, out, len(x))
    with mpmath.workprec(1200):
        exact = np.array([float(getattr(mpmath, name)(mpmath.mpf(value))) for value in x[:-3]])
    assert np.max(np.abs(out[:-3] - exact) / np.spacing(np.abs(exact))) < 2
    assert np.isnan(out[-3:]).all()

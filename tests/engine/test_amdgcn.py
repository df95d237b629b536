"""The kernels as text for AMD's GPUs; nobody runs them here."""

import re

import jax
import numpy as np
import pytest

from noslip.engine.backends import amdgcn, ptx
from noslip.engine.program import CannotTranslate
from noslip.engine.translate import translate
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.numerics import linear
from noslip.run.many_gpu import _GpuCode
from noslip.run.many_native import MemberPrograms
from noslip.run.member import Member, MemberGroup, MemberInputs
from noslip.systems import gearbox


def test_a_time_loop_becomes_one_kernel_that_calls_nothing_outside():
    q, v = (np.asarray(x)[None] for x in gearbox.typical_state())
    inputs = MemberInputs(gearbox.system(), MemberGroup(q, v, {}, 1), 0.1, 0.0)
    code = _GpuCode(MemberPrograms(Member(DiscreteGradient(), ()), inputs.shape, jax.tree.structure(None)))
    text = amdgcn.assembled(code.text("usual"))
    assert text.count(".amdhsa_kernel run") == 1
    assert "v_fma_f64" in text  # rounded once, as on the host
    assert "atomic_add_x2" in text  # members that are left
    assert set(re.findall(r"([\w.]+)@rel32", text)) <= set(re.findall(r"^([\w.]+):", text, re.MULTILINE))
    assert not re.search(r"\w+@gotpcrel", text)


def test_what_needs_memory_of_a_thread_is_refused():
    n = ptx.UNROLLED + 2
    a, b = (jax.ShapeDtypeStruct(shape, float) for shape in ((n, n), (n,)))
    program = translate(lambda _, x: linear.solve(*x), None, (a, b))
    with pytest.raises(CannotTranslate, match="AMD's GPUs must fit into registers"):
        amdgcn.assembled(ptx.map_kernel(program))

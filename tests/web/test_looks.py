"""What the page draws is the scene of the system, compiled."""

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, systems
from noslip.engine.backends import native
from noslip.scenes import Mark, Scene, scene
from noslip.web.content import _own_programs, system_data
from noslip.web.looks import looks_of
from noslip.web.subjects import subject


def compiled(system, looks, q, lam, t):
    """The numbers by machine code, which those of WebAssembly equal in every bit."""
    _, program, tables = _own_programs(system, looks)
    values = tables["look"].pack((q, lam, t), 1, 1)
    fixed = tables["system"].pack(system, 1, 1)
    out = np.zeros((1, len(program.outputs), 1))
    native.map_function(program, 1)(fixed, values, out, 1)
    return out.ravel()


@pytest.mark.parametrize("name", ["rolling_disk", "suslov"])
def test_the_numbers_of_a_page_are_those_of_the_scene(name):
    module = systems.find(name)
    system = module.system()
    q, lam = np.asarray(module.typical_state()[0], float), np.linspace(0.5, 1.5, system.m + system.k)
    stage = scene(system)
    wanted = np.concatenate([np.ravel(x[0]) for x in stage.rows(q[None], lam[None], np.array([0.3]))])
    made = compiled(system, looks_of(system, stage), q, lam, 0.3)
    np.testing.assert_allclose(made, wanted, rtol=1e-13, atol=1e-13)


def test_a_scene_without_a_scalar_form_is_a_point():
    def draw(q, p):
        return Scene(marks=(Mark(jnp.array([jnp.sort(q)[0], 0.0, jnp.linalg.svd(jnp.outer(q, q))[1][0]])),))

    system = System(lambda q, v, p: jnp.dot(v, v) / 2, coordinates=("x", "y"), scene=draw)
    source = systems.open_source(system)
    data = system_data(subject(source, system, {}, np.array([1.0, 2.0]), np.array([0.0, 1.0])))
    assert data["parts"]["axes"] == ["x", "y", ""]

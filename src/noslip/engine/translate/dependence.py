"""Whether a function uses an argument, read off its scalar program instead of guessed from samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import numpy as np

from noslip.engine.program import CannotTranslate, PyTree, uses, walk
from noslip.engine.translate.lower import translate

LIMIT = 300_000  # operations; far above what is compiled, since nothing here is


def depends_on(function: Callable[..., PyTree], position: int, *arguments: PyTree) -> bool:
    """Whether any output is computed from the argument at `position`.

    False is certain, for finite values; True may be wrong where the value cancels in a way that the program
    does not see, passes through a loop, or where the function has no scalar program. Arguments may be arrays,
    trees of them, or their shapes.
    """
    try:
        program = translate(lambda _, x: function(*x), (), arguments, expand=False, limit=LIMIT)
    except CannotTranslate:
        return True
    sizes = [sum(math.prod(np.shape(leaf)) for leaf in jax.tree.leaves(x)) for x in arguments]
    first = sum(sizes[:position])
    own = set(program.inputs[first : first + sizes[position]])
    items = (*walk(program.setup), *walk(program.main))
    return not own.isdisjoint({*program.outputs, *(a for item in items for a in uses(program.nodes, item))})

"""The claims tests as functions, for the integrators and systems of this package and of other people.

`check_integrator(X)` holds a method (a class in all its variants, or one instance) to its `order` and
`preserves`; `check_system(s)` holds a system to mechanics. Both raise `CheckFailed`, an AssertionError, with
one sentence.
"""

from noslip.testing.integrators import check_integrator
from noslip.testing.systems import check_system
from noslip.testing.verdict import CheckFailed

__all__ = ["CheckFailed", "check_integrator", "check_system"]

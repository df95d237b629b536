"""Mathematics without mechanics: linear algebra, collocation, compositions, discrete gradients, sums."""

from noslip.numerics import forks  # noqa: F401  what it does, it does when it is imported

"""What expressions cost where products are dear and sums are not, as in a Taylor method: there each product,
quotient or function of what varies is a convolution of its order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Prices:
    """The expressions met so far, and how many of them are dear."""

    dear: int = 0
    known: dict[Hashable, Priced] = field(default_factory=dict)  # numbers among them

    def make(self, name: str, *parts: Priced, dear: bool) -> Priced:
        key = (name, *map(id, parts))
        if key not in self.known:
            varies = sum(part.varies for part in parts)
            self.dear += dear and varies > (name == "*")
            self.known[key] = Priced(self, varies > 0, parts)
        return self.known[key]

    def number(self, value: float) -> Priced:
        key = ("number", value)
        if key not in self.known:
            self.known[key] = Priced(self, False)
        return self.known[key]

    def input(self, varies: bool) -> Priced:
        return Priced(self, varies)

    def function(self, name: str, *parts: Priced) -> Priced:
        return self.make(name, *parts, dear=True)


@dataclass(eq=False)
class Priced:
    """An expression of which only that is known; it holds its parts, whose numbers must stay theirs."""

    prices: Prices
    varies: bool
    parts: tuple[Priced, ...] = ()

    def __add__(self, other: Priced) -> Priced:
        return self.prices.make("+", self, other, dear=False)

    def __sub__(self, other: Priced) -> Priced:
        return self.prices.make("-", self, other, dear=False)

    def __mul__(self, other: Priced) -> Priced:
        return self.prices.make("*", *sorted((self, other), key=id), dear=True)

    def __truediv__(self, other: Priced) -> Priced:
        return self.prices.make("/", self, other, dear=other.varies)

    def __neg__(self) -> Priced:
        return self.prices.make("-", self, dear=False)

"""The algebra of a scalar program: constants, exact zeros and ones fold as nodes are made."""

from __future__ import annotations

import math
from collections.abc import Callable

from noslip.engine.program import CannotTranslate, Number
from noslip.engine.translate.placement import Blocks

KINDS = {"f": float, "i": int, "b": bool}


class Builder(Blocks):
    """Makes simplified nodes."""

    # ---- arithmetic -------------------------------------------------------------------------------
    def negated(self, a: int) -> int | None:
        """x, if `a` is -x."""
        node = self.nodes[a]
        return node.args[0] if node.op == "neg" else None

    def neg(self, a: int) -> int:
        node = self.nodes[a]
        if node.value is not None:
            return self.const(-node.value)
        if node.op == "neg":
            return node.args[0]
        if node.op == "sub":  # -(x - y) = y - x, exactly
            return self.raw("sub", "f", node.args[1], node.args[0])
        return self.raw("ineg" if node.kind == "i" else "neg", node.kind, a)

    def add(self, a: int, b: int) -> int:
        first, second = self.nodes[a], self.nodes[b]
        if first.kind != "f" or second.kind != "f":
            return self._integer("iadd", a, b)
        x, y = first.value, second.value
        if x is not None:
            if y is not None:
                return self.const(x + y)
            if x == 0:
                return b
        elif y == 0:
            return a
        if second.op == "neg":
            return self.sub(a, second.args[0])
        if first.op == "neg":
            return self.sub(b, first.args[0])
        if a == b:
            return self.mul(self.const(2.0), a)
        return self.raw("add", "f", a, b)

    def sub(self, a: int, b: int) -> int:
        first, second = self.nodes[a], self.nodes[b]
        if first.kind != "f" or second.kind != "f":
            return self._integer("isub", a, b)
        x, y = first.value, second.value
        if y is not None:
            if x is not None:
                return self.const(x - y)
            if y == 0:
                return a
        elif x == 0:
            return self.neg(b)
        if second.op == "neg":
            return self.add(a, second.args[0])
        if first.op == "neg":
            return self.neg(self.add(first.args[0], b))
        # y - x is there already: x - y is its negative, exactly, and skew matrices stay skew
        key, home = ("sub", (b, a)), max(first.home, second.home, 0)
        for block in self.blocks[home : max(home, self.floor) + 1]:
            if (found := block.known.get(key)) is not None:
                return self.raw("neg", "f", found)
        return self.raw("sub", "f", a, b)

    def mul(self, a: int, b: int) -> int:
        first, second = self.nodes[a], self.nodes[b]
        if first.kind != "f" or second.kind != "f":
            return self._integer("imul", a, b)
        if second.value is not None:
            a, b, first, second = b, a, second, first
        if first.value is not None:
            return self._multiple(first.value, a, b)
        m, n = (node.args[0] if node.op == "neg" else None for node in (first, second))
        if m is not None or n is not None:
            product = self.mul(a if m is None else m, b if n is None else n)
            return product if m is not None and n is not None else self.neg(product)
        if first.op == "mul" and second.op == "mul":
            left, right = self._scaled(a), self._scaled(b)
            if left is not None and right is not None:  # (c x) (d y) = (c d) (x y)
                return self.mul(self.const(left[0] * right[0]), self.mul(left[1], right[1]))
        return self.raw("mul", "f", a, b)

    def _multiple(self, x: Number, a: int, b: int) -> int:
        """b times the number x, which is the node a."""
        y = self.nodes[b].value
        if y is not None:
            return self.const(x * y)
        if x == 0:
            return self.const(0.0)
        if x == 1:
            return b
        if x == -1:
            return self.neg(b)
        if (inner := self._scaled(b)) is not None:
            return self.mul(self.const(x * inner[0]), inner[1])
        if (n := self.negated(b)) is not None:
            return self.mul(self.const(-x), n)
        return self.raw("mul", "f", a, b)

    def _scaled(self, a: int) -> tuple[float, int] | None:
        """(c, x), if `a` is c x with a constant c."""
        node = self.nodes[a]
        if node.op == "mul":
            for c, x in (node.args, node.args[::-1]):
                if (factor := self.nodes[c].value) is not None:
                    return factor, x
        return None

    def div(self, a: int, b: int) -> int:
        x, y = self.value(a), self.value(b)
        if self.nodes[a].kind == "i":
            if x is not None and y:
                return self.const(int(x / y) if abs(x) < 2**52 else _quotient(int(x), int(y)))
            return self._guarded("idiv", a, b)
        if x is not None and y is not None and y != 0:
            return self.const(x / y)
        if x == 0:
            return a
        if y is not None and y != 0 and abs(math.frexp(y)[0]) == 0.5:  # a power of two
            return self.mul(self.const(1 / y), a)
        m, n = self.negated(a), self.negated(b)
        if m is not None or n is not None:
            ratio = self.div(a if m is None else m, b if n is None else n)
            return ratio if m is not None and n is not None else self.neg(ratio)
        return self.raw("div", "f", a, b)

    def rem(self, a: int, b: int) -> int:
        x, y = self.value(a), self.value(b)
        if self.nodes[a].kind == "i":
            if x is not None and y:
                return self.const(x - y * _quotient(int(x), int(y)))
            return self._guarded("irem", a, b)
        if x is not None and y and math.isfinite(x):
            return self.const(math.fmod(x, y))
        return self.raw("libm:fmod", "f", a, b)

    def _guarded(self, op: str, a: int, b: int) -> int:
        """Whole-number division; a zero divisor gives what 1 would, instead of a trap."""
        safe = self.select(self.compare("eq", b, self.const(0)), self.const(1), b)
        return self.raw(op, "i", a, safe)

    def fma(self, a: int, b: int, c: int) -> int:
        """a b + c rounded once: for algorithms that need it."""
        return self.raw("fma", "f", a, b, c)

    def _integer(self, op: str, a: int, b: int) -> int:
        kinds = {self.nodes[a].kind, self.nodes[b].kind}
        if kinds != {"i"}:  # JAX converts before it computes; what computes by itself is not known here
            raise CannotTranslate(f"'{op}' of numbers of two types has no scalar form")
        x, y = self.value(a), self.value(b)
        if x is not None and y is not None:
            exact = {"iadd": x + y, "isub": x - y, "imul": x * y}[op]
            return self.const((exact + 2**63) % 2**64 - 2**63)  # wraps around as machines do
        if (y == 0 and op in ("iadd", "isub")) or (y == 1 and op == "imul"):
            return a
        if (x == 0 and op == "iadd") or (x == 1 and op == "imul"):
            return b
        return self.raw(op, "i", a, b)

    def bits(self, op: str, a: int, b: int) -> int:
        """Operations on the bits of whole numbers: iand, ior, ixor, ishl, iashr, ilshr."""
        return self.raw(op, "i", a, b)

    def unary(self, op: str, a: int, exact: Callable[[float], float]) -> int:
        x = self.value(a)
        if x is None or not math.isfinite(x):
            return self.raw(op, "f", a)
        return self.const(exact(x))

    def abs(self, a: int) -> int:
        if self.nodes[a].kind == "i":
            return self.select(self.compare("lt", a, self.const(0)), self.neg(a), a)
        inner = self.nodes[a]
        if inner.op in ("neg", "abs"):
            return self.abs(inner.args[0]) if inner.op == "neg" else a
        return self.unary("abs", a, abs)

    def sqrt(self, a: int) -> int:
        return self.unary("sqrt", a, lambda x: math.sqrt(x) if x >= 0 else math.nan)

    def power(self, a: int, exponent: int) -> int:
        """a to a whole power by repeated squaring."""
        if exponent < 0:
            return self.div(self.const(1.0), self.power(a, -exponent))
        if exponent == 0:
            return self.const(1.0)
        half = self.power(a, exponent // 2)
        square = self.mul(half, half) if exponent > 1 else self.const(1.0)
        return self.mul(square, a) if exponent % 2 else square

    # ---- truth ------------------------------------------------------------------------------------
    def compare(self, op: str, a: int, b: int) -> int:
        if op in ("gt", "ge"):
            return self.compare({"gt": "lt", "ge": "le"}[op], b, a)
        x, y = self.value(a), self.value(b)
        if x is not None and y is not None:
            return self.const({"lt": x < y, "le": x <= y, "eq": x == y, "ne": x != y}[op])
        if self.nodes[a].kind == "b":
            if op in ("lt", "le"):
                return self.both(self.invert(a), b) if op == "lt" else self.either(self.invert(a), b)
            differ = self.xor(a, b)
            return self.invert(differ) if op == "eq" else differ
        if a == b and self.nodes[a].kind == "i":
            return self.const(op in ("le", "eq"))
        return self.raw(op, "b", a, b)

    def both(self, a: int, b: int) -> int:
        x, y = self.value(a), self.value(b)
        if x is False or y is False:
            return self.const(False)
        if x is True or a == b:
            return b
        return a if y is True else self.raw("and", "b", a, b)

    def either(self, a: int, b: int) -> int:
        x, y = self.value(a), self.value(b)
        if x is True or y is True:
            return self.const(True)
        if x is False or a == b:
            return b
        return a if y is False else self.raw("or", "b", a, b)

    def xor(self, a: int, b: int) -> int:
        x, y = self.value(a), self.value(b)
        if x is not None and y is not None:
            return self.const(x != y)
        if x is not None:
            return self.invert(b) if x else b
        if y is not None:
            return self.invert(a) if y else a
        return self.const(False) if a == b else self.raw("xor", "b", a, b)

    def invert(self, a: int) -> int:
        node = self.nodes[a]
        if node.value is not None:
            return self.const(not node.value)
        return node.args[0] if node.op == "not" else self.raw("not", "b", a)

    def select(self, condition: int, yes: int, no: int) -> int:
        chosen = self.value(condition)
        if chosen is not None:
            return yes if chosen else no
        if yes == no:
            return yes
        node = self.nodes[condition]
        if node.op == "not":
            return self.select(node.args[0], no, yes)
        inner = self.nodes[yes]
        if inner.op == "select" and inner.args[2] == no:  # c ? (d ? x : y) : y
            return self.select(self.both(condition, inner.args[0]), inner.args[1], no)
        inner = self.nodes[no]
        if inner.op == "select" and inner.args[1] == yes:  # c ? x : (d ? x : y)
            return self.select(self.either(condition, inner.args[0]), yes, inner.args[2])
        kind = self.nodes[yes].kind
        if kind == "b":
            x, y = self.value(yes), self.value(no)
            if x is not None and y is not None:
                return condition if x else self.invert(condition)
            return self.either(self.both(condition, yes), self.both(self.invert(condition), no))
        return self.raw("select", kind, condition, yes, no)

    def larger(self, a: int, b: int) -> int:
        """max(a, b); NaN if either is."""
        return self._extreme("max", "lt", a, b)

    def smaller(self, a: int, b: int) -> int:
        return self._extreme("min", "gt", a, b)

    def _extreme(self, op: str, worse: str, a: int, b: int) -> int:
        if a == b:
            return a
        if self.nodes[a].kind == "b":
            return self.either(a, b) if op == "max" else self.both(a, b)
        if self.nodes[a].kind == "i":
            return self.select(self.compare(worse, a, b), b, a)
        x, y = self.value(a), self.value(b)
        if x is not None and y is not None and not (math.isnan(x) or math.isnan(y)):
            return self.const(max(x, y) if op == "max" else min(x, y))
        return self.raw(op, "f", a, b)

    def convert(self, a: int, kind: str) -> int:
        node = self.nodes[a]
        if node.kind == kind:
            return a
        if node.value is not None and (kind != "i" or math.isfinite(node.value)):
            return self.const(KINDS[kind](node.value))
        if kind == "b":
            return self.compare("ne", a, self.const(KINDS[node.kind](0)))
        if node.kind == "b":
            return self.select(a, self.const(KINDS[kind](1)), self.const(KINDS[kind](0)))
        return self.raw({"f": "itof", "i": "ftoi"}[kind], kind, a)


def _quotient(x: int, y: int) -> int:
    """Whole-number division that rounds towards zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

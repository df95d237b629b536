"""Numbers of WebAssembly as vectors of two equal ones.

Its fused multiply-add is one of vectors. Where anything else met it, numbers would go into a vector and out
again, as often as twice for each. So every operation that vectors have is one of vectors, which takes as long
and rounds alike, also those of whole numbers between the bits of numbers; whatever else reads either takes
the first of the two. Multiply-adds come here as the functions `multiply_add` and `multiply_add_pair`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from noslip.engine.backends.wasm_fma import ONE, TWO

VECTOR, WHOLES = "<2 x double>", "<2 x i64>"
RELAXED = "llvm.wasm.relaxed.madd.v2f64"
MADE = re.compile(r"^  (%[\w.-]+) = (?:tail |notail )?(.+)$", re.ASCII)
OPERATION = re.compile(r"(f(?:add|sub|mul|div|neg)) double (.+)", re.ASCII)
FUNCTION = re.compile(
    rf"call double @(llvm\.(?:fabs|sqrt|floor|ceil|rint)\.|{ONE})(?:f64)?\((.+)\)(?: #\d+)?", re.ASCII
)
SELECT = re.compile(r"select i1 (\S+), (double|i64) (\S+), \2 (\S+)", re.ASCII)
BITS = re.compile(r"bitcast double (%\S+) to i64", re.ASCII)
OF_BITS = re.compile(r"bitcast i64 (%\S+) to double", re.ASCII)
WHOLE = re.compile(r"((?:and|or|xor|add|sub|shl|lshr)(?: [a-z]+)*) i64 (\S+), (\S+)", re.ASCII)
PHI = re.compile(r"phi double (.+)", re.ASCII)
COMES = re.compile(r"\[ (\S+), (%\S+) \]", re.ASCII)
FIRST = re.compile(rf"extractelement {VECTOR} (%\S+), i64 0", re.ASCII)
SECOND = re.compile(rf"extractelement {VECTOR} (%\S+), i64 1", re.ASCII)
NUMBER = re.compile(
    r"(load double,|select i1 \S+, double |\w+ .+ to double$|call (?:fastcc )?double "
    r"|extractelement <\d+ x double> )"
)
PUT = re.compile(rf"insertelement {VECTOR} poison, double (%\S+), i64 0", re.ASCII)
CALLED = re.compile(r"call <2 x double> @(llvm\.[\w.]+\.v2f64)\((.+)\)", re.ASCII)
OURS = re.compile(rf"(?m)^(declare .*@{ONE}.*|@llvm\.compiler\.used = .*)\n", re.ASCII)
NAME = re.compile(r"%[\w.-]+", re.ASCII)
# values and blocks that have numbers for names: these must come in their order, which does not stay
NUMBERED = re.compile(r"(?m)(%|^)(\d+)(?=\b(?!:)|:)", re.ASCII)


def in_twins(text: str, multiply_add: str = RELAXED) -> str:
    """LLVM's text of a module that its passes have seen, with functions written so."""
    named = NUMBERED.sub(r"\1.\2", OURS.sub("", text))
    first, *functions = re.split(r"(?m)^(?=define )", named)
    written = first + "".join(_Function(function, multiply_add).text() for function in functions)
    written = written.replace(f"@{TWO}(", f"@{multiply_add}(")
    called = {name: given.count(VECTOR) for name, given in CALLED.findall(written)}
    there = set(re.findall(r"(?m)^declare .*@([\w.]+)\(", written))
    declared = [
        f"declare {VECTOR} @{name}({', '.join([VECTOR] * count)})"
        for name, count in called.items()
        if name not in there
    ]
    return "\n".join([written, *declared])


class _Function:
    """One function, written line by line."""

    def __init__(self, text: str, multiply_add: str):
        body, self.end, self.after = text.partition("\n}")
        self.lines, self.multiply_add = body.split("\n"), multiply_add
        made = [found.groups() for line in self.lines if (found := MADE.match(line))]
        self.twins = {name: _twin(name, value) for name, value in made if _is_number(value)}
        self.wholes: set[str] = set()
        for name, value in made:
            if self._is_whole(value):
                self.wholes.add(name)
                self.twins[name] = _twin(name, value)
        self.same: dict[str, str] = {}  # vectors that are there already, under another name
        self.written: list[str] = []
        self.waiting: list[str] = []  # what follows the phi nodes of a block

    def text(self) -> str:
        for line in self.lines:
            made = MADE.match(line)
            name, value = made.groups() if made else ("", "")
            if not value.startswith("phi"):
                self.written += self.waiting
                self.waiting = []
            if (put := PUT.fullmatch(value)) and put[1] in self.twins:
                self.same[name] = self.twins[put[1]]
            elif name in self.twins and not FIRST.fullmatch(value):
                self._number(line, name, value)
            else:
                self.written.append(line)
        return NAME.sub(lambda found: self._known(found[0]), "\n".join(self.written)) + self.end + self.after

    def _is_whole(self, value: str) -> bool:
        """Whether it is a whole number that vectors can make of the bits of numbers."""
        if found := BITS.fullmatch(value):
            return found[1] in self.twins
        if found := WHOLE.fullmatch(value) or SELECT.fullmatch(value):
            parts = {part for part in found.groups()[-2:] if part.startswith("%")}
            return bool(parts) and parts <= self.wholes
        return False

    def _known(self, name: str) -> str:
        while name in self.same:
            name = self.same[name]
        return name

    def _number(self, line: str, name: str, value: str) -> None:
        """A number and its vector, each from the other."""
        twin, vector = self.twins[name], self._operation(name, value)
        then = self.waiting if value.startswith("phi") else self.written
        if vector is not None:
            self._line(twin, vector)
            kind = WHOLES if name in self.wholes else VECTOR
            then.append(f"  {name} = extractelement {kind} {twin}, i64 0")
        else:
            one = f"%one.{name[1:]}"
            self.written.append(line)
            then.append(f"  {one} = insertelement {VECTOR} poison, double {name}, i64 0")
            then.append(f"  {twin} = {_places(one, (0, 0))}")

    def _operation(self, name: str, value: str) -> str | None:
        """The operation of vectors that makes it, if there is one."""
        if found := OPERATION.fullmatch(value):
            return f"{found[1]} {VECTOR} {', '.join(self._vectors(name, found[2].split(', ')))}"
        if found := FUNCTION.fullmatch(value):
            given = self._vectors(name, [x.removeprefix("double ") for x in found[2].split(", ")])
            return _call(self.multiply_add if found[1] == ONE else f"{found[1]}v2f64", given)
        if found := SELECT.fullmatch(value):
            kind = f"<2 x {found[2]}>"
            yes, no = self._vectors(name, found.groups()[2:], found[2])
            return f"select i1 {found[1]}, {kind} {yes}, {kind} {no}"
        if found := BITS.fullmatch(value):
            return f"bitcast {VECTOR} {self.twins[found[1]]} to {WHOLES}"
        if found := WHOLE.fullmatch(value):
            return f"{found[1]} {WHOLES} {', '.join(self._vectors(name, found.groups()[1:], 'i64'))}"
        if (found := OF_BITS.fullmatch(value)) and found[1] in self.wholes:
            return f"bitcast {WHOLES} {self.twins[found[1]]} to {VECTOR}"
        if found := PHI.fullmatch(value):
            comes = COMES.findall(found[1])
            if any(x.startswith("%") and x not in self.twins for x, _ in comes):
                return None  # an argument of the function
            vectors = self._vectors(name, [x for x, _ in comes])
            parts = [f"[ {x}, {block} ]" for x, (_, block) in zip(vectors, comes, strict=True)]
            return f"phi {VECTOR} {', '.join(parts)}"
        return _places(found[1], (1, 1)) if (found := SECOND.fullmatch(value)) else None

    def _vectors(self, name: str, numbers: Sequence[str], kind: str = "double") -> list[str]:
        """The vectors of numbers; what has none, an argument of the function, is put into one here."""
        found = []
        for k, number in enumerate(numbers):
            put = f"%put.{k}.{name[1:]}"
            if number.startswith("%") and number not in self.twins:
                self._line(put, f"insertelement {VECTOR} poison, double {number}, i64 0")
            constant = f"<{kind} {number}, {kind} {number}>"
            found.append(self.twins.get(number, put) if number.startswith("%") else constant)
        return found

    def _line(self, name: str, value: str) -> None:
        self.written.append(f"  {name} = {value}")


def _is_number(value: str) -> bool:
    forms = (OPERATION, FUNCTION, PHI, FIRST, NUMBER)
    return any(form.match(value) for form in forms)


def _twin(name: str, value: str) -> str:
    """The vector that a number is the first of, now or as it will be written."""
    first = FIRST.fullmatch(value)
    return first[1] if first else f"%twin.{name[1:]}"


def _call(name: str, vectors: Sequence[str]) -> str:
    return f"call {VECTOR} @{name}({', '.join(f'{VECTOR} {x}' for x in vectors)})"


def _places(vector: str, places: tuple[int, int]) -> str:
    return f"shufflevector {VECTOR} {vector}, {VECTOR} poison, <2 x i32> <i32 {places[0]}, i32 {places[1]}>"

"""Numbers of WebAssembly as vectors of two equal ones.

Its fused multiply-add is one of vectors. Where products, sums and differences meet it, numbers go into a
vector and out again, as often as twice for each. So these are operations of vectors too, which take as long
and round alike; whatever else reads a number takes the first of the two.
"""

from __future__ import annotations

import re

VECTOR = "<2 x double>"
MADE = re.compile(r"^  (%[\w.-]+) = (.+)$", re.ASCII)
BINARY = re.compile(r"(fadd|fsub|fmul) double (\S+), (\S+)", re.ASCII)
NEGATIVE = re.compile(r"(fneg) double (\S+)", re.ASCII)
FIRST = re.compile(rf"extractelement {VECTOR} (%\S+), i64 0", re.ASCII)
PUT = re.compile(rf"insertelement {VECTOR} poison, double (%\S+), i64 0", re.ASCII)
NAME = re.compile(r"%[\w.-]+", re.ASCII)


def in_twins(text: str) -> str:
    """LLVM's text of a module that its passes have seen, with functions written so."""
    parts = re.split(r"(?m)^(?=define )", text)
    return parts[0] + "".join(map(_function, parts[1:]))


def _function(text: str) -> str:
    body, end, after = text.partition("\n}")
    lines = body.split("\n")
    twins = dict(twin for line in lines if (twin := _twin(line)))
    written: list[str] = []
    same: dict[str, str] = {}  # vectors that are there already, under another name
    for line in lines:
        made = MADE.match(line)
        name, value = made.groups() if made else ("", "")
        if (put := PUT.fullmatch(value)) and put[1] in twins:
            same[name] = twins[put[1]]
        elif operation := BINARY.fullmatch(value) or NEGATIVE.fullmatch(value):
            word, *given = operation.groups()
            vectors = [_vector(x, f"{name[1:]}.{k}", twins, written) for k, x in enumerate(given)]
            written.append(f"  {twins[name]} = {word} {VECTOR} {', '.join(vectors)}")
            written.append(f"  {name} = extractelement {VECTOR} {twins[name]}, i64 0")
        else:
            written.append(line)

    def known(match: re.Match[str]) -> str:
        return same.get(match[0], match[0])

    return NAME.sub(known, "\n".join(written)) + end + after


def _twin(line: str) -> tuple[str, str] | None:
    """A number of this line and the vector that it is the first of, now or as it will be written."""
    if not (made := MADE.match(line)):
        return None
    name, value = made.groups()
    if first := FIRST.fullmatch(value):
        return name, first[1]
    written = BINARY.fullmatch(value) or NEGATIVE.fullmatch(value)
    return (name, f"%twin.{name[1:]}") if written else None


def _vector(number: str, place: str, twins: dict[str, str], written: list[str]) -> str:
    """The vector of a number; put into one here where it has none."""
    if number in twins:
        return twins[number]
    if not number.startswith("%"):
        return f"<double {number}, double {number}>"
    name = f"%put.{place}"
    written.append(f"  {name} = insertelement {VECTOR} poison, double {number}, i64 0")
    return name

"""ASCII formulas of docstrings as TeX.

A docstring writes `dL/dv(q1, v1) = h mu(qm)^T lam` and `thetadot^2 / 2`; the site shows mathematics. A
formula is read whole or not at all: what the grammar below does not know raises `NotAFormula`, and is shown
as it was written. `tests/docs/test_typeset_formulas.py` reads the TeX back and compares all letters.

    row     = term ...                    a line of a formula: terms, operators, words
    term    = (name | number | group) mark ...
    mark    = "~" | "'" | "*" | "_" script | "^" script
    group   = "(" row ")" | "[" row "]" | "{" row "}" | "|" row "|"
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from functools import cache

GREEK = """
    alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega
    Gamma Delta Theta Lambda Pi Sigma Phi Psi Omega
""".split()  # noqa: SIM905
FUNCTIONS = ("sin", "cos", "tan", "exp", "ln", "log", "min", "max", "atan2", "diag", "cross", "grad", "sqrt")
NAMES = {
    "lam": r"\lambda",
    "gbar": r"\bar{g}",
    "ubar": r"\bar{u}",
    "ld": r"\ell_d",
    "EL": r"\mathrm{EL}",
    "DPhi": r"D\Phi",
}
NAMES |= {name: f"\\{name}" for name in GREEK} | {"phi": r"\varphi", "epsilon": r"\varepsilon"}
OPERATORS = {
    "->": r"\to", "+=": r"\mathrel{{+}{=}}", "-=": r"\mathrel{{-}{=}}", ">=": r"\ge", "<=": r"\le",
    "..": r"\dots", "=": "=", "+": "+", "-": "-", ",": ",", ";": ";", ":": ":", "<": "<", ">": ">", "/": "/",
    " . ": r"\cdot", " * ": r"\cdot", " o ": r"\circ", " ^ ": r"\wedge",
    " x ": r"\times",  # after a letter that stands for a vector; elsewhere x is a coordinate
}  # fmt: skip
EQUALS = tuple(OPERATORS[x] for x in ("=", "+=", "-="))
PAIRS = {"(": ")", "[": "]", "{": "}"}
TOKEN = re.compile(
    r"""(?P<gap>\ {2,})|(?P<wide>\ [.*o^]\ (?=\S)|(?<=\b[WONnw])\ x\ (?=[\w(]))
    |(?P<space>\ +)|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)
    |(?P<word>[A-Za-z]{2,}'s\b)|(?P<name>[A-Za-z]+\d*(?:d?dot\b)?)|(?P<text>"[^"]*"|`[^`]*`)|(?P<operator>->|\+=|-=|>=|<=|\.\.|[=+\-,;:<>/])
    |(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<mark>[~'*_^|.])""",
    re.VERBOSE,
)


class NotAFormula(ValueError):
    """What was given is not in the grammar of formulas."""


@dataclass
class Node:
    """A piece of a row: its TeX, and what it is (term, function, operator, word, gap, big)."""

    kind: str
    tex: str
    inner: str = ""  # of a group in round brackets: what they hold
    differential: str = ""  # of dX: X
    bracketed: bool = False
    apart: bool = False  # a space follows


@dataclass
class Reader:
    """Reads tokens from left to right; `fractions` says whether a / b is set as one."""

    tokens: list[tuple[str, str]]
    fractions: bool
    at: int = 0
    bars: int = 0
    closing: list[str] = field(default_factory=list)

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def row(self) -> list[Node]:
        nodes: list[Node] = []
        while True:
            kind, text = self.peek()
            if kind == "end" or (kind == "close") or (text == "|" and self._closes_bar()):
                return nodes
            self.take()
            last = nodes[-1] if nodes else Node("operator", "")
            if kind == "space" or (kind == "gap" and not self._parts(last)):
                continue
            if kind in ("gap", "operator", "wide"):
                nodes.append(Node("gap", r"\qquad") if kind == "gap" else Node("operator", OPERATORS[text]))
            elif kind == "text":
                nodes.append(Node("code", rf"\texttt{{{_quoted(text)}}}"))
            elif kind == "word" or (text == "a" and last.kind == "word"):
                nodes.append(Node("word", text))
            else:
                nodes.append(self.term(kind, text))
            nodes[-1].apart = self.peek()[0] == "space"

    def _parts(self, last: Node) -> bool:
        """Whether a wide gap after this node parts two formulas, or only puts one below the other."""
        if last.kind == "operator":
            return last.tex in (",", ";", ":")
        return self.peek()[0] != "operator"

    def _closes_bar(self) -> bool:
        return bool(self.closing) and self.closing[-1] == "|"

    def term(self, kind: str, text: str) -> Node:
        if kind == "name":
            node = _named(text)
        elif kind == "number":
            node = Node("term", text.replace("e", r"\mathrm{e}"))
        elif kind == "open":
            node = self.group(text, PAIRS[text])
        elif text == "|":
            node = self.group("|", "|")
        else:
            raise NotAFormula(f"{text!r} does not begin a term")
        return self.marked(node)

    def group(self, opening: str, closing: str) -> Node:
        self.closing.append(closing)
        row = self.row()
        inner = written(row, self.fractions)
        self.closing.pop()
        if self.take()[1] != closing:
            raise NotAFormula(f"{opening!r} is not closed")
        alone = self.fractions and opening == "(" and len(_divided(row)) == 1
        if alone and inner.startswith(r"\frac") and self.peek()[0] != "mark":
            return Node("term", inner)
        if opening == "|":
            return Node("term", rf"\lvert {inner} \rvert")
        opening, closing = opening.replace("{", r"\{"), closing.replace("}", r"\}")
        tall = r"\frac" in inner or r"\sum" in inner
        tex = rf"\left{opening} {inner} \right{closing}" if tall else f"{opening}{inner}{closing}"
        return Node("term", tex, inner if opening == "(" else "", bracketed=True)

    def marked(self, node: Node) -> Node:
        """With its tildes, primes, stars, indices and powers; indices before powers, as TeX wants them."""
        tex = rf"\text{{{node.tex}}}" if node.kind == "word" else node.tex
        below = above = ""
        plain = tex
        while self.peek()[1] in ("~", "'", "*", "_", "^") and self.peek()[0] == "mark":
            mark = self.take()[1]
            if mark == "~":
                tex = rf"\tilde{{{tex}}}"
            elif mark == "'":
                above += r"\prime "
            elif mark == "*":
                above += "*"
            elif mark == "_":
                index = self.script()
                if index == "dot":
                    tex = rf"\dot{{{tex}}}"
                else:
                    below += ("," if below else "") + index
            else:
                above += self.script()
        if not (below or above) and tex == plain:
            return node
        kind = "big" if node.kind == "big" else "term"
        if node.kind == "function":
            kind = "function"
        scripts = (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")
        if below and "_" in tex.replace(r"\_", ""):
            tex = f"{{{tex}}}"
        return Node(kind, tex + scripts, differential=node.differential and node.differential + scripts)

    def script(self) -> str:
        kind, text = self.take()
        sign = ""
        if text in ("-", "+") and kind == "operator":
            sign = text
            if self.peek()[0] not in ("name", "number"):
                return sign
            kind, text = self.take()
        if text == "*":
            return "*"
        if kind in ("name", "number"):
            return sign + _index(text)
        if kind == "open" and text in "({":
            self.closing.append(PAIRS[text])
            inner = written(self.row(), fractions=False)
            self.closing.pop()
            if self.take()[1] != PAIRS[text]:
                raise NotAFormula("an index or a power is not closed")
            return inner
        raise NotAFormula(f"{text!r} is no index or power")


def _index(text: str) -> str:
    if text == "dot" or text.isdigit():
        return text
    return symbol(text) or (text if len(text) == 2 else rf"\mathrm{{{text}}}")


def _quoted(text: str) -> str:
    return text.strip("`").replace("_", r"\_")


@cache
def symbol(name: str) -> str:
    """TeX of a name that stands for a quantity, or nothing: a word."""
    if name in NAMES:
        return NAMES[name]
    if len(name) == 1:
        return name
    for suffix, accent in (("ddot", r"\ddot"), ("dot", r"\dot")):
        if name.endswith(suffix) and (base := symbol(name.removesuffix(suffix))):
            letter, _, index = base.partition("_")
            return rf"{accent}{{{letter}}}" + (f"_{index}" if index else "")
    found = re.fullmatch(r"([A-Za-z]|lam|" + "|".join(GREEK) + r")(\d+)|([wz]|theta)(i|k)", name)
    if found:
        letter, index = found[1] or found[3], found[2] or found[4]
        return f"{NAMES.get(letter, letter)}_{{{index}}}"
    if re.fullmatch(r"q[mbf]|L[dc]|R[xyz]", name):
        return f"{name[0]}_{name[1]}"
    return ""


def _named(name: str) -> Node:
    if name == "sqrt":
        return Node("function", r"\sqrt")
    if name in FUNCTIONS:
        known = name in ("sin", "cos", "tan", "exp", "ln", "log", "min", "max")
        return Node("function", f"\\{name}" if known else rf"\operatorname{{{name}}}")
    if name in ("sum", "int"):
        return Node("big", f"\\{name}")
    if tex := symbol(name):
        return Node("term", tex)
    if name.endswith("dot") and name != "dot":  # the rate of a coordinate whose name is a word
        return Node("term", rf"\dot{{\mathrm{{{name.removesuffix('dot')}}}}}")
    if is_differential(name):
        inner = symbol(name[1:])
        return Node("term", rf"\mathrm{{d}}{inner}", differential=inner)
    return Node("word", name)


def is_differential(name: str) -> bool:
    return name[0] == "d" and name not in ("de", "do", "di", "da", "dk") and bool(symbol(name[1:]))


def written(nodes: list[Node], fractions: bool) -> str:
    """The TeX of a row: roots over their arguments, quotients as fractions, words apart from symbols."""
    rooted: list[Node] = []
    for node in nodes:
        if rooted and rooted[-1].tex == r"\sqrt":
            if not node.inner and node.kind != "term":
                raise NotAFormula("a root has no argument")
            rooted[-1] = Node("term", rf"\sqrt{{{node.inner or node.tex}}}")
        else:
            rooted.append(node)
    if any(a.tex == b.tex == "/" for a, b in itertools.pairwise(rooted)):
        raise NotAFormula("two strokes follow each other")
    row = _divided(rooted) if fractions else _derivatives(rooted)
    parts: list[str] = []
    for k, node in enumerate(row):
        before, after = row[k - 1] if k else None, row[k + 1] if k + 1 < len(row) else None
        if node.kind == "word":
            parts.append(_word(node, before, after))
            continue
        parts.append(node.tex)
        factor = after and after.kind in ("term", "function", "big") and not after.bracketed
        if node.kind == "term" and factor and (r"\frac" in node.tex + after.tex or node.differential):
            parts.append(r"\,")
    return " ".join(parts)


def _derivatives(row: list[Node]) -> list[Node]:
    """dL/dv within a sentence: partial, unless it is by the time."""
    for k, node in enumerate(row[1:-1], 1):
        left, right = row[k - 1], row[k + 1]
        if node.tex == "/" and left.differential and right.differential not in ("", "t"):
            row[k - 1] = Node("term", rf"\partial {left.differential}")
            row[k + 1] = Node("term", rf"\partial {right.differential}")
    return row


def _word(node: Node, before: Node | None, after: Node | None) -> str:
    """With a space to a word or a factor beside it."""
    left = " " if before and before.kind in ("term", "code") else ""
    right = " " if node.apart and after and after.kind in ("word", "term", "code", "function") else ""
    return rf"\text{{{left}{node.tex}{right}}}"


def _divided(row: list[Node]) -> list[Node]:
    """a b / c as a fraction of the whole product before the stroke and the one factor after it."""
    made: list[Node] = []
    k = 0
    while k < len(row):
        if row[k].tex != "/" or row[k].kind != "operator":
            made.append(row[k])
            k += 1
            continue
        start = len(made)
        below = row[k + 1 : k + 2]
        if start and made[-1].kind == "word":
            start -= 1
        if start and below and made[-1].differential and below[0].differential:
            start -= 1
        else:
            while start and made[start - 1].kind in ("term", "function"):
                start -= 1
        product, k = made[start:], k + 2
        if not product or not below or below[0].kind not in ("term", "function"):
            raise NotAFormula("a quotient has no numerator or no denominator")
        if below[0].kind == "function":  # its argument belongs to it
            below, k = row[k - 1 : k + 1], k + 1
        made[start:] = [_fraction(product, below)]
    return made


def _fraction(above: list[Node], below: list[Node]) -> Node:
    if len(above) == 1 and above[0].differential and below[0].differential:
        d = r"\mathrm{d}" if below[0].differential == "t" else r"\partial "
        return Node("term", rf"\frac{{{d}{above[0].differential}}}{{{d}{below[0].differential}}}")
    last = above[-1]
    under = _bare(below)
    if last.inner and len(last.inner) > 60 and under == "2":  # a long sum is not put on top of a 2
        above = [Node("term", r"\frac{1}{2}"), *above]
        return Node("term", written(above, fractions=False))
    return Node("term", rf"\frac{{{_bare(above)}}}{{{under}}}")


def _bare(nodes: list[Node]) -> str:
    inner = nodes[0].inner if len(nodes) == 1 else ""
    return inner if inner and "," not in inner else written(nodes, fractions=False)


def tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise NotAFormula(f"{text[at]!r} is not of a formula")
        found.append((str(match.lastgroup), match.group()))
        at = match.end()
    return found


def read(text: str, fractions: bool) -> list[Node]:
    reader = Reader(tokens(text.strip()), fractions)
    row = reader.row()
    if reader.peek()[0] != "end":
        raise NotAFormula(f"{reader.peek()[1]!r} closes nothing")
    return row


def tex(text: str) -> str:
    """One formula within a sentence; `NotAFormula` where it is none."""
    return written(read(text, fractions=False), fractions=False)


def display(block: str) -> str:
    """An indented block of a docstring as aligned rows; a line that goes on one before it stays with it."""
    rows: list[str] = []
    lines = [line for line in block.splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    for line in lines:
        if rows and _depth(rows[-1]):
            rows[-1] += " " + line.strip()
        else:
            rows.append(line[indent:].rstrip())
    sides = [_sides(row) for row in rows]
    short = all(left and len(left) <= 24 for left, _ in sides)
    made = [f"{left} & {right}" if short else f"& {left} {right}" for left, right in sides]
    return "\\begin{aligned}\n" + " \\\\\n".join(made) + "\n\\end{aligned}"


def _depth(row: str) -> int:
    return sum(row.count(x) for x in "([{") - sum(row.count(x) for x in ")]}")


def _sides(line: str) -> tuple[str, str]:
    """What stands before the first equals sign of a row, and the rest."""
    row = read(line.removesuffix("."), fractions=True)
    if line.startswith(" "):
        return "", r"\quad " + written(row, fractions=True)
    first = next((k for k, node in enumerate(row) if node.tex in EQUALS), 0)
    return written(row[:first], fractions=True), written(row[first:], fractions=True)

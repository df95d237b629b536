"""Text of the package for the site: docstrings with their formulas set, as Markdown or reStructuredText.

A docstring is plain text. Its indented blocks are formulas or, where `formulas` cannot read them, shown as
they are. Within a sentence a run of pieces that are symbols, numbers and operators is a formula.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from formulas import FUNCTIONS, NotAFormula, display, is_differential, symbol, tex

NUMBERED = re.compile(
    r"\(\d+(\.\d+)*[a-z]?\)(-\(\d+(\.\d+)*[a-z]?\))?"
)  # (14), (8)-(9), (3.1): an equation's number
LETTERS = re.compile(r"[A-Za-z]+\d*(?:d?dot\b)?")
NOT_SYMBOLS = re.compile(r"[a-z]{2,}(?=\()|_[a-z]{2,}")  # the name of a function, an index that is a word
PLAIN = ("z-x-z", "x-z", "I-DLA")  # names that look like formulas


@dataclass(frozen=True)
class Markup:
    """How a text of one language writes a formula, a block of one, a block of text, and plain words."""

    inline: Callable[[str], str]
    block: Callable[[str], str]
    verbatim: Callable[[str], str]
    plain: Callable[[str], str]
    code: Callable[[str], str]


def _escaped_markdown(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\*_|\[\]#$~])", r"\\\1", safe)


def _escaped_rst(text: str) -> str:
    return re.sub(r"([\\*_|`])", r"\\\1", text)


MARKDOWN = Markup(
    lambda t: f"${t}$",
    lambda t: f"$$\n{t}\n$$",
    lambda t: f"```text\n{t}\n```",
    _escaped_markdown,
    lambda t: f"`{t}`",
)
RST = Markup(
    lambda t: rf"\ :math:`{t}`\ ",
    lambda t: ".. math::\n\n" + textwrap.indent(t, "   "),
    lambda t: "::\n\n" + textwrap.indent(t, "   "),
    _escaped_rst,
    lambda t: f"``{t}``",
)


def docstring(value: Any, markup: Markup = MARKDOWN) -> str:
    return typeset(inspect.getdoc(value) or "", markup)


def typeset(doc: str, markup: Markup = MARKDOWN) -> str:
    """A docstring with its formulas set: paragraphs, blocks of formulas, lists."""
    return "\n\n".join(
        part for block in re.split(r"\n\s*\n", doc) if block.strip() for part in _parts(block, markup)
    )


def _parts(block: str, markup: Markup) -> Iterator[str]:
    lines = block.splitlines()
    indented = [line.startswith("    ") for line in lines]
    if all(indented):
        try:
            yield markup.block(display(block))
        except NotAFormula:
            yield markup.verbatim(textwrap.dedent(block))
    elif any(indented[1:]):
        yield markup.verbatim(block)
    elif block.startswith("- "):
        items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
        yield "\n".join("- " + sentence(" ".join(item.split()), markup) for item in items)
    else:
        yield sentence(block, markup)


def sentence(text: Any, markup: Markup = MARKDOWN) -> str:
    """Plain words with the formulas among them set; what is between back quotes is code."""
    pieces = re.split(r"(`+[^`]*`+|\*\*[a-z]+\*\*)", str(text))
    made = []
    for k, piece in enumerate(pieces):
        if k % 2 == 0:
            made.append(_set(piece, markup))
        else:
            made.append(piece if piece.startswith("*") else markup.code(piece.strip("`")))
    return "".join(made)


def plain(text: Any) -> str:
    """The same where nothing is a formula."""
    pieces = re.split(r"(`[^`]*`)", str(text))
    return "".join(piece if k % 2 else MARKDOWN.plain(piece) for k, piece in enumerate(pieces))


def first_line(value: Any) -> str:
    return sentence((inspect.getdoc(value) or "").partition("\n")[0])


def _set(text: str, markup: Markup) -> str:
    words = re.split(r"(\s+)", text)
    made: list[str] = []
    k = 0
    while k < len(words):
        run = _run(words, k)
        while run and (formula := _formula("".join(words[k : k + run]))) is None:
            run -= 1
        if run:
            before, inner, after = formula
            made += [markup.plain(before), markup.inline(inner), markup.plain(after)]
            k += run
        else:
            made.append(markup.plain(words[k]))
            k += 1
    return "".join(made)


def _run(words: list[str], k: int) -> int:
    """How many pieces from k on, words and spaces, may be one formula."""
    end = k
    while end < len(words):
        word = words[end]
        if word.strip() and not _mathematical(word, words, end):
            break
        end += 1
        if word != "." and word.endswith((",", ";", ".", ":")) and not _open("".join(words[k:end])):
            break
    while end > k and not words[end - 1].strip():
        end -= 1
    return end - k


def _open(text: str) -> bool:
    return text.count("(") > text.count(")") or text.count("{") > text.count("}")


def _mathematical(word: str, words: list[str], k: int) -> bool:
    bare = word.strip("(),.;:")
    if word == "." or bare == "force":
        return _beside(words, k, r"[-=+.]" if word != "." else r"\S+")
    if bare == "sum":
        return word == "sum" and k + 2 < len(words) and bool(symbol(words[k + 2].partition("_")[0]))
    if not bare or bare in PLAIN or NUMBERED.fullmatch(word.strip(",.;:")):
        return word in ("(", ")")
    if bare in ("a", "A"):  # the article, unless it stands among symbols
        before, after = (_is_symbol(words, j) for j in (k - 2, k + 2))
        ends = word.endswith(")") or words[k + 4 : k + 5] == ["="]
        return _beside(words, k, r"[-=+*/<>]|->") or (before and (after or ends)) or (after and ends)
    if re.search(r"[^\w\s()\[\]{}^~'*/=+\-.,;:|<>]", word):
        return False
    return all(
        symbol(x) or x in FUNCTIONS or is_differential(x) for x in LETTERS.findall(NOT_SYMBOLS.sub("", word))
    )


def _is_symbol(words: list[str], k: int) -> bool:
    word = words[k].strip("(),-+") if 0 <= k < len(words) else ""
    return bool(symbol(re.split(r"[\^_']", word)[0])) and word not in ("a", "A")


def _beside(words: list[str], k: int, pattern: str) -> bool:
    neighbours = [words[j] if 0 <= j < len(words) else "" for j in (k - 2, k + 2)]
    return any(re.fullmatch(pattern, other) for other in neighbours)


def _formula(text: str) -> tuple[str, str, str] | None:
    """(words before, TeX, words after) of a run that is a formula with a symbol in it, or None."""
    before, core, after = re.fullmatch(r"(\s*)(.*?)([,.;:]*\s*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    while core.startswith("(") and core.count("(") > core.count(")"):
        before, core = before + "(", core[1:]
    while core.endswith(")") and core.count(")") > core.count("("):
        core, after = core[:-1], ")" + after
    if not re.search("[A-Za-z]", re.sub(r"\d+e-?\d+", "", core)) or re.search(
        r"(^|\s)[-=+*/o<>]$|^[=*/<>o.](\s|$)", core
    ):
        return None
    if re.fullmatch(r"\((.*)\)", core) and not re.search(
        r"[,=+]|\s", core
    ):  # a remark in brackets, such as (s)
        before, core, after = before + "(", core[1:-1], ")" + after
    try:
        return before, tex(" ".join(core.split())), after
    except NotAFormula:
        return None

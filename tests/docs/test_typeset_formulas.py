"""ASCII formulas of docstrings become TeX without losing a letter; what is not a formula stays as it is."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

from noslip import integrators, systems

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_site"))
formulas = pytest.importorskip("formulas")
prose = pytest.importorskip("prose")

MODULES = {
    **{name: inspect.getmodule(cls) for name, cls in integrators.discover().items()},
    **systems.discover(),
}
BACK = {
    r"\lambda": "lam",
    r"\varphi": "phi",
    r"\varepsilon": "epsilon",
    r"\ell": "l",
    r"\partial": "d",
    r"\times": "x",
}


def blocks(module: object) -> list[str]:
    doc = inspect.getdoc(module) or ""
    parts = re.split(r"\n\s*\n", doc)
    return [part for part in parts if all(line.startswith("    ") for line in part.splitlines())]


def letters(ascii_formula: str) -> str:
    """The letters and digits of a formula, with the operators that are words."""
    text = re.sub(r" o ", " circ ", ascii_formula)
    return "".join(sorted(re.sub(r"[^A-Za-z0-9]", "", text)))


def read_back(tex: str) -> str:
    """The same of TeX: accents and Greek letters as words, halves that were pulled out as quotients."""
    for command, word in BACK.items():
        tex = tex.replace(command, f" {word} ")
    tex = re.sub(r"\\(ddot|dot|bar)\{", r" \1 {", tex)
    tex = re.sub(r"\\(?:begin|end)\{aligned\}|\\(?:operatorname|mathrm|text|texttt)\b", "", tex)
    tex = re.sub(
        r"\\(?:frac|left|right|lvert|rvert|qquad|quad|cdot|wedge|prime|to|dots|ge|le|tilde|mathrel)\b",
        "",
        tex,
    )
    return "".join(sorted(re.sub(r"[^A-Za-z0-9]", "", tex)))


@pytest.mark.parametrize("name", [name for name, module in MODULES.items() if blocks(module)])
def test_every_block_of_formulas_is_set_and_keeps_its_letters(name: str) -> None:
    for block in blocks(MODULES[name]):
        made = formulas.display(block)
        halves = made.count(r"\frac{1}{2} ") - len(re.findall(r"\(1 ?/ ?2\)", block))
        extra = "1" * halves  # (long sum) / 2 is set as half the sum
        assert read_back(made) == "".join(sorted(letters(block) + extra)), block


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("xdot^2", r"\dot{x}^{2}"),
        ("thetaddot", r"\ddot{\theta}"),
        ("q1dot", r"\dot{q}_{1}"),
        ("psi_left_dot^2", r"\dot{\psi}_{\mathrm{left}}^{2}"),
        ("leftdot^2", r"\dot{\mathrm{left}}^{2}"),
        ("mu(q_k)^T lam", r"\mu (q_{k})^{T} \lambda"),
        ("q~_{k+1}", r"\tilde{q}_{k + 1}"),
        ("M^-1", r"M^{-1}"),
        ("gbar . d", r"\bar{g} \cdot d"),
        ("rho o rho", r"\rho \circ \rho"),
        ("T*Q", r"T^{*} Q"),
        ("W x n + b x y", r"W \times n + b x y"),
        ("dL/dv(q, v)", r"\partial L / \partial v (q , v)"),
        ("dq/dt", r"\mathrm{d}q / \mathrm{d}t"),
        ("d ln f", r"d \ln f"),
        ("sqrt(1 + x^2)", r"\sqrt{1 + x^{2}}"),
    ],
)
def test_a_formula_is_read_as_a_mathematician_reads_it(written: str, wanted: str) -> None:
    assert formulas.tex(written) == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("a b / c", r"\frac{a b}{c}"),
        ("a + b / c d", r"a + \frac{b}{c} \, d"),
        ("(a + b) / (c d)", r"\frac{a + b}{c d}"),
        ("-(a / b)^2", r"- \left( \frac{a}{b} \right)^{2}"),
        ("(u, v) / 2", r"\frac{(u , v)}{2}"),
        ("beta dL/dq(q, v)", r"\beta \, \frac{\partial L}{\partial q} (q , v)"),
    ],
)
def test_a_quotient_keeps_its_value(written: str, wanted: str) -> None:
    assert formulas.written(formulas.read(written, fractions=True), fractions=True) == wanted


@pytest.mark.parametrize("text", ["(a", "a)", "a / / b", "a ? b", "x_", "^2"])
def test_what_is_not_a_formula_is_refused(text: str) -> None:
    with pytest.raises(formulas.NotAFormula):
        formulas.tex(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "the step from z to z' = z + d is CFHM (14)",
            r"the step from $z$ to $z^{\prime } = z + d$ is CFHM (14)",
        ),
        ("JS (71)-(72), a frame of D", r"JS (71)-(72), a frame of $D$"),
        ("good to about 1e-12, of order 2 s", r"good to about 1e-12, of order $2 s$"),
        ("`q` is a sum (s = 2 or 3)", r"`q` is a sum ($s = 2$ or 3)"),
        ("Lagrange-d'Alembert, z-x-z and M-orthogonal", "Lagrange-d'Alembert, z-x-z and M-orthogonal"),
        ("E + force . d_q, 5 * 3 < 4", r"$E + \text{force} \cdot d_{q}$, 5 \* 3 &lt; 4"),
    ],
)
def test_formulas_within_a_sentence_are_found_and_words_are_left(text: str, wanted: str) -> None:
    assert prose.sentence(text) == wanted


def test_a_block_that_is_no_formula_is_shown_as_it_was_written() -> None:
    assert prose.typeset("So:\n\n    make('x') ? y") == "So:\n\n```text\nmake('x') ? y\n```"

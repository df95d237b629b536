"""Scalar programs printed as C: the limit that native code is measured against. Needs gcc; benchmarks only.

One source serves both widths: with LANES = 1 a value is a double, otherwise a vector of gcc's, and the
helpers at the top know the difference. The operations, their order and their fused products are those of
native code.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from noslip.engine.backends.native import NativeFunction
from noslip.engine.program import UNUSED, Dense, Loop, Program, Rolled, Visitor

FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", "-lm")

HELPERS = r"""
#include <math.h>
#include <string.h>
typedef long long i64;
#if LANES == 1
typedef double F; typedef i64 I; typedef int B;
typedef double MF __attribute__((may_alias)); typedef i64 MI;
#define SF(x) (x)
#define SI(x) (x)
#define SB(x) (x)
#define SELECT(c, x, y) ((c) ? (x) : (y))
#define SELECTI(c, x, y) ((c) ? (x) : (y))
#define NOT(x) (!(x))
#define ANY(x) (x)
#define TOBOOL(x) ((x) != 0)
#define FROMBOOL(x) ((I)(x))
static inline F FMA(F a, F b, F c) { return __builtin_fma(a, b, c); }
static inline F ABS(F a) { return fabs(a); }
static inline F SQRT(F a) { return sqrt(a); }
static inline F RINT(F a) { return rint(a); }
static inline F FLOOR(F a) { return floor(a); }
static inline F CEIL(F a) { return ceil(a); }
static inline F ITOF(I a) { return (F)a; }
static inline I FTOI(F a) { return a == a ? (I)a : 0; }
static inline I BITS(F a) { I r; memcpy(&r, &a, 8); return r; }
static inline F REAL(I a) { F r; memcpy(&r, &a, 8); return r; }
#define KEEP(pick, c, x, y) (x)
#define CALL1(f, a) f(a)
#define CALL2(f, a, b) f(a, b)
#else
typedef double F __attribute__((vector_size(8 * LANES)));
typedef i64 I __attribute__((vector_size(8 * LANES)));
typedef I B;
typedef double MF __attribute__((vector_size(8 * LANES), aligned(8), may_alias)); /* in memory */
typedef i64 MI __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
#define EACH for (int l = 0; l < LANES; l++)
static inline F SF(double x) { F r; EACH r[l] = x; return r; }
static inline I SI(i64 x) { I r; EACH r[l] = x; return r; }
#define SB(x) SI((x) ? -1 : 0)
static inline F SELECT(B c, F x, F y) { return (F)((c & (I)x) | (~c & (I)y)); }
static inline I SELECTI(B c, I x, I y) { return (c & x) | (~c & y); }
#define NOT(x) (~(x))
#define TOBOOL(x) ((x) != 0)
#define FROMBOOL(x) ((x) & 1)
#if LANES == 8 && defined(__AVX512DQ__)
#include <immintrin.h>
static inline int ANY(B m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
static inline F FMA(F a, F b, F c) { return (F)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
static inline F SQRT(F a) { return (F)_mm512_sqrt_pd((__m512d)a); }
static inline F RINT(F a) { return (F)_mm512_roundscale_pd((__m512d)a, 0); }
#elif LANES == 4 && defined(__FMA__)
#include <immintrin.h>
static inline int ANY(B m) { return _mm256_movemask_pd((__m256d)m) != 0; }
static inline F FMA(F a, F b, F c) { return (F)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
static inline F SQRT(F a) { return (F)_mm256_sqrt_pd((__m256d)a); }
static inline F RINT(F a) { return (F)_mm256_round_pd((__m256d)a, 0); }
#else
static inline int ANY(B m) { i64 r = 0; EACH r |= m[l]; return r != 0; }
static inline F FMA(F a, F b, F c) { F r; EACH r[l] = __builtin_fma(a[l], b[l], c[l]); return r; }
static inline F SQRT(F a) { F r; EACH r[l] = sqrt(a[l]); return r; }
static inline F RINT(F a) { F r; EACH r[l] = rint(a[l]); return r; }
#endif
static inline F ABS(F a) { return (F)((I)a & SI(0x7fffffffffffffffLL)); }
static inline F FLOOR(F a) { F r; EACH r[l] = floor(a[l]); return r; }
static inline F CEIL(F a) { F r; EACH r[l] = ceil(a[l]); return r; }
static inline F ITOF(I a) { return __builtin_convertvector(a, F); }
static inline I FTOI(F a) { return __builtin_convertvector(a, I); }
static inline I BITS(F a) { return (I)a; }
static inline F REAL(I a) { return (F)a; }
#define KEEP(pick, c, x, y) pick(c, x, y)
#define CALL1(f, a) ({ F r_, a_ = (a); EACH r_[l] = f(a_[l]); r_; })
#define CALL2(f, a, b) ({ F r_, a_ = (a), b_ = (b); EACH r_[l] = f(a_[l], b_[l]); r_; })
#endif
static inline F MAX(F a, F b) { return SELECT((a > b) | (a != a), a, b); }
static inline F MIN(F a, F b) { return SELECT((a < b) | (a != a), a, b); }

/* Gauss-Jordan with partial pivoting; `inverse` in place, `solve` on [A | B] */
static void pivot_rows(F *a, int columns, int n, int k, I *order) {
  F best = ABS(a[k * columns + k]);
  I row = SI(k);
  for (int i = k + 1; i < n; i++) {
    F size = ABS(a[i * columns + k]);
    B wins = size > best;
    best = SELECT(wins, size, best);
    row = SELECTI(wins, SI(i), row);
  }
  *order = row;
  if (!ANY(row != SI(k))) return;
  for (int i = k + 1; i < n; i++) {
    B mask = row == SI(i);
    if (!ANY(mask)) continue;
    for (int j = 0; j < columns; j++) {
      F x = a[k * columns + j], y = a[i * columns + j];
      a[k * columns + j] = SELECT(mask, y, x);
      a[i * columns + j] = SELECT(mask, x, y);
    }
  }
}
static inline void inverse(F *a, int n, int columns) {
  I order[n];
  for (int k = 0; k < n; k++) {
    pivot_rows(a, columns, n, k, order + k);
    F scale = SF(1.0) / a[k * n + k];
    a[k * n + k] = SF(1.0);
    for (int j = 0; j < n; j++) a[k * n + j] *= scale;
    for (int i = 0; i < n; i++) {
      if (i == k) continue;
      F factor = -a[i * n + k];
      a[i * n + k] = SF(0.0);
      for (int j = 0; j < n; j++) a[i * n + j] = FMA(factor, a[k * n + j], a[i * n + j]);
    }
  }
  for (int k = n - 1; k >= 0; k--) {
    if (!ANY(order[k] != SI(k))) continue;
    for (int c = k + 1; c < n; c++) {
      B mask = order[k] == SI(c);
      if (!ANY(mask)) continue;
      for (int r = 0; r < n; r++) {
        F x = a[r * n + k], y = a[r * n + c];
        a[r * n + k] = SELECT(mask, y, x);
        a[r * n + c] = SELECT(mask, x, y);
      }
    }
  }
}
static inline void solve(F *a, int n, int columns) {
  I order;
  for (int k = 0; k < n; k++) {
    pivot_rows(a, columns, n, k, &order);
    F scale = SF(1.0) / a[k * columns + k];
    for (int j = k + 1; j < columns; j++) a[k * columns + j] *= scale;
    for (int i = 0; i < n; i++) {
      if (i == k) continue;
      F factor = -a[i * columns + k];
      for (int j = k + 1; j < columns; j++)
        a[i * columns + j] = FMA(factor, a[k * columns + j], a[i * columns + j]);
    }
  }
}
"""

TYPES = {"f": "F", "i": "I", "b": "B"}
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "iadd": "+", "isub": "-", "imul": "*", "idiv": "/",
    "irem": "%",
    "iand": "&", "ior": "|", "ixor": "^", "ishl": "<<", "iashr": ">>", "and": "&", "or": "|", "xor": "^",
    "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip
FUNCTION = {
    "fma": "FMA({0}, {1}, {2})", "fnma": "FMA(-{0}, {1}, {2})", "fms": "FMA({0}, {1}, -{2})", "neg": "-{0}",
    "ineg": "-{0}", "abs": "ABS({0})", "sqrt": "SQRT({0})", "rint": "RINT({0})", "floor": "FLOOR({0})",
    "ceil": "CEIL({0})", "not": "NOT({0})", "max": "MAX({0}, {1})", "min": "MIN({0}, {1})",
    "itof": "ITOF({0})", "ftoi": "FTOI({0})", "ftobits": "BITS({0})", "bitstof": "REAL({0})",
}  # fmt: skip


class _Printer(Visitor):
    def __init__(self, program: Program, prefix: str):
        self.program, self.prefix = program, prefix
        self.lines: list[str] = []
        self.given: dict[int, str] = {}
        self.mask = ""

    def name(self, node: int) -> str:
        if node in self.given:
            return self.given[node]
        made = self.program.nodes[node]
        if made.value is None:
            return f"{self.prefix}{node}"
        if isinstance(made.value, bool):
            return f"SB({int(made.value)})"
        if isinstance(made.value, int):
            return f"SI({made.value}LL)"
        text = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(str(made.value))
        return f"SF({text or float(made.value).hex()})"

    def declare(self, node: int, value: str) -> None:
        kind = TYPES[self.program.nodes[node].kind]
        self.lines.append(f"{kind} {self.prefix}{node} = {value};")

    def operation(self, number: int) -> None:
        node = self.program.nodes[number]
        self.declare(number, self.expression(node.op, node.kind, [self.name(a) for a in node.args]))

    def expression(self, op: str, kind: str, args: list[str]) -> str:
        if op in INFIX:
            return f"({args[0]} {INFIX[op]} {args[1]})"
        if op in FUNCTION:
            return FUNCTION[op].format(*args)
        if op == "select":
            return f"{'SELECTI' if kind == 'i' else 'SELECT'}({', '.join(args)})"
        return f"CALL{len(args)}({op.removeprefix('libm:')}, {', '.join(args)})"

    def loop(self, loop: Loop) -> None:
        nodes, lines = self.program.nodes, self.lines
        rows = list(zip(loop.params, loop.inits, loop.outs, loop.results, strict=True))
        for param, init, _, _ in rows:
            self.declare(param, self.name(init))
        active = f"active{loop.params[0]}"
        outer = self.mask
        lines.append(f"B {active} = {self.name(loop.enter)}{f' & {outer}' if outer else ''};")
        self.mask = active
        lines.append(f"if (ANY({active})) {{")
        self.block(loop.before)
        lines.append("do {")
        self.block(loop.body)
        for k, (param, _, out, result) in enumerate(rows):
            kind = nodes[param].kind
            pick = "SELECT" if kind == "f" else "SELECTI"
            new, old = self.name(out), f"{self.prefix}{param}"
            kept = f"KEEP({pick}, {active}, {new}, {old})"  # with one lane an active loop takes every value
            lines.append(f"{TYPES[kind]} next{k} = {new if result == UNUSED else kept};")
        lines.append(f"{active} = {active} & {self.name(loop.again)};")
        lines.extend(f"{self.prefix}{param} = next{k};" for k, (param, *_) in enumerate(rows))
        self.mask = outer
        lines.append(f"}} while (ANY({active}));\n}}")
        for param, _, _, result in rows:
            if result != UNUSED:
                self.given[result] = f"{self.prefix}{param}"

    def rolled(self, item: Rolled) -> None:
        nodes, lines, mark = self.program.nodes, self.lines, len(self.lines)
        for param, init in zip(item.params, item.inits, strict=True):
            self.declare(param, self.name(init))
        for j, table in enumerate(item.tables):
            kind, entries = TYPES[nodes[table[0]].kind], ", ".join(self.name(a) for a in table)
            lines.append(f"{kind} table{mark}_{j}[{item.length}] = {{{entries}}};")
        for j, write in enumerate(item.writes):
            lines.append(f"{TYPES[nodes[write].kind]} stack{mark}_{j}[{item.length}];")
        lines.append(f"for (int k{mark} = 0; k{mark} < {item.length}; k{mark}++) {{")
        for j, read in enumerate(item.reads):
            self.declare(read, f"table{mark}_{j}[k{mark}]")
        self.block(item.body)
        for j, write in enumerate(item.writes):
            lines.append(f"stack{mark}_{j}[k{mark}] = {self.name(write)};")
        for k, (param, out) in enumerate(zip(item.params, item.outs, strict=True)):
            lines.append(f"{TYPES[nodes[param].kind]} next{k} = {self.name(out)};")
        lines.extend(f"{self.prefix}{param} = next{k};" for k, param in enumerate(item.params))
        lines.append("}")
        for result, param in zip(item.results, item.params, strict=True):
            self.given[result] = f"{self.prefix}{param}"
        for j, column in enumerate(item.stacked):
            self.given.update((node, f"stack{mark}_{j}[{k}]") for k, node in enumerate(column))

    def dense(self, item: Dense) -> None:
        array, rows = f"array{item.results[0]}", item.size[0]
        columns, wide = len(item.inputs) // rows, len(item.results) // rows
        self.lines.append(
            f"F {array}[{len(item.inputs)}] = {{{', '.join(self.name(a) for a in item.inputs)}}};"
        )
        self.lines.append(f"{item.routine}({array}, {rows}, {columns});")
        for k, r in enumerate(item.results):
            row, column = divmod(k, wide)
            self.given[r] = f"{array}[{(row + 1) * columns - wide + column}]"


def time_loop(step: Program) -> str:
    """void advance(fixed, carry, groups, steps): so many steps of each group, without saving."""
    kinds = [step.nodes[i].kind for i in step.inputs]
    p = _Printer(step, "x")
    p.block(step.setup)
    setup, p.lines = p.lines, []
    p.block(step.main)
    own = step.inputs[step.fixed :]

    def load(pointer: str, slot: int, kind: str) -> str:
        place = f"{pointer} + {slot} * LANES"
        return {"f": f"*(MF *)({place})", "i": f"*(MI *)({place})", "b": f"TOBOOL(*(MI *)({place}))"}[kind]

    source = [HELPERS, "void advance(i64 *all_fixed, i64 *all_carry, i64 groups, i64 steps) {"]
    source.append("for (i64 g = 0; g < groups; g++) {")
    source.append(
        f"i64 *fixed = all_fixed + g * {step.fixed} * LANES, *carry = all_carry + g * {len(own)} * LANES;"
    )
    for k, node in enumerate(step.inputs):
        place = load("fixed", k, kinds[k]) if k < step.fixed else load("carry", k - step.fixed, kinds[k])
        source.append(f"{TYPES[kinds[k]]} x{node} = {place};")
    source += setup
    source.append("for (i64 k = 0; k < steps; k++) {")
    source += p.lines
    *outs, alive = [p.name(o) for o in step.outputs[: len(own) + 1]]
    for k, (node, out) in enumerate(zip(own, outs, strict=True)):
        source.append(f"{TYPES[step.nodes[node].kind]} new{k} = {out};")
    source += [f"x{node} = new{k};" for k, node in enumerate(own)]
    source.append(f"if (!ANY({alive})) break;\n}}")
    for k, node in enumerate(own):
        kind = step.nodes[node].kind
        value = f"FROMBOOL(x{node})" if kind == "b" else f"x{node}"
        source.append(f"*({'MF' if kind == 'f' else 'MI'} *)(carry + {k} * LANES) = {value};")
    return "\n".join([*source, "}", "}"])


def compile_c(source: str, lanes: int, folder: Path) -> NativeFunction:
    """Compile with gcc and return the function `advance`."""
    path = folder / f"advance{lanes}.c"
    path.write_text(source)
    library = path.with_suffix(".so")
    subprocess.run(["gcc", str(path), "-o", str(library), f"-DLANES={lanes}", *FLAGS], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.advance.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    loaded.advance.restype = None
    return NativeFunction(loaded.advance, loaded)

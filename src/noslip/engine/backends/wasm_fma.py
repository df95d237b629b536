"""The fused multiply-add of WebAssembly, which has none: by relaxed SIMD, or in plain operations.

A relaxed multiply-add may round once or twice, as the machine likes: whoever runs the module must try it, and
take the other form where it rounds twice. The other form is exact for every argument. Where no exponent is
near its ends it is the product and the sum in two doubles each, their rest rounded to odd
(Boldo, Melquiond 2008); all else is done in whole numbers, the product in 106 bits and the sum in 127.
"""

from __future__ import annotations

NAME = "fused"
DECLARED = "declare double @llvm.fma.f64(double, double, double)"
PAIRS = "declare <2 x double> @llvm.fma.v2f64(<2 x double>, <2 x double>, <2 x double>)"

# A function of which LLVM's passes know nothing but that there is one of pairs too: they put pairs together
# and cannot compute any. Of `llvm.fma` they make no pairs, and `llvm.fmuladd` of two constants they round
# twice. `wasm_twins` makes both into relaxed SIMD's multiply-add.
ONE, TWO = "multiply_add", "multiply_add_pair"
PURE = "nounwind willreturn nosync nofree memory(none) speculatable"
PAIRED = f'"vector-function-abi-variant"="_ZGV_LLVM_N2vvv_{ONE}({TWO})"'
RELAXED = f"""
@llvm.compiler.used = appending global [1 x ptr] [ptr @{TWO}], section "llvm.metadata"
declare double @{ONE}(double, double, double) {PURE} {PAIRED}
declare <2 x double> @{TWO}(<2 x double>, <2 x double>, <2 x double>) {PURE}
define double @fused(double %a, double %b, double %c) {{
  %r = call double @{ONE}(double %a, double %b, double %c)
  ret double %r
}}
"""

# |a b| from 2^-900 to 2^900, |a| and |b| below 2^995, |c| below 2^960: no rest of a product is lost, and no
# half of a factor overflows
USUAL = """
define double @fused(double %a, double %b, double %c) noinline {
  %p = fmul double %a, %b
  %psize = call double @llvm.fabs.f64(double %p)
  %asize = call double @llvm.fabs.f64(double %a)
  %bsize = call double @llvm.fabs.f64(double %b)
  %csize = call double @llvm.fabs.f64(double %c)
  %plow = fcmp oge double %psize, 0x07B0000000000000
  %phigh = fcmp ole double %psize, 0x7830000000000000
  %aok = fcmp olt double %asize, 0x7E20000000000000
  %bok = fcmp olt double %bsize, 0x7E20000000000000
  %cok = fcmp olt double %csize, 0x7BF0000000000000
  %ok1 = and i1 %plow, %phigh
  %ok2 = and i1 %aok, %bok
  %ok3 = and i1 %ok1, %cok
  %ok = and i1 %ok2, %ok3
  br i1 %ok, label %usual, label %unusual
unusual:
  %anyway = call double @fused_anyway(double %a, double %b, double %c)
  ret double %anyway
usual:
  ; a = ah + al and b = bh + bl with 26 bits each
  %as = fmul double %a, 0x41A0000002000000
  %ad = fsub double %as, %a
  %ah = fsub double %as, %ad
  %al = fsub double %a, %ah
  %bs = fmul double %b, 0x41A0000002000000
  %bd = fsub double %bs, %b
  %bh = fsub double %bs, %bd
  %bl = fsub double %b, %bh
  ; a b = p + u
  %hh = fmul double %ah, %bh
  %u1 = fsub double %hh, %p
  %hl = fmul double %ah, %bl
  %u2 = fadd double %u1, %hl
  %lh = fmul double %al, %bh
  %u3 = fadd double %u2, %lh
  %ll = fmul double %al, %bl
  %u = fadd double %u3, %ll
  ; p + c = s + e
  %s = fadd double %p, %c
  %s1 = fsub double %s, %p
  %s2 = fsub double %s, %s1
  %s3 = fsub double %c, %s1
  %s4 = fsub double %p, %s2
  %e = fadd double %s4, %s3
  ; e + u = z + zl: u alone, or below two units in the last place of s
  %z = fadd double %e, %u
  %z1 = fsub double %z, %e
  %z2 = fsub double %z, %z1
  %z3 = fsub double %u, %z1
  %z4 = fsub double %e, %z2
  %zl = fadd double %z4, %z3
  ; z to odd: one unit towards zl where its last bit is 0 and something is left
  %zbits = bitcast double %z to i64
  %zlbits = bitcast double %zl to i64
  %last = and i64 %zbits, 1
  %even = icmp eq i64 %last, 0
  %rest = fcmp une double %zl, 0.0
  %move = and i1 %even, %rest
  %differ = xor i64 %zbits, %zlbits
  %sign = ashr i64 %differ, 63
  %unit = or i64 %sign, 1
  %moved = add i64 %zbits, %unit
  %oddbits = select i1 %move, i64 %moved, i64 %zbits
  %odd = bitcast i64 %oddbits to double
  %r = fadd double %s, %odd
  ret double %r
}
"""

UNUSUAL = """
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i64 @llvm.fshr.i64(i64, i64, i64)
declare double @llvm.fabs.f64(double)

; |x| = mantissa 2^exponent with 2^52 <= mantissa < 2^53; zero has the mantissa 0
define internal i64 @mantissa(double %x) {
  %signed = bitcast double %x to i64
  %bits = and i64 %signed, 9223372036854775807
  %fraction = and i64 %bits, 4503599627370495
  %normal = icmp ugt i64 %bits, 4503599627370495
  %whole = or i64 %fraction, 4503599627370496
  %zeros = call i64 @llvm.ctlz.i64(i64 %fraction, i1 false)
  %by0 = sub i64 %zeros, 11
  %by = and i64 %by0, 63
  %shifted = shl i64 %fraction, %by
  %m = select i1 %normal, i64 %whole, i64 %shifted
  ret i64 %m
}
define internal i64 @exponent(double %x) {
  %signed = bitcast double %x to i64
  %bits = and i64 %signed, 9223372036854775807
  %biased = lshr i64 %bits, 52
  %e = sub i64 %biased, 1075
  %zeros = call i64 @llvm.ctlz.i64(i64 %bits, i1 false)
  %tiny = sub i64 -1063, %zeros
  %normal = icmp ne i64 %biased, 0
  %r = select i1 %normal, i64 %e, i64 %tiny
  ret i64 %r
}
; x 2^-d, d >= 0, rounded to odd in its last place
define internal i128 @lowered(i128 %x, i64 %d) {
  %wide = lshr i128 %x, 64
  %h = trunc i128 %wide to i64
  %l = trunc i128 %x to i64
  %none = icmp ugt i64 %d, 127
  %far = icmp ugt i64 %d, 63
  %by = and i64 %d, 63
  %h1 = select i1 %far, i64 0, i64 %h
  %l1 = select i1 %far, i64 %h, i64 %l
  %lost1 = select i1 %far, i64 %l, i64 0
  %h2 = lshr i64 %h1, %by
  %l2 = call i64 @llvm.fshr.i64(i64 %h1, i64 %l1, i64 %by)
  %low = shl i64 -1, %by
  %mask = xor i64 %low, -1
  %cut = and i64 %l1, %mask
  %lost2 = or i64 %lost1, %cut
  %all = or i64 %h, %l
  %h3 = select i1 %none, i64 0, i64 %h2
  %l3 = select i1 %none, i64 0, i64 %l2
  %lost = select i1 %none, i64 %all, i64 %lost2
  %some = icmp ne i64 %lost, 0
  %bit = zext i1 %some to i64
  %l4 = or i64 %l3, %bit
  %hw = zext i64 %h3 to i128
  %lw = zext i64 %l4 to i128
  %hs = shl i128 %hw, 64
  %r = or i128 %hs, %lw
  ret i128 %r
}
define internal double @fused_anyway(double %a, double %b, double %c) noinline {
  %asize = call double @llvm.fabs.f64(double %a)
  %bsize = call double @llvm.fabs.f64(double %b)
  %csize = call double @llvm.fabs.f64(double %c)
  %afinite = fcmp olt double %asize, 0x7FF0000000000000
  %bfinite = fcmp olt double %bsize, 0x7FF0000000000000
  %cfinite = fcmp olt double %csize, 0x7FF0000000000000
  %asome = fcmp one double %a, 0.0
  %bsome = fcmp one double %b, 0.0
  %x1 = and i1 %afinite, %bfinite
  %x2 = and i1 %asome, %bsome
  %finite = and i1 %x1, %x2
  br i1 %finite, label %product, label %plain
plain: ; the product is exact: zero, infinite or no number
  %p = fmul double %a, %b
  %pc = fadd double %p, %c
  ret double %pc
product:
  br i1 %cfinite, label %whole, label %keep
keep:
  %cc = fadd double %c, %c
  ret double %cc
whole:
  %abits = bitcast double %a to i64
  %bbits = bitcast double %b to i64
  %cbits = bitcast double %c to i64
  %absign = xor i64 %abits, %bbits
  %ma = call i64 @mantissa(double %a)
  %mb = call i64 @mantissa(double %b)
  %mc = call i64 @mantissa(double %c)
  %ea = call i64 @exponent(double %a)
  %eb = call i64 @exponent(double %b)
  %ec = call i64 @exponent(double %c)
  ; P = ma mb 2^20 below 2^126, in halves of 27 bits
  %ah = lshr i64 %ma, 27
  %al = and i64 %ma, 134217727
  %bh = lshr i64 %mb, 27
  %bl = and i64 %mb, 134217727
  %hh = mul i64 %ah, %bh
  %hl = mul i64 %ah, %bl
  %lh = mul i64 %al, %bh
  %ll = mul i64 %al, %bl
  %mid = add i64 %hl, %lh
  %hhw = zext i64 %hh to i128
  %midw = zext i64 %mid to i128
  %llw = zext i64 %ll to i128
  %hhs = shl i128 %hhw, 74
  %mids = shl i128 %midw, 47
  %lls = shl i128 %llw, 20
  %P1 = add i128 %hhs, %mids
  %P = add i128 %P1, %lls
  %eab = add i64 %ea, %eb
  %eP = sub i64 %eab, 20
  ; C = mc 2^73 below 2^126
  %mcw = zext i64 %mc to i128
  %C = shl i128 %mcw, 73
  %eC0 = sub i64 %ec, 73
  %cnone = icmp eq i64 %mc, 0
  %eC = select i1 %cnone, i64 %eP, i64 %eC0
  ; both with the larger exponent
  %Pless = icmp slt i64 %eP, %eC
  %e = select i1 %Pless, i64 %eC, i64 %eP
  %dP = sub i64 %e, %eP
  %dC = sub i64 %e, %eC
  %P2 = call i128 @lowered(i128 %P, i64 %dP)
  %C2 = call i128 @lowered(i128 %C, i64 %dC)
  %signs = xor i64 %absign, %cbits
  %opposite = icmp slt i64 %signs, 0
  %together = add i128 %P2, %C2
  %PC = sub i128 %P2, %C2
  %CP = sub i128 %C2, %P2
  %Csmall = icmp uge i128 %P2, %C2
  %apart = select i1 %Csmall, i128 %PC, i128 %CP
  %S = select i1 %opposite, i128 %apart, i128 %together
  %signof = select i1 %Csmall, i64 %absign, i64 %cbits
  %sign = and i64 %signof, -9223372036854775808
  %nothing = icmp eq i128 %S, 0
  br i1 %nothing, label %zero, label %round
zero:
  ret double 0.0
round:
  ; the leading bit of S to the top
  %wide = lshr i128 %S, 64
  %h = trunc i128 %wide to i64
  %l = trunc i128 %S to i64
  %hnone = icmp eq i64 %h, 0
  %h1 = select i1 %hnone, i64 %l, i64 %h
  %l1 = select i1 %hnone, i64 0, i64 %l
  %by64 = select i1 %hnone, i64 64, i64 0
  %zeros = call i64 @llvm.ctlz.i64(i64 %h1, i1 false)
  %h2 = call i64 @llvm.fshl.i64(i64 %h1, i64 %l1, i64 %zeros)
  %l2 = shl i64 %l1, %zeros
  %moved = add i64 %by64, %zeros
  %e1 = sub i64 %e, %moved
  %e2 = add i64 %e1, 127
  %lsome = icmp ne i64 %l2, 0
  %lbit = zext i1 %lsome to i64
  %H = or i64 %h2, %lbit
  ; below 2^-1022 the places are fixed
  %short = sub i64 -1022, %e2
  %tiny = icmp sgt i64 %short, 0
  %down = select i1 %tiny, i64 %short, i64 0
  %Hw = zext i64 %H to i128
  %Hl = call i128 @lowered(i128 %Hw, i64 %down)
  %H2 = trunc i128 %Hl to i64
  %X = select i1 %tiny, i64 -1022, i64 %e2
  %m = lshr i64 %H2, 11
  %rest = and i64 %H2, 2047
  %last = and i64 %m, 1
  %more = add i64 %rest, %last
  %up = icmp ugt i64 %more, 1024
  %one = zext i1 %up to i64
  %m1 = add i64 %m, %one
  %field = add i64 %X, 1022
  %top = shl i64 %field, 52
  %size = add i64 %top, %m1
  %large = icmp sgt i64 %X, 1023
  %bits = select i1 %large, i64 9218868437227405312, i64 %size
  %signed = or i64 %bits, %sign
  %r = bitcast i64 %signed to double
  ret double %r
}
"""

PAIR = """
define internal <2 x double> @fused_pair(<2 x double> %a, <2 x double> %b, <2 x double> %c) {
  %a0 = extractelement <2 x double> %a, i32 0
  %b0 = extractelement <2 x double> %b, i32 0
  %c0 = extractelement <2 x double> %c, i32 0
  %a1 = extractelement <2 x double> %a, i32 1
  %b1 = extractelement <2 x double> %b, i32 1
  %c1 = extractelement <2 x double> %c, i32 1
  %r0 = call double @fused(double %a0, double %b0, double %c0)
  %r1 = call double @fused(double %a1, double %b1, double %c1)
  %x = insertelement <2 x double> poison, double %r0, i32 0
  %r = insertelement <2 x double> %x, double %r1, i32 1
  ret <2 x double> %r
}
"""


def with_fma(text: str, relaxed: bool) -> str:
    """The text of a module with its multiply-adds as calls of its own function `fused`, or `relaxed` as those
    that `wasm_twins` takes; `fused` is part of it in both."""
    one, two = (ONE, TWO) if relaxed else (NAME, "fused_pair")
    text = text.replace(DECLARED, "").replace(PAIRS, "")
    text = text.replace("@llvm.fma.v2f64(", f"@{two}(").replace("@llvm.fma.f64(", f"@{one}(")
    present = set(text.splitlines())
    forms = (RELAXED if relaxed else UNUSUAL + USUAL + PAIR).splitlines()
    return text + "\n".join(x for x in forms if not (x.startswith("declare") and x in present))

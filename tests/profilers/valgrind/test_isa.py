"""What single instructions compute."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profkit.profilers.valgrind.instructions import OTHER, Instruction, classify_aarch64, classify_x86_64

# A mnemonic and its operands; kind, operations, bits of an element and of the vector.
X86_64 = """
addss xmm0, dword ptr [rax] | fp 1 32
mulsd xmm0, xmm1 | fp 1 64
addps xmm0, xmmword ptr [rax] | fp 4 32 128
addpd xmm0, xmm1 | fp 2 64 128
vaddps ymm0, ymm1, ymm2 | fp 8 32 256
vdivpd ymm0, ymm1, ymm2 | fp 4 64 256
vmulps zmm0, zmm1, zmm2 | fp 16 32 512
vfmadd231ps ymm0, ymm1, ymmword ptr [rax] | fp 16 32 256
vfnmsub132sd xmm0, xmm1, xmm2 | fp 2 64
vfmaddsub213pd xmm0, xmm1, xmm2 | fp 4 64 128
vaddph ymm0, ymm1, ymm2 | fp 16 16 256
sqrtsd xmm0, xmm1 | fp 1 64
maxps xmm0, xmm1 | fp 4 32 128
rsqrtps xmm0, xmm1 | fp 4 32 128
haddpd xmm0, xmm1 | fp 2 64 128
dpps xmm0, xmm1, 0xff | fp 8 32 128
vdpbf16ps zmm0, zmm1, zmm2 | fp 64 16 512
fmulp st(1) | fp 1 80
vpaddd ymm0, ymm1, ymm2 | simd-int 0 0 256
pcmpeqb xmm0, xmm1 | simd-int 0 0 128
add rax, rbx | other
movaps xmm0, xmm1 | other
vmovups ymm0, ymmword ptr [rax] | other
cvtsi2sd xmm0, rax | other
ucomiss xmm0, xmm1 | other
subsd xmm0, xmm1 | fp 1 64
sub rsp, 0x20 | other
push rbx | other
popcnt rax, rbx | other
pause | other
rep stosq qword ptr [rdi], rax | other
"""
AARCH64 = """
fadd s0, s1, s2 | fp 1 32
fmul d0, d1, d2 | fp 1 64
fadd h0, h1, h2 | fp 1 16
fmadd d0, d1, d2, d3 | fp 2 64
fmla v0.4s, v1.4s, v2.4s | fp 8 32 128
fmla v0.2d, v1.2d, v2.d[0] | fp 4 64 128
fsub v0.8h, v1.8h, v2.8h | fp 8 16 128
fmul v0.2s, v1.2s, v2.2s | fp 2 32 128
fsqrt s0, s1 | fp 1 32
bfdot v0.4s, v1.8h, v2.8h | fp 16 16 128
bfmmla v0.4s, v1.8h, v2.8h | fp 32 16 128
add v0.4s, v1.4s, v2.4s | simd-int 0 0 128
add x0, x1, x2 | other
fmov s0, s1 | other
fcmp d0, d1 | other
fcvt d0, s1 | other
ld1 {v0.4s}, [x0] | other
ldr q0, [x0] | other
"""


@pytest.mark.parametrize(("table", "classify"), [(X86_64, classify_x86_64), (AARCH64, classify_aarch64)])
def test_what_an_instruction_computes(table: str, classify: Callable[[str, str], Instruction]) -> None:
    for line in table.strip().splitlines():
        code, _, told = line.partition(" | ")
        mnemonic, _, operands = code.replace("rep stosq", "rep_stosq").partition(" ")
        kind, *numbers = told.split()
        expected = OTHER if kind == "other" else Instruction(kind, *map(int, numbers))  # type: ignore[arg-type]
        assert classify(mnemonic.replace("_", " "), operands) == expected, line

"""What single instructions compute."""

from __future__ import annotations

from profkit.profilers.valgrind.instructions import OTHER, Instruction, classify_x86_64

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


def test_what_an_instruction_computes() -> None:
    for line in X86_64.strip().splitlines():
        code, _, told = line.partition(" | ")
        mnemonic, _, operands = code.replace("rep stosq", "rep_stosq").partition(" ")
        kind, *numbers = told.split()
        expected = OTHER if kind == "other" else Instruction(kind, *map(int, numbers))  # type: ignore[arg-type]
        assert classify_x86_64(mnemonic.replace("_", " "), operands) == expected, line

"""What single instructions compute."""

from __future__ import annotations

import pytest

from profkit.profilers.valgrind.instructions import OTHER, Instruction, classify_aarch64, classify_x86_64


@pytest.mark.parametrize(
    ("mnemonic", "operands", "expected"),
    [
        ("addss", "xmm0, dword ptr [rax]", Instruction("fp", 1, 32)),
        ("mulsd", "xmm0, xmm1", Instruction("fp", 1, 64)),
        ("addps", "xmm0, xmmword ptr [rax]", Instruction("fp", 4, 32, 128)),
        ("addpd", "xmm0, xmm1", Instruction("fp", 2, 64, 128)),
        ("vaddps", "ymm0, ymm1, ymm2", Instruction("fp", 8, 32, 256)),
        ("vdivpd", "ymm0, ymm1, ymm2", Instruction("fp", 4, 64, 256)),
        ("vmulps", "zmm0, zmm1, zmm2", Instruction("fp", 16, 32, 512)),
        ("vfmadd231ps", "ymm0, ymm1, ymmword ptr [rax]", Instruction("fp", 16, 32, 256)),
        ("vfnmsub132sd", "xmm0, xmm1, xmm2", Instruction("fp", 2, 64)),
        ("vfmaddsub213pd", "xmm0, xmm1, xmm2", Instruction("fp", 4, 64, 128)),
        ("vaddph", "ymm0, ymm1, ymm2", Instruction("fp", 16, 16, 256)),
        ("sqrtsd", "xmm0, xmm1", Instruction("fp", 1, 64)),
        ("maxps", "xmm0, xmm1", Instruction("fp", 4, 32, 128)),
        ("rsqrtps", "xmm0, xmm1", Instruction("fp", 4, 32, 128)),
        ("haddpd", "xmm0, xmm1", Instruction("fp", 2, 64, 128)),
        ("dpps", "xmm0, xmm1, 0xff", Instruction("fp", 8, 32, 128)),
        ("vdpbf16ps", "zmm0, zmm1, zmm2", Instruction("fp", 64, 16, 512)),
        ("fmulp", "st(1)", Instruction("fp", 1, 80)),
        ("vpaddd", "ymm0, ymm1, ymm2", Instruction("simd-int", width=256)),
        ("pcmpeqb", "xmm0, xmm1", Instruction("simd-int", width=128)),
        ("add", "rax, rbx", OTHER),
        ("movaps", "xmm0, xmm1", OTHER),
        ("vmovups", "ymm0, ymmword ptr [rax]", OTHER),
        ("cvtsi2sd", "xmm0, rax", OTHER),
        ("ucomiss", "xmm0, xmm1", OTHER),
        ("subsd", "xmm0, xmm1", Instruction("fp", 1, 64)),
        ("sub", "rsp, 0x20", OTHER),
        ("push", "rbx", OTHER),
        ("popcnt", "rax, rbx", OTHER),
        ("pause", "", OTHER),
        ("rep stosq", "qword ptr [rdi], rax", OTHER),
    ],
)
def test_x86_64(mnemonic: str, operands: str, expected: Instruction) -> None:
    assert classify_x86_64(mnemonic, operands) == expected


@pytest.mark.parametrize(
    ("mnemonic", "operands", "expected"),
    [
        ("fadd", "s0, s1, s2", Instruction("fp", 1, 32)),
        ("fmul", "d0, d1, d2", Instruction("fp", 1, 64)),
        ("fadd", "h0, h1, h2", Instruction("fp", 1, 16)),
        ("fmadd", "d0, d1, d2, d3", Instruction("fp", 2, 64)),
        ("fmla", "v0.4s, v1.4s, v2.4s", Instruction("fp", 8, 32, 128)),
        ("fmla", "v0.2d, v1.2d, v2.d[0]", Instruction("fp", 4, 64, 128)),
        ("fsub", "v0.8h, v1.8h, v2.8h", Instruction("fp", 8, 16, 128)),
        ("fmul", "v0.2s, v1.2s, v2.2s", Instruction("fp", 2, 32, 128)),
        ("fsqrt", "s0, s1", Instruction("fp", 1, 32)),
        ("bfdot", "v0.4s, v1.8h, v2.8h", Instruction("fp", 16, 16, 128)),
        ("bfmmla", "v0.4s, v1.8h, v2.8h", Instruction("fp", 32, 16, 128)),
        ("add", "v0.4s, v1.4s, v2.4s", Instruction("simd-int", width=128)),
        ("add", "x0, x1, x2", OTHER),
        ("fmov", "s0, s1", OTHER),
        ("fcmp", "d0, d1", OTHER),
        ("fcvt", "d0, s1", OTHER),
        ("ld1", "{v0.4s}, [x0]", OTHER),
        ("ldr", "q0, [x0]", OTHER),
    ],
)
def test_aarch64(mnemonic: str, operands: str, expected: Instruction) -> None:
    assert classify_aarch64(mnemonic, operands) == expected

"""Loops that could compute several numbers at a time are told by their machine code (GCC 12, -O2)."""

from __future__ import annotations

import pytest

from profkit.profilers.valgrind.scalar_loops import scalar_work

SAXPY = (
    "movss xmm0, dword ptr [rdx]; mulss xmm0, dword ptr [rsi + rax]; addss xmm0, dword ptr [rdi + rax]; "
    "movss dword ptr [rdi + rax], xmm0; add rax, 4; cmp rax, rcx; jne 0x15f0"
)
STENCIL = (
    "movsd xmm0, qword ptr [rsi + rax*8]; movsd xmm2, qword ptr [rsi + rax*8 + 8]; mulsd xmm0, xmm1; mulsd xmm2, xmm3; "
    "addsd xmm0, xmm2; movsd xmm2, qword ptr [rsi + rax*8 + 0x10]; mulsd xmm2, xmm1; addsd xmm0, xmm2; "
    "movsd qword ptr [rdi + rax*8 + 8], xmm0; add rax, 1; cmp rax, rdx; jne 0x1750"
)
# y[i] = 2 * x[i] + a * y[i - 1]
FILTER = (
    "movsd xmm2, qword ptr [rsi + rax*8]; mulsd xmm1, xmm0; addsd xmm2, xmm2; addsd xmm1, xmm2; "
    "movsd qword ptr [rdi + rax*8], xmm1; add rax, 1; cmp rdx, rax; jne 0x1620"
)
# y[i] = 2 * y[i] + x[at[i]]
GATHER = (
    "movsxd rcx, dword ptr [rdx + rax]; movss xmm0, dword ptr [rdi + rax]; addss xmm0, xmm0; "
    "addss xmm0, dword ptr [rsi + rcx*4]; movss dword ptr [rdi + rax], xmm0; add rax, 4; cmp r8, rax; jne 0x16a8"
)
RANDOM = (
    "imul esi, esi, 0x19660d; pxor xmm0, xmm0; add rdi, 4; add esi, 0x3c6ef35f; mov eax, esi; shr eax, 0x10; "
    "cvtsi2ss xmm0, eax; mulss xmm0, xmm2; addss xmm0, xmm0; addss xmm0, xmm1; movss dword ptr [rdi - 4], xmm0; "
    "cmp rdi, rdx; jne 0x16f0"
)
IN_PLACE = (
    "mulsd xmm1, xmm4; add rax, 8; mulsd xmm0, xmm2; addsd xmm0, xmm1; movsd xmm1, qword ptr [rax]; movapd xmm3, xmm1; "
    "mulsd xmm3, xmm2; addsd xmm0, xmm3; movsd qword ptr [rax - 8], xmm0; cmp rdx, rax; jne 0x17c0"
)
COLUMN = (
    "movss xmm0, dword ptr [rdi]; add rdi, 4; addss xmm0, xmm0; addss xmm0, dword ptr [rsi]; add rsi, rax; "
    "movss dword ptr [rdi - 4], xmm0; cmp rdi, rdx; jne 0x1870"
)


@pytest.mark.parametrize(
    ("code", "work"),
    [
        (SAXPY, (2, 4)),
        (STENCIL, (5, 8)),
        (SAXPY.replace("ss ", "ps "), (0, 0)),
        (SAXPY.replace("cmp rax, rcx; ", "ucomiss xmm0, xmm3; ja 0x1700; cmp rax, rcx; "), (0, 0)),
        (SAXPY.replace("add rax, 4;", "call 0x1100; add rax, 4;"), (0, 0)),
        (SAXPY.replace("movss dword ptr [rdi + rax], xmm0; ", ""), (0, 0)),  # it stores nothing
        (FILTER, (0, 0)),
        (GATHER, (0, 0)),
        (RANDOM, (0, 0)),
        (IN_PLACE, (0, 0)),
        (COLUMN, (0, 0)),
    ],
)
def test_a_loop_whose_rounds_need_nothing_of_each_other(code: str, work: tuple[int, int]) -> None:
    parts = (line.strip().partition(" ") for line in code.split(";"))
    body = [(number, mnemonic, operands) for number, (mnemonic, _, operands) in enumerate(parts)]
    assert scalar_work(body) == work

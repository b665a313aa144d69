"""Loads that are a large, equal step apart are told from those whose address is computed otherwise, by their loop."""

from __future__ import annotations

import pytest

from profkit.profilers.valgrind.strides import strided_loads


def code_of(text: str) -> list[tuple[int, str, str]]:
    """Instructions of four bytes each, from address 0x1000 on; `top` is the address of the line with that label."""
    lines = [line.strip() for line in text.strip().splitlines()]
    top = next((0x1000 + 4 * n for n, line in enumerate(lines) if line.startswith("top: ")), 0)
    words = [line.removeprefix("top: ").replace("top", hex(top)).partition(" ") for line in lines]
    return [(0x1000 + 4 * n, mnemonic, operands) for n, (mnemonic, _, operands) in enumerate(words)]


COLUMN = """
top: addsd xmm0, qword ptr [rax]
add rax, 0x8000
cmp rax, rdx
jne top
"""
BY_REGISTER = """
top: addsd xmm0, qword ptr [rdi + rax*8]
add rcx, 1
add rax, rsi
cmp rcx, r8
jl top
"""
UNROLLED = """
top: addsd xmm0, qword ptr [rax]
addsd xmm1, qword ptr [rax + 0x8000]
lea rax, [rax + 0x10000]
cmp rdx, rax
jne top
"""
VECTORS = """
top: vaddps ymm0, ymm0, ymmword ptr [rax]
vaddps ymm1, ymm1, ymmword ptr [rax + 0x20]
vaddps ymm2, ymm2, ymmword ptr [rax + 0x40]
vaddps ymm3, ymm3, ymmword ptr [rax + 0x60]
add rax, 0x80
cmp rax, rdx
jne top
"""
ROW = """
top: addsd xmm0, qword ptr [rax]
add rax, 8
cmp rax, rdx
jne top
"""
HASH = """
top: mov rdx, rax
add rax, rcx
shr rdx, 0x21
and edx, 0xffffff
addsd xmm0, qword ptr [rdi + rdx*8]
cmp rsi, rax
jne top
"""
LIST = """
top: add rax, qword ptr [rdx + 8]
mov rdx, qword ptr [rdx]
sub rcx, 1
jne top
"""
INDICES = """
top: mov edx, dword ptr [rsi + rax*4]
addsd xmm0, qword ptr [rdi + rdx*8]
add rax, 1
cmp rax, rcx
jne top
"""
CHANGED_TWICE = """
top: addsd xmm0, qword ptr [rax]
add rax, 0x8000
cmp rax, rdx
jb top2
mov rax, rbx
jne top
"""
CALLS = """
top: mov edi, dword ptr [rbx]
add rbx, 0x8000
call 0x4000
cmp rbx, rbp
jne top
"""
STORES = """
top: movsd qword ptr [rax], xmm0
add rax, 0x8000
cmp rax, rdx
jne top
"""
STEP_CHANGES = """
top: addsd xmm0, qword ptr [rax]
add rax, rcx
imul rcx, rcx, 3
cmp rax, rdx
jne top
"""
NO_LOOP = """
addsd xmm0, qword ptr [rax]
add rax, 0x8000
ret
"""


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        (COLUMN, {0x1000}),
        (BY_REGISTER, {0x1000}),
        (UNROLLED, {0x1000, 0x1004}),
        (VECTORS, set()),  # in order: all that lies between is loaded, too
        (ROW, set()),
        (HASH, set()),
        (LIST, set()),
        (INDICES, set()),
        (CHANGED_TWICE, set()),
        (CALLS, set()),
        (STORES, set()),
        (STEP_CHANGES, set()),
        (NO_LOOP, set()),
    ],
)
def test_a_load_is_a_step_apart_where_its_loop_alone_moves_its_address(text: str, loads: set[int]) -> None:
    assert strided_loads(code_of(text)) == loads


def test_only_the_innermost_loop_says_how_an_address_moves() -> None:
    outer = code_of("top: mov rbx, rsi\n" + "nop \n" * 4 + "add rsi, 0x8000\ncmp rsi, r9\njne top")
    inner = [
        (0x1004, "addsd", "xmm0, qword ptr [rbx]"),
        (0x1008, "add", "rbx, 8"),
        (0x100C, "cmp", "rbx, rdx"),
    ]
    outer[1:5] = [*inner, (0x1010, "jne", "0x1004")]
    assert strided_loads(outer) == set()

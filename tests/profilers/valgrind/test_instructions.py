"""Instructions decoded where they stand, multiplied by how often they were executed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from elf_file import ADDRESS, write_elf

from profkit.profilers.valgrind.callgrind import read_executions
from profkit.profilers.valgrind.instructions import (
    OTHER,
    Instruction,
    InstructionCounts,
    classify_x86_64,
    instruction_mix,
    read_elf,
)
from tests.spoken import spoken_lines

DATA = Path(__file__).resolve().parents[2] / "data" / "valgrind"

#        vaddpd ymm0,ymm1,ymm2  vfmadd231ss xmm0,xmm1,xmm2  paddd xmm0,xmm1  ret
X86 = bytes.fromhex("c5f558c2c4e271b9c2660ffec1c3")
#        fmla v0.4s,v1.4s,v2.4s  fadd d0,d1,d2  ret


def report(library: Path | str, lines: str, positions: str = "instr line") -> str:
    return f"positions: {positions}\nevents: Ir Dr\nob={library}\nfl=a.c\nfn=kernel\n{lines}"


def written(folder: Path, text: str) -> Path:
    path = folder / "callgrind.out"
    path.write_text(text)
    return path


def test_operations_are_lanes_times_executions(tmp_path: Path) -> None:
    elf = write_elf(tmp_path / "lib.so", X86)
    lines = f"{ADDRESS:#x} 10 100 5\n+4 * 10\n+5 +1 7\n+4 * 1\n"
    mix = instruction_mix(written(tmp_path, report(elf, lines)))
    assert mix is not None
    assert mix.whole == InstructionCounts(
        executed=118, flop64=400, flop32=20, packed=100, scalar=10, simd_int=7, undecoded=0
    )
    assert [(scope.name, scope.id) for scope, _ in mix.functions] == [("kernel", str(elf))]
    counters = {c.name: c.value for c in mix.functions[0][1].counters()}
    assert (counters["FLOP"], counters["FPinstr"], counters["SIMDfp"]) == (420, 110, 100)


@pytest.mark.parametrize(
    ("what", "lines", "expected"),
    [
        ("absolute", "0x10 1 5\n0x20 1 6\n", {0x10: 5, 0x20: 6}),
        ("relative", "0x10 1 5\n+4 1 6\n-2 1 7\n* 1 1\n", {0x10: 5, 0x14: 6, 0x12: 8}),
        (
            "a call moves the address and adds nothing",
            "0x10 1 5\ncfn=g\ncalls=1 0x50 3\n+4 1 99\n+4 1 6\n",
            {0x10: 5, 0x18: 6},
        ),
        (
            "a jump moves the address and adds nothing",
            "0x10 1 5\njump=4 0x18 2\n+8 1\n+4 1 6\n",
            {0x10: 5, 0x1C: 6},
        ),
        ("the same address twice", "0x10 1 5\n0x10 2 6\n", {0x10: 11}),
    ],
)
def test_positions_are_followed(tmp_path: Path, what: str, lines: str, expected: dict[int, int]) -> None:
    executions = read_executions(written(tmp_path, report("lib.so", lines)))
    assert executions is not None
    assert executions["lib.so", "kernel"] == expected


def test_code_that_is_not_here_is_undecoded_and_counts_are_withheld() -> None:
    mix = instruction_mix(DATA / "kernels.l3.callgrind")
    assert mix is not None
    assert mix.whole.undecoded == mix.whole.executed == 393_234 + 6_594
    assert all(c.value is None and c.state == "not-counted" for c in mix.counters())
    assert "100.0 % of the instructions were not decoded" in spoken_lines(mix.notes)[0]
    assert "kernels" in spoken_lines(mix.notes)[0]


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("a table beyond the end", {"table": 1 << 62}),
        ("a million headers", {"count": 60_000}),
        ("headers of no size", {"entry": 0}),
    ],
)
def test_a_lying_elf_header_gives_nothing(tmp_path: Path, what: str, wrong: dict[str, int]) -> None:
    elf = read_elf(write_elf(tmp_path / "lib.so", X86, **wrong))
    assert elf is None or elf.read(ADDRESS, 4) == b""


# A mnemonic and its operands; kind, operations, bits of an element and of the vector.
X86_64 = """
addss xmm0, dword ptr [rax] | fp 1 32
mulsd xmm0, xmm1 | fp 1 64
addps xmm0, xmmword ptr [rax] | fp 4 32 128
addpd xmm0, xmm1 | fp 2 64 128
vaddps ymm0, ymm1, ymm2 | fp 8 32 256
vdivpd ymm0, ymm1, ymm2 | fp 4 64 256
vfmadd231ps ymm0, ymm1, ymmword ptr [rax] | fp 16 32 256
vfnmsub132sd xmm0, xmm1, xmm2 | fp 2 64
vfmaddsub213pd xmm0, xmm1, xmm2 | fp 4 64 128
sqrtsd xmm0, xmm1 | fp 1 64
maxps xmm0, xmm1 | fp 4 32 128
rsqrtps xmm0, xmm1 | fp 4 32 128
haddpd xmm0, xmm1 | fp 2 64 128
dpps xmm0, xmm1, 0xff | fp 8 32 128
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

"""Looks at registers of real programs: each fault is seen, and not where it was mended."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from profkit.backends.source_lines import seen_in_registers
from profkit.core.types import RegisterFact
from profkit.profilers.perf.look_records import Look, mark_stops, read_looks
from profkit.profilers.perf.looks import looks_argv

PROGRAMS = Path(__file__).with_name("programs")
SIZES = {
    "denormal": ("700000",),
    "divisor": ("2000000",),
    "contended": ("50000000",),
    "beside": ("120000000",),
    "record": ("120",),
    "column": ("3",),
}
FIXED_SIZES = {"denormal": ("12000000",), "beside": ("400000000",), "record": ("900",)}

needs_a_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="needs g++ on Linux and x86-64",
)


def seen(name: str, folder: Path, *, fixed: bool) -> tuple[RegisterFact, ...]:
    """Compile a form of a program, run it, and return what its registers showed."""
    program, looks = folder / f"{name}{'-fixed' * fixed}", folder / "looks"
    form = ["-DFIXED"] if fixed else []
    source = str(PROGRAMS / f"{name}.cpp")
    argv = ["g++", "-O2", "-g", "-std=c++17", "-pthread", *form, "-o", str(program), source]
    subprocess.run(argv, check=True, capture_output=True)
    size = FIXED_SIZES.get(name, SIZES[name]) if fixed else SIZES[name]
    command = looks_argv((str(program), *size), str(program), looks, 1.0)
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0
    found = read_looks(looks)
    if not found:
        pytest.skip("registers of other processes are not shown here")
    return seen_in_registers(program, found)


@pytest.mark.thorough
@needs_a_compiler
@pytest.mark.parametrize("kind", ["denormal", "divisor", "contended", "beside", "record"])
def test_a_fault_is_seen_in_registers_and_not_where_it_was_mended(kind: str, tmp_path: Path) -> None:
    written, mended = (seen(kind, tmp_path, fixed=fixed) for fixed in (False, True))
    assert {one.kind for one in written} == {kind}
    assert not mended
    fact = max(written, key=lambda one: one.looks)
    source = (PROGRAMS / f"{kind}.cpp").read_text().splitlines()
    assert fact.line is not None
    if kind == "denormal":
        assert fact.number == 64
        assert "b0 * x" in source[fact.line - 1]
    if kind == "divisor":
        assert fact.number == 101
        assert "% data.size()" in source[fact.line - 1]
    if kind == "contended":
        assert fact.threads == 2
        assert "fetch_add" in source[fact.line - 1]
    if kind == "record":
        assert (fact.number, fact.size) == (8, 208)


@needs_a_compiler
def test_columns_of_a_table_are_no_records_of_which_a_part_is_used(tmp_path: Path) -> None:
    assert not [one for one in seen("column", tmp_path, fixed=False) if one.kind == "record"]


@needs_a_compiler
def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    argv = looks_argv(("sh", "-c", "exit 7"), "/bin/sh", tmp_path / "looks", 1.0)
    assert subprocess.run(argv, check=False).returncode == 7


def test_a_switch_within_a_look_is_no_wait(tmp_path: Path) -> None:
    text = tmp_path / "switches.txt"
    rows = [
        b"1/7 10.000100: PERF_RECORD_SWITCH OUT        \n",
        b"1/7 10.900000: PERF_RECORD_SWITCH OUT        \n",
        b"1/8 10.000100: PERF_RECORD_SWITCH OUT        \n",
    ]
    text.write_bytes(b"".join(rows))
    mark_stops(text, [Look(7, 10.0, 10.001, 0, {}, (), 0)])
    assert text.read_bytes().splitlines(keepends=True) == [
        b"1/7 10.000100: PERF_RECORD_SWITCH OUT preempt\n",
        *rows[1:],
    ]

"""Inner loops are counted: how often they are entered, how often they go round, and whether they wait for a sum."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profkit.profilers.valgrind.callgrind import read_executions
from profkit.profilers.valgrind.loops import CountedLoop, loops_of

DOT = """
#include <cstdio>
double a[1000], b[1000];
__attribute__((noinline)) double dot(int n) {
    double s = 0;
#ifdef FOUR
    double t = 0, u = 0, v = 0;
    for (int i = 0; i + 3 < n; i += 4) {
        s += a[i] * b[i];
        t += a[i+1] * b[i+1];
        u += a[i+2] * b[i+2];
        v += a[i+3] * b[i+3];
    }
    return s + t + u + v;
#else
    for (int i = 0; i < n; i++) s += a[i] * b[i];
    return s;
#endif
}
int main() {
    double s = 0;
    for (int i = 0; i < 1000; i++) { a[i] = i; b[i] = 2; }
    for (int i = 0; i < 50; i++) s += dot(1000 - i % 3);
    std::printf("%.1f\\n", s);
}
"""
SEARCH = """
#include <cstdio>
#include <cstring>
struct Item { char name[24]; int value; } items[500];
__attribute__((noinline)) const Item* find(const char* name) {
    for (int i = 0; i < 500; i++)
        if (strcmp(items[i].name, name) == 0) return &items[i];
    return nullptr;
}
int main() {
    for (int i = 0; i < 500; i++) std::snprintf(items[i].name, 24, "item %d", i);
    int sum = 0;
    for (int i = 0; i < 40; i++) {
        char key[24];
        std::snprintf(key, 24, "item %d", 300 + i % 2);
        sum += int(find(key) - items);
    }
    std::printf("%d\\n", sum);
}
"""


def counted(source: str, folder: Path, *options: str) -> list[CountedLoop]:
    """Compile a program, run it under callgrind, and return its loops."""
    program, text, out = folder / "program", folder / "program.cpp", folder / "out"
    text.write_text(source)
    subprocess.run(["g++", "-O2", *options, "-o", str(program), str(text)], check=True, capture_output=True)
    argv = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}", str(program)]
    subprocess.run(argv, check=True, capture_output=True)
    return loops_of(read_executions(out) or {}, program)


needs_a_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


COLUMNS = """
#include <cstdio>
float field[512][512];
__attribute__((noinline)) void creep(float rate) {
#ifdef BY_ROWS
    for (int y = 1; y < 512; y++)
        for (int x = 0; x < 512; x++) field[y][x] += rate * field[y - 1][x];
#else
    for (int x = 0; x < 512; x++)
        for (int y = 1; y < 512; y++) field[y][x] += rate * field[y - 1][x];
#endif
}
int main() { for (int n = 0; n < 3; n++) creep(0.1f * n); std::printf("%f\\n", field[7][9]); }
"""


@pytest.mark.valgrind
@needs_a_compiler
def test_a_sum_in_one_chain_takes_longer_than_its_instructions(tmp_path: Path) -> None:
    first = counted(DOT, tmp_path)[0]
    assert first.entries == 50
    assert first.rounds == pytest.approx(999, abs=1)
    assert 2 <= first.serial < 4


@pytest.mark.valgrind
@needs_a_compiler
def test_four_sums_side_by_side_do_not(tmp_path: Path) -> None:
    assert not counted(DOT, tmp_path, "-DFOUR")[0].serial


@pytest.mark.valgrind
@needs_a_compiler
def test_a_search_with_calls_that_is_left_in_its_middle_is_counted(tmp_path: Path) -> None:
    first = counted(SEARCH, tmp_path)[0]
    assert first.entries == 40
    assert first.rounds == pytest.approx(301.5, abs=1)


@pytest.mark.valgrind
@needs_a_compiler
def test_loads_down_a_column_are_counted_in_their_loop(tmp_path: Path) -> None:
    by_columns, by_rows = counted(COLUMNS, tmp_path)[0], counted(COLUMNS, tmp_path, "-DBY_ROWS")[0]
    assert by_columns.strided >= by_columns.entries * 511
    assert by_rows.strided == 0

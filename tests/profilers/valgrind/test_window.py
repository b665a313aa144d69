"""A simulation that begins where a program comes to an address for the first time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profkit.backends.source_lines import address_of
from profkit.core.types import Cache
from profkit.profilers.valgrind.command import callgrind_argv, callgrind_outputs
from profkit.profilers.valgrind.read import read_callgrind
from profkit.profilers.valgrind.window import is_window, window_argv

SOURCE = r"""
#include <signal.h>
__attribute__((noinline)) long start(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ s; return s; }
__attribute__((noinline)) long hot(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ s; return s; }
int main(void) { signal(SIGUSR1, SIG_IGN); long s = start(3000000); raise(SIGUSR1); return (s ^ hot(1000)) == 12345; }
"""
TOOLS = [shutil.which(name) for name in ("gcc", "valgrind", "vgdb", "nm")]


@pytest.mark.skipif(None in TOOLS, reason="needs gcc, valgrind and binutils")
def test_what_comes_before_the_hot_place_is_not_counted_and_signals_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "work.c").write_text(SOURCE)
    program = tmp_path / "work"
    subprocess.run(["gcc", "-O1", "-g", "-o", str(program), str(tmp_path / "work.c")], check=True)
    address = address_of(program, "hot+0x0")
    assert address is not None
    cache = Cache(1, 32768, 8)
    callgrind = callgrind_argv(
        [str(program)], tmp_path / "out", i1=cache, d1=cache, last=cache, region=True, instructions=False
    )
    argv = window_argv(callgrind, str(program), address, str(tmp_path / "pipes"), str(TOOLS[2]))
    assert is_window(argv)
    assert not is_window(callgrind)
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    counted = read_callgrind(*callgrind_outputs(tmp_path / "out"))
    instructions = next(one.value for one in counted.counters if one.name == "Ir")
    assert instructions is not None
    assert 3_000 < instructions < 100_000
    assert list(tmp_path.glob("pipes*")) == []


def test_an_address_that_no_table_has_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    assert address_of(tmp_path / "text", "hot+0x0") is None
    assert address_of(tmp_path / "text", "[unknown]+0x0") is None

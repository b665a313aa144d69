"""Python's own instruments stop early on a long program, which goes on without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.profilers.cprofile import read_cprofile, read_pass_notes
from profkit.runtime.passes.command import HOST_PROGRAM
from profkit.runtime.passes.read import read_tracemalloc

PROGRAM = """
import time
kept = []
def early():
    kept.append([object() for _ in range(100)])
def late():
    return sum(range(100))
begin = time.perf_counter()
while time.perf_counter() - begin < 1.0:
    early()
while time.perf_counter() - begin < 1.4:
    late()
last = bytearray(100_000_000)
print("the program's own end")
"""

LAST = 100_000_000  # bytes


def run(kind: str, out: Path, longest: float | None) -> str:
    directive = json.dumps({"longest": longest})
    argv = [sys.executable, str(HOST_PROGRAM), kind, str(out), "--", "-c", PROGRAM]
    done = subprocess.run(
        argv, env={**os.environ, "PROFKIT_DIRECTIVE": directive}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("longest", [0.3, None])
def test_cprofile_sees_the_beginning_and_says_so_while_the_program_runs_to_its_end(tmp_path, longest):
    assert run("cprofile", tmp_path / "p.prof", longest) == "the program's own end\n"
    report = read_cprofile(tmp_path / "p.prof")
    names = {hotspot.function for hotspot in report.profiles[0].hotspots}
    assert "early" in names
    assert ("late" in names) == (longest is None)
    notes = read_pass_notes(tmp_path / "p.json")
    assert any("of a longer run" in note for note in notes) == (longest is not None)


@pytest.mark.parametrize("longest", [0.3, None])
def test_tracemalloc_stops_tracing_and_says_so(tmp_path, longest):
    assert run("tracemalloc", tmp_path / "t.json", longest) == "the program's own end\n"
    allocations = read_tracemalloc(tmp_path / "t.json")
    assert any("of a longer run" in note for note in allocations.notes) == (longest is not None)
    assert (allocations.peak > LAST) == (
        longest is None
    )  # the last block is not seen where it stopped before

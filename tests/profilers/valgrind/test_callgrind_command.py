"""The command line of a simulation, and what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import Cache
from profkit.profilers.valgrind.command import callgrind_argv, callgrind_outputs, single_thread_env
from profkit.profilers.valgrind.probe import probe_valgrind
from profkit.profilers.valgrind.read import read_callgrind

CACHES: dict[str, Any] = {"i1": Cache(1, 32768, 8), "d1": Cache(1, 49152, 12), "last": Cache(3, 36 << 20, 12)}


def argv(**options: Any) -> tuple[str, ...]:
    given = {"region": True, "instructions": False, **CACHES, **options}
    return callgrind_argv(["python", "a b.py"], Path("/run/x/l3"), **given)


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        ({}, "--instr-atstart=no", "--dump-instr=yes"),
        ({"region": False}, "--cache-sim=yes", "--instr-atstart=no"),
        ({"instructions": True}, "--dump-instr=yes", "--dump-line=yes"),
        ({}, "--D1=49152,12,64", ""),
        ({}, "--LL=37748736,9,64", ""),
        ({}, "--callgrind-out-file=/run/x/l3.%p", ""),
        ({"setarch": "/usr/bin/setarch"}, "/usr/bin/setarch", ""),
        ({"valgrind": "/opt/v"}, "/opt/v", "valgrind"),
    ],
)
def test_options(options: dict[str, Any], present: str, absent: str) -> None:
    command = argv(**options)
    assert present in command
    assert absent not in command


def test_outputs_are_this_runs_files_in_order_of_pids(tmp_path: Path) -> None:
    for name in ("l3.20", "l3.9", "l3.9.core", "l2.5", "l3.log", "l3"):
        (tmp_path / name).write_text("# callgrind format\n")
    (tmp_path / "l3.7").touch()  # of a process that was killed before it could write
    assert [p.name for p in callgrind_outputs(tmp_path / "l3")] == ["l3.9", "l3.20"]


@pytest.mark.valgrind
def test_valgrind_works_here_and_says_its_version() -> None:
    ability = probe_valgrind()
    assert ability.works, ability.reason
    assert ability.version is not None
    assert int(ability.version.split(".")[0]) >= 3


def test_a_machine_without_valgrind_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFKIT_VALGRIND", "/nowhere/valgrind")
    probe_valgrind.cache_clear()
    try:
        ability = probe_valgrind()
    finally:
        probe_valgrind.cache_clear()
    assert not ability.works
    assert "not installed" in (ability.reason or "")
    assert "install valgrind" in (ability.fix or "")


@pytest.mark.valgrind
def test_a_whole_program_with_a_child_leaves_a_file_each(tmp_path: Path) -> None:
    out = tmp_path / "100%"
    script = "import os; pid = os.fork(); pid and os.wait()"
    command = callgrind_argv(
        ["env", sys.executable, "-I", "-S", "-c", script], out, region=False, instructions=True, **CACHES
    )
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **single_thread_env()})
    files = callgrind_outputs(out)
    assert len(files) == 2
    executed = {c.name: c.value or 0 for c in read_callgrind(*files).counters}["Ir"]
    assert executed > 5_000_000

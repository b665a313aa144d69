"""The command line of a simulation, and what it leaves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.core.types import Cache
from profkit.profilers.valgrind.command import (
    callgrind_argv,
    callgrind_outputs,
    explain,
    fit_geometry,
    single_thread_env,
)
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
        ({"fair": True}, "--fair-sched=try", ""),
        ({}, "--vex-iropt-level=1", "--fair-sched=try"),
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


@pytest.mark.thorough
@pytest.mark.valgrind
def test_a_whole_program_with_a_child_leaves_a_file_each(tmp_path: Path) -> None:
    out = tmp_path / "100%"
    program = ["env", "sh", "-c", "env true; exit 0"]
    command = callgrind_argv(program, out, region=False, instructions=True, **CACHES)
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **single_thread_env()})
    files = callgrind_outputs(out)
    assert len(files) == 2
    executed = {c.name: c.value or 0 for c in read_callgrind(*files).counters}["Ir"]
    assert executed > 100_000


KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("what", "cache", "option"),
    [
        ("Zen 5 L1", Cache(1, 48 * KIB, 12), "49152,12,64"),
        ("Zen 5 L2", Cache(2, MIB, 16), "1048576,16,64"),
        ("Alder Lake L2", Cache(2, 1280 * KIB, 10), "1310720,10,64"),
        ("Ice Lake server L2", Cache(2, 1280 * KIB, 20), "1310720,20,64"),
        ("Apple lines of 128 B", Cache(1, 128 * KIB, 8, line=128), "131072,8,128"),
        ("a cloud machine's 320 MiB", Cache(3, 320 * MIB, 20), "335544320,20,64"),
        ("EPYC's 32 MiB", Cache(3, 32 * MIB, 16), "33554432,16,64"),
        ("36 MiB, 12 ways: other ways, same size", Cache(3, 36 * MIB, 12), "37748736,9,64"),
        ("24.75 MiB, 11 ways: nearly the same", Cache(3, 24 * MIB + 768 * KIB, 11), "25165824,12,64"),
        ("ways unknown", Cache(3, 8 * MIB, 0), "8388608,16,64"),
    ],
)
def test_nearest_legal_geometry(what: str, cache: Cache, option: str) -> None:
    assert fit_geometry(cache).option() == option


@given(st.integers(1024, 1 << 30), st.integers(0, 40), st.sampled_from([32, 64, 128]))
def test_any_cache_gets_a_power_of_two_of_sets_and_nearly_its_size(size: int, ways: int, line: int) -> None:
    fitted = fit_geometry(Cache(2, size, ways, line))
    assert fitted.sets * fitted.ways * fitted.line == fitted.size
    assert fitted.sets & (fitted.sets - 1) == 0
    assert 0.66 < fitted.size / size < 1.5


AVX512 = """\
vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48 0x10 0x7 0x62 0xF1 0x74 0x48
==12== valgrind: Unrecognised instruction at address 0x109136.
==12== Your program just tried to execute an instruction that Valgrind
==12== did not recognise.
==12== Process terminating with default action of signal 4 (SIGILL)
==12==  Illegal opcode at address 0x109136
"""
OTHER_OPCODE = AVX512.replace("0x62 0xF1 0x7C 0x48", "0xF 0xB 0x7C 0x48")
NO_TOOL = "valgrind: failed to start tool 'callgrind' for platform 'amd64-linux': No such file or directory"
STRIPPED = """\
valgrind:  Fatal error at startup: a function redirection
valgrind:  which is mandatory for this platform-tool combination
valgrind:  cannot be set up.  Details of the redirection are:
valgrind:  A must-be-redirected function
valgrind:  whose name matches the pattern:      strlen
valgrind:  in an object with soname matching:   ld-linux-x86-64.so.2
"""
NO_MEMORY = "valgrind: mmap(0x38000000, 2097152) failed in UME with error 12 (Cannot allocate memory)."
BAD_CACHE = "valgrind: Bad option: --LL=37748736,12,64\nCache set count is not a power of two."


@pytest.mark.parametrize(
    ("text", "returncode", "reason", "fix"),
    [
        (AVX512, -4, "no AVX-512", "haswell"),
        (OTHER_OPCODE, -4, "does not know", "newer valgrind"),
        (NO_TOOL, 1, "no callgrind", "apt-get install"),
        (STRIPPED, 1, "stripped", "libc6-dbg"),
        (NO_MEMORY, 1, "no memory", "ulimit"),
        (BAD_CACHE, 1, "geometry", None),
        (
            "valgrind: the 'impossible' happened:\n   LibVEX called failure_exit().",
            1,
            "itself failed",
            "newer",
        ),
        ("valgrind: ./nope: command not found", 127, "could not start", None),
        ("", -9, "SIGKILL", "memory"),
        ("", 137, "SIGKILL", "memory"),
    ],
)
def test_known_faults(text: str, returncode: int, reason: str, fix: str | None) -> None:
    fault = explain(text, returncode)
    assert fault is not None
    assert reason in fault.reason
    assert (fix is None) if fault.fix is None else (fix is None or fix in fault.fix)


@pytest.mark.parametrize(
    ("text", "returncode"),
    [("all is well", 0), ("Traceback (most recent call last):\nValueError: no", 1), ("", 3), (AVX512, 0)],
)
def test_the_workloads_own_failure_is_not_valgrinds(text: str, returncode: int) -> None:
    assert explain(text, returncode) is None

"""Finds valgrind, tries it with a tiny simulation, and makes the doctor's checks of it."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError, UnreadableReport
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.tables import judge_rows
from profkit.core.types import Cache, Check, Directive, Report, Step, Switch
from profkit.hardware.machine import data_cache, data_caches, instruction_cache
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import ToolAbility, ask_tool, ask_version, find_tool
from profkit.profilers.valgrind.command import (
    INSTALL,
    callgrind_argv,
    callgrind_outputs,
    explain,
    single_thread_env,
)
from profkit.profilers.valgrind.read import read_callgrind

_TABLE = Path(__file__).with_name("checks.yaml")
_ELSEWHERE = ("/usr/local/bin", "/opt/valgrind/bin", "/opt/homebrew/bin")  # not always on a service's PATH


def find_valgrind() -> Path | None:
    """Return the valgrind to call: `PROFKIT_VALGRIND` if set, else from PATH or a usual place."""
    return find_tool("valgrind", "PROFKIT_VALGRIND", folders=_ELSEWHERE)


_SECONDS = 60.0  # simulating `true` takes half a second; a busy machine may take many times that
_TINY = Cache(1, 32768, 8)
_VERSION = re.compile(r"valgrind-(\S+)")


@dataclass(frozen=True)
class ValgrindAbility(ToolAbility):
    """What valgrind can do on this machine."""

    setarch: str | None = None  # a setarch that may take the randomness out of addresses


@lru_cache(maxsize=1)
def probe_valgrind() -> ValgrindAbility:
    """Simulate `true` once and read the result; the answer is kept for this process."""
    absent = Fault("valgrind is not installed", INSTALL)
    if sys.platform == "darwin":
        absent = Fault("valgrind does not run on macOS", "--tool xctrace   (Instruments counts on macOS)")
    answer = ask_version(find_valgrind() or absent, _VERSION, lambda *_: None, f"reinstall it: {INSTALL}")
    if not answer.works:
        return ValgrindAbility(**vars(answer))
    valgrind = ValgrindAbility(**vars(answer), setarch=_find_setarch())
    fault = _simulate_nothing(valgrind)
    return valgrind if fault is None else replace(valgrind, works=False, reason=fault.reason, fix=fault.fix)


def _simulate_nothing(valgrind: ValgrindAbility) -> Fault | None:
    """Return why a simulation of `true` leaves no counts; None where it does."""
    true = shutil.which("true") or "/bin/true"
    with TemporaryFolder("probe") as folder:
        out = Path(folder) / "probe"
        argv = callgrind_argv(
            [true],
            out,
            i1=_TINY,
            d1=_TINY,
            last=Cache(2, 1 << 20, 16),
            region=False,
            instructions=True,
            valgrind=str(valgrind.path),
            setarch=valgrind.setarch,
        )
        returncode, text = ask_tool(argv, _SECONDS)
        if returncode != 0:
            ended = f"valgrind ended with {returncode}: {' '.join(text.split())[-200:]}"
            return explain(text, returncode) or Fault(ended)
        try:
            counted = any(counter.value for counter in _read_outputs(out).counters)
        except UnreadableReport as error:
            return Fault(error.message, error.fix)
    return None if counted else Fault("callgrind ran, but wrote no counts")


def _find_setarch() -> str | None:
    """Return a setarch that works: containers often forbid the call that switches randomisation off."""
    program = shutil.which("setarch")
    if program is None or platform.system() != "Linux":
        return None
    return (
        program if ask_tool((program, "-R", shutil.which("true") or "/bin/true"), _SECONDS)[0] == 0 else None
    )


def _read_outputs(out: Path) -> Report:
    files = callgrind_outputs(out)
    if not files:
        raise UnreadableReport("callgrind wrote no counts")
    return read_callgrind(*files)


def judge_valgrind(ability: ValgrindAbility | None = None) -> Iterator[Check]:
    """Return checks of what the probe found; where valgrind is absent, one check that says so."""
    return judge_rows(_TABLE, "valgrind", ability or probe_valgrind(), {"install": INSTALL})


def recording_step(request: RecordRequest) -> Step:
    """Return the step that records for `collect_report`. Raises MachineError where it cannot be done here."""
    valgrind = probe_valgrind()
    if not valgrind.works:
        raise MachineError(valgrind.reason or "valgrind does not work here", valgrind.fix)
    first, levels = data_cache(request.machine, 1), data_caches(request.machine)
    if first is None or len(levels) < 2:
        raise MachineError(
            "this machine does not report the geometry of its caches, and a guess would say nothing about it"
        )
    argv = callgrind_argv(
        request.command,
        request.scratch / "callgrind",
        i1=instruction_cache(request.machine),
        d1=first,
        last=levels[-1],
        region=request.marked,
        instructions=True,
        valgrind=str(valgrind.path),
        setarch=valgrind.setarch,
    )
    directive = Directive(
        "counters",
        str(request.scratch / "region"),
        switch=Switch("valgrind") if request.marked else None,
        iterations=1,
    )
    return Step("record", argv, env=single_thread_env(), directive=directive, tool="valgrind")


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy the simulation's report: of several processes the largest file.

    Raises MachineError if there is none.
    """
    files = sorted(callgrind_outputs(request.scratch / "callgrind"), key=lambda path: path.stat().st_size)
    if not files:
        raise MachineError("valgrind left no report: the workload ended before it could write one")
    shutil.copyfile(files[-1], request.report)
    if len(files) == 1:
        return ()
    return (f"the workload ran {len(files)} processes; the report is that of the largest",)

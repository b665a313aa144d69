"""`profkit record --tool valgrind`: one callgrind simulation of a workload, in one file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from profkit.core.errors import MachineError
from profkit.core.types import Directive, Machine, Step, Switch
from profkit.hardware.caches import data_cache, data_caches, instruction_cache
from profkit.profilers.valgrind.command import callgrind_argv, outputs, single_thread_env
from profkit.profilers.valgrind.probe import probe_valgrind


def recipe(
    what: Literal["samples", "counters"],  # noqa: ARG001 - a simulation has both in one
    command: tuple[str, ...],
    report: Path,  # noqa: ARG001 - callgrind names its files itself, one per process
    scratch: Path,
    *,
    marked: bool,
    python: tuple[int, int] | None,  # noqa: ARG001 - every interpreter is simulated alike
    machine: Machine,
) -> Step:
    """The step after which `collect` makes `report`. Raises MachineError where valgrind cannot do it here."""
    valgrind = probe_valgrind()
    if not valgrind.works:
        raise MachineError(valgrind.reason or "valgrind does not work here", valgrind.fix)
    first, levels = data_cache(machine, 1), data_caches(machine)
    if first is None or len(levels) < 2:
        raise MachineError("this machine tells no cache geometry, and a guessed one says nothing about it")
    argv = callgrind_argv(
        command,
        scratch / "callgrind",
        i1=instruction_cache(machine),
        d1=first,
        last=levels[-1],
        region=marked,
        instructions=True,
        valgrind=str(valgrind.path),
        setarch=valgrind.setarch,
    )
    directive = Directive(
        "counters", str(scratch / "region"), switch=Switch("valgrind") if marked else None, iterations=1
    )
    return Step("record", argv, env=single_thread_env(), directive=directive, tool="valgrind")


def collect(scratch: Path, report: Path) -> tuple[str, ...]:
    """Move what the simulation left to `report`: of several processes the one that wrote most; remarks on the rest."""
    files = sorted(outputs(scratch / "callgrind"), key=lambda path: path.stat().st_size)
    if not files:
        raise MachineError("valgrind left no report: the workload ended before it could write one")
    shutil.copyfile(files[-1], report)
    if len(files) == 1:
        return ()
    return (f"the workload ran {len(files)} processes; the report is that of the largest",)

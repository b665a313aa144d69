"""valgrind: a simulation that counts instructions, cache misses and branches."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from profkit.core.errors import Fault, MachineError
from profkit.core.types import Check, Directive, Step, Switch
from profkit.hardware.processor import data_cache, data_caches, instruction_cache
from profkit.profilers.profiler import Format, Recorder, RecordRequest, lazy_function
from profkit.profilers.valgrind.command import callgrind_argv, callgrind_outputs, explain, single_thread_env


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect_report` makes the report. Raises MachineError where valgrind cannot do it here."""
    from profkit.profilers.valgrind.probe import probe_valgrind

    valgrind = probe_valgrind()
    if not valgrind.works:
        raise MachineError(valgrind.reason or "valgrind does not work here", valgrind.fix)
    first, levels = data_cache(request.machine, 1), data_caches(request.machine)
    if first is None or len(levels) < 2:
        raise MachineError("this machine tells no cache geometry, and a guessed one says nothing about it")
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
    """Copy what the simulation left to the report: of several processes the file that is largest."""
    files = sorted(callgrind_outputs(request.scratch / "callgrind"), key=lambda path: path.stat().st_size)
    if not files:
        raise MachineError("valgrind left no report: the workload ended before it could write one")
    shutil.copyfile(files[-1], request.report)
    if len(files) == 1:
        return ()
    return (f"the workload ran {len(files)} processes; the report is that of the largest",)


class Valgrind:
    """valgrind's callgrind and cachegrind."""

    name = "valgrind"
    formats = (
        Format(
            "callgrind",
            name,
            "callgrind",
            lazy_function("profkit.profilers.valgrind.read.looks_like_callgrind"),
            lazy_function("profkit.profilers.valgrind.read.read_callgrind_with_mix"),
        ),
        Format(
            "cachegrind",
            name,
            "cachegrind",
            lazy_function("profkit.profilers.valgrind.read.looks_like_cachegrind"),
            lazy_function("profkit.profilers.valgrind.read.read_cachegrind"),
        ),
    )
    recorder = Recorder(
        recording_step,
        collect_report,
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What valgrind's error means."""
        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it simulates here."""
        from profkit.profilers.valgrind.probe import valgrind_checks

        return valgrind_checks()

"""valgrind: callgrind's simulated caches and branches, and what its errors mean.

Its `Profiler` is at the end. The functions above it import the tool's modules when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import Check, Report, Step
from profkit.profilers.profiler import Format, Profiler, Recorder, RecordRequest


def _looks_like_callgrind(head: bytes) -> bool:
    from profkit.profilers.valgrind.read import looks_like_callgrind

    return looks_like_callgrind(head)


def _read_callgrind_with_mix(path: Path) -> Report:
    from profkit.profilers.valgrind.read import read_callgrind_with_mix

    return read_callgrind_with_mix(path)


def _recording_step(request: RecordRequest) -> Step:
    from profkit.profilers.valgrind.probe import recording_step

    return recording_step(request)


def _collect_report(request: RecordRequest) -> tuple[str, ...]:
    from profkit.profilers.valgrind.probe import collect_report

    return collect_report(request)


def _explain(text: str, returncode: int) -> Fault | None:
    from profkit.profilers.valgrind.command import explain

    return explain(text, returncode)


def _judge_valgrind() -> Iterable[Check]:
    from profkit.profilers.valgrind.probe import judge_valgrind

    return judge_valgrind()


VALGRIND = Profiler(
    "valgrind",
    (Format("callgrind", "valgrind", "callgrind", _looks_like_callgrind, _read_callgrind_with_mix),),
    recorder=Recorder(step=_recording_step, collect=_collect_report),
    explain=_explain,
    checks=_judge_valgrind,
)

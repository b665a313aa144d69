"""Linux perf: how to find it, how to run it, how to read its output, and what its errors mean.

Its `Profiler` is at the end. The functions above it import the tool's modules when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import Check, Report, Step
from profkit.profilers.profiler import Conversion, Format, Profiler, Recorder, RecordRequest, begins_with


def _looks_like_script(head: bytes) -> bool:
    from profkit.profilers.perf.script import looks_like_script

    return looks_like_script(head)


def _read_script(path: Path) -> Report:
    from profkit.profilers.perf.script import read_script

    return read_script(path)


def _conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    from profkit.profilers.perf.probe import conversion_argv

    return conversion_argv(report, output)


def _looks_like_stat_csv(head: bytes) -> bool:
    from profkit.profilers.perf.stat_csv import looks_like_stat_csv

    return looks_like_stat_csv(head)


def _read_stat_csv(path: Path) -> Report:
    from profkit.profilers.perf.stat_csv import read_stat_csv

    return read_stat_csv(path)


def _looks_like_stat_json(head: bytes) -> bool:
    from profkit.profilers.perf.stat_json import looks_like_stat_json

    return looks_like_stat_json(head)


def _read_stat_json(path: Path) -> Report:
    from profkit.profilers.perf.stat_json import read_stat_json

    return read_stat_json(path)


def _looks_like_stat_text(head: bytes) -> bool:
    from profkit.profilers.perf.stat_csv import looks_like_stat_text

    return looks_like_stat_text(head)


def _read_stat_text(path: Path) -> Report:
    from profkit.profilers.perf.stat_csv import read_stat_text

    return read_stat_text(path)


def _recording_step(request: RecordRequest) -> Step:
    from profkit.profilers.perf.probe import recording_step

    return recording_step(request)


def _explain(text: str, returncode: int) -> Fault | None:
    from profkit.profilers.perf.command import explain

    return explain(text, returncode)


def _checks() -> Iterable[Check]:
    from profkit.profilers.perf.probe import perf_checks

    return perf_checks()


_AS_TEXT = "perf script -i {name} > {stem}.txt"
PERF = Profiler(
    "perf",
    (
        Format(
            "perf-data",
            "perf",
            "perf.data",
            begins_with(b"PERFILE2"),
            _read_script,
            as_text=_AS_TEXT,
            conversion=Conversion(_conversion_argv, "converted.txt", _AS_TEXT),
        ),
        Format("perf-stat-csv", "perf", "perf stat -x", _looks_like_stat_csv, _read_stat_csv),
        Format("perf-stat-json", "perf", "perf stat -j", _looks_like_stat_json, _read_stat_json),
        Format("perf-stat-text", "perf", "perf stat", _looks_like_stat_text, _read_stat_text),
        Format("perf-script", "perf", "perf script", _looks_like_script, _read_script, has_stacks=True),
    ),
    # Without --no-inline perf starts addr2line for each sample: minutes for a program of a few seconds.
    recorder=Recorder(step=_recording_step, viewer="perf report --no-inline -i {name}"),
    explain=_explain,
    checks=_checks,
)

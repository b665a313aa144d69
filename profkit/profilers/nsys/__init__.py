"""Nsight Systems: find it, run it, and read its SQLite exports and the tables of `nsys stats`.

Its `Profiler` is at the end. The functions above it import the tool's modules when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import Check, Report, Step
from profkit.profilers.profiler import Conversion, Format, Profiler, Recorder, RecordRequest, begins_with


def _read_sqlite(path: Path) -> Report:
    from profkit.profilers.nsys.sqlite import read_sqlite

    return read_sqlite(path)


def _conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    from profkit.profilers.nsys.probe import conversion_argv

    return conversion_argv(report, output)


def _looks_like_stats(head: bytes) -> bool:
    from profkit.profilers.nsys.stats import looks_like_stats

    return looks_like_stats(head)


def _read_stats(path: Path) -> Report:
    from profkit.profilers.nsys.stats import read_stats

    return read_stats(path)


def _recording_step(request: RecordRequest) -> Step:
    from profkit.profilers.nsys.probe import recording_step

    return recording_step(request)


def _collect_report(request: RecordRequest) -> tuple[str, ...]:
    from profkit.profilers.nsys.probe import collect_report

    return collect_report(request)


def _device_ids() -> tuple[str, ...]:
    from profkit.hardware.nvidia import read_gpu_uuids

    return read_gpu_uuids()


def _explain(text: str, returncode: int) -> Fault | None:
    from profkit.profilers.nsys.command import explain

    return explain(text, returncode)


def _judge_nsys() -> Iterable[Check]:
    from profkit.profilers.nsys.probe import judge_nsys

    return judge_nsys()


_AS_TEXT = "nsys stats --report cuda_gpu_kern_sum --format csv {name} > {stem}.csv"
NSYS = Profiler(
    "nsys",
    (
        # The names of its tables need not be in the first 64 KiB: any SQLite file that no other format accepts is
        # opened, and `check_export` tells whose it is.
        Format(
            "nsys-sqlite",
            "nsys",
            "nsys SQLite",
            begins_with(b"SQLite format 3\x00"),
            _read_sqlite,
            as_text=_AS_TEXT,
            any_content=True,
        ),
        Format(
            "nsys-rep",
            "nsys",
            ".nsys-rep",
            begins_with(b"NVIDIA Tegra Profiler Report"),
            _read_sqlite,
            as_text=_AS_TEXT,
            conversion=Conversion(
                _conversion_argv,
                "converted.sqlite",
                "nsys export --type=sqlite --output={stem}.sqlite {name}",
            ),
        ),
        Format("nsys-stats-csv", "nsys", "nsys stats", _looks_like_stats, _read_stats),
    ),
    recorder=Recorder(
        step=_recording_step, collect=_collect_report, device_ids=_device_ids, viewer="nsys stats {name}"
    ),
    explain=_explain,
    checks=_judge_nsys,
)

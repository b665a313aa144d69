"""Nsight Compute (`ncu`) counts on GPU kernels: find it, run it, read its reports, explain its errors.

Its `Profiler` is at the end. The functions above it import the tool's modules when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import Check, Report, Step
from profkit.profilers.profiler import Format, Profiler, Recorder, RecordRequest, begins_with


def _read_rep(path: Path) -> Report:
    from profkit.profilers.ncu.rep import read_ncu_rep

    return read_ncu_rep(path)


def _looks_like_csv(head: bytes) -> bool:
    from profkit.profilers.ncu.csv_report import looks_like_ncu_csv

    return looks_like_ncu_csv(head)


def _read_csv(path: Path) -> Report:
    from profkit.profilers.ncu.csv_report import read_ncu_csv

    return read_ncu_csv(path)


def _recording_step(request: RecordRequest) -> Step:
    from profkit.profilers.ncu.probe import recording_step

    return recording_step(request)


def _collect_report(request: RecordRequest) -> tuple[str, ...]:
    from profkit.profilers.ncu.probe import collect_report

    return collect_report(request)


def _device_ids() -> tuple[str, ...]:
    from profkit.hardware.nvidia import read_gpu_uuids

    return read_gpu_uuids()


def _explain(text: str, returncode: int) -> Fault | None:
    from profkit.profilers.ncu.probe import explain

    return explain(text, returncode)


def _judge_ncu() -> Iterable[Check]:
    from profkit.profilers.ncu.probe import judge_ncu

    return judge_ncu()


_AS_TEXT = "ncu --import {name} --csv --page raw > {stem}.csv"
NCU = Profiler(
    "ncu",
    (
        Format("ncu-rep", "ncu", ".ncu-rep", begins_with(b"NVR\0"), _read_rep, as_text=_AS_TEXT),
        Format("ncu-csv", "ncu", "ncu --csv", _looks_like_csv, _read_csv),
    ),
    recorder=Recorder(
        step=_recording_step,
        collect=_collect_report,
        picks_kernel=True,
        device_ids=_device_ids,
        viewer="ncu --import {name}",
    ),
    explain=_explain,
    checks=_judge_ncu,
)

"""xctrace, the recorder of Instruments: finds it, runs it, reads its exports, explains its errors.

A recording passes through `command` and `export` on a Mac. Its XML becomes rows in `toc` and `tables`, on any
machine. Rows become what happened in the `metal_` modules (the GPU) and `cpu`; `alignment` finds the marked
region in it. `report` puts both into one report.

Its `Profiler` is at the end. The functions above it import the tool's modules when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import Check, Report, Step
from profkit.profilers.profiler import Conversion, Format, Profiler, Recorder, RecordRequest


def _looks_like_table(head: bytes) -> bool:
    from profkit.profilers.xctrace.toc import looks_like_table

    return looks_like_table(head)


def _looks_like_toc(head: bytes) -> bool:
    from profkit.profilers.xctrace.toc import looks_like_toc

    return looks_like_toc(head)


def _is_document(path: Path) -> bool:
    from profkit.profilers.xctrace.toc import is_document

    return is_document(path)


def _has_exports(path: Path) -> bool:
    from profkit.profilers.xctrace.toc import has_exports

    return has_exports(path)


def _read_exports(path: Path) -> Report:
    from profkit.profilers.xctrace.report import read_exports

    return read_exports(path)


def _conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    from profkit.profilers.xctrace.export import conversion_argv

    return conversion_argv(report, output)


def _recording_step(request: RecordRequest) -> Step:
    from profkit.profilers.xctrace.export import recording_step

    return recording_step(request)


def _collect_report(request: RecordRequest) -> tuple[str, ...]:
    from profkit.profilers.xctrace.export import collect_report

    return collect_report(request)


def _check_target(path: Path) -> None:
    from profkit.profilers.xctrace.export import check_target

    check_target(path)


def _report_names(report: str) -> tuple[str, ...]:
    from profkit.profilers.xctrace.export import report_names

    return report_names(report)


def _explain_fault(text: str, returncode: int) -> Fault | None:
    from profkit.profilers.xctrace.command import explain_fault

    return explain_fault(text, returncode)


def _judge_xctrace() -> Iterable[Check]:
    from profkit.profilers.xctrace.export import judge_xctrace

    return judge_xctrace()


# The tables that most of a report of xctrace is made of: `xctrace.report.wanted_schemas` has all.
EXPORTED_TABLES = (
    "metal-gpu-intervals",
    "metal-gpu-state-intervals",
    "metal-application-encoders-list",
    "metal-gpu-counter-intervals",
    "graphics-compiler-activity-intervals",
    "metal-shader-profiler-shader-list",
    "metal-shader-profiler-intervals",
    "metal-command-buffer-frame-assignment",
    "displayed-surfaces-interval",
    "time-info",
    "time-profile",
)
_AS_TEXT = (
    "mkdir exports; xctrace export --input {name} --toc --output exports/toc.xml; "
    f"for t in {' '.join(EXPORTED_TABLES)}; do xctrace export --input {{name}} "
    "--xpath '/trace-toc/run[1]/data/table[@schema=\"'$t'\"]' --output exports/$t.xml; done"
)
XCTRACE = Profiler(
    "xctrace",
    (
        Format(
            "xctrace-table",
            "xctrace",
            "xctrace export",
            _looks_like_table,
            _read_exports,
            has_stacks=True,
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-toc",
            "xctrace",
            "xctrace export --toc",
            _looks_like_toc,
            _read_exports,
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-document",
            "xctrace",
            "document of Instruments (.trace)",
            None,
            _read_exports,
            is_folder=_is_document,
            as_text=_AS_TEXT,
            conversion=Conversion(_conversion_argv, "exports", _AS_TEXT),
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-folder",
            "xctrace",
            "folder of xctrace exports",
            None,
            _read_exports,
            is_folder=_has_exports,
            has_stacks=True,
            facts_are_conditions=True,
        ),
    ),
    recorder=Recorder(
        step=_recording_step,
        collect=_collect_report,
        check_target=_check_target,
        report_names=_report_names,
        follows_region=False,
    ),
    explain=_explain_fault,
    checks=_judge_xctrace,
)

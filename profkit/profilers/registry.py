"""All profilers with their reports, and which of them reads a file. A new one is an entry in `PROFILERS`.

Nothing of a tool is imported before it is called.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from profkit.core.errors import Fault, UnreadableReport
from profkit.profilers.files import read_head
from profkit.profilers.profiler import Conversion, Format, Profiler, Recorder, lazy_function

_POINTER = b"version https://git-lfs.github.com/spec/"


def _lazy(name: str) -> Callable[..., Any]:
    return lazy_function(f"profkit.profilers.{name}")


_NCU_TEXT = "ncu --import {name} --csv --page raw > {stem}.csv"
_NSYS_TEXT = "nsys stats --report cuda_gpu_kern_sum --format csv {name} > {stem}.csv"
_PERF_TEXT = "perf script -i {name} > {stem}.txt"
# The tables that most of a report of xctrace is made of: `xctrace.report.wanted_schemas` has all.
XCTRACE_TABLES = (
    "metal-gpu-intervals",
    "metal-gpu-state-intervals",
    "metal-application-encoders-list",
    "metal-command-buffer-completed",
    "gpu-performance-state-intervals",
    "device-thermal-state-intervals",
    "metal-shader-profiler-intervals",
    "metal-gpu-counter-intervals",
    "time-info",
    "time-profile",
)
_XCTRACE_TEXT = (
    "mkdir exports; xctrace export --input {name} --toc --output exports/toc.xml; "
    f"for t in {' '.join(XCTRACE_TABLES)}; do xctrace export --input {{name}} "
    "--xpath '/trace-toc/run[1]/data/table[@schema=\"'$t'\"]' --output exports/$t.xml; done"
)

CPROFILE = Profiler(
    "cprofile",
    (
        Format(
            "pstats",
            "cprofile",
            "a cProfile (pstats) file",
            _lazy("cprofile.looks_like_cprofile"),
            _lazy("cprofile.read_cprofile"),
            as_text="echo stats | python -m pstats {name} > {stem}.txt",
        ),
    ),
)
NCU = Profiler(
    "ncu",
    (
        Format(
            "ncu-rep",
            "ncu",
            ".ncu-rep",
            lambda head: head.startswith(b"NVR\0"),
            _lazy("ncu.rep.read_ncu_rep"),
            as_text=_NCU_TEXT,
        ),
        Format(
            "ncu-repz",
            "ncu",
            ".ncu-repz",
            lambda head: head.startswith(b"\x28\xb5\x2f\xfd"),
            _lazy("ncu.rep.refuse_packed"),
            as_text=_NCU_TEXT,
        ),
        Format(
            "ncu-csv",
            "ncu",
            "ncu --csv",
            _lazy("ncu.csv_report.looks_like_ncu_csv"),
            _lazy("ncu.csv_report.read_ncu_csv"),
        ),
    ),
    Recorder(
        _lazy("ncu.probe.recording_step"), _lazy("ncu.probe.collect_report"), picks_kernel=True, uses_gpu=True
    ),
    _lazy("ncu.faults.explain"),
    _lazy("ncu.probe.ncu_checks"),
)
NSYS = Profiler(
    "nsys",
    (
        Format(
            "nsys-sqlite",
            "nsys",
            "nsys SQLite",
            # no other tool whose reports are read writes SQLite; whose it is, its tables tell
            lambda head: head.startswith(b"SQLite format 3\x00"),
            _lazy("nsys.sqlite.read_sqlite"),
            as_text=_NSYS_TEXT,
        ),
        Format(
            "nsys-rep",
            "nsys",
            ".nsys-rep",
            lambda head: head.startswith(b"NVIDIA Tegra Profiler Report"),
            _lazy("nsys.sqlite.read_sqlite"),
            as_text=_NSYS_TEXT,
            conversion=Conversion(
                _lazy("nsys.probe.conversion_argv"),
                "converted.sqlite",
                "nsys export --type=sqlite --output={stem}.sqlite {name}",
            ),
        ),
        Format(
            "nsys-stats-csv",
            "nsys",
            "nsys stats",
            _lazy("nsys.stats.looks_like_stats"),
            _lazy("nsys.stats.read_stats"),
        ),
    ),
    Recorder(_lazy("nsys.probe.recording_step"), _lazy("nsys.probe.collect_report"), uses_gpu=True),
    _lazy("nsys.command.explain"),
    _lazy("nsys.probe.nsys_checks"),
)
PERF = Profiler(
    "perf",
    (
        Format(
            "perf-data",
            "perf",
            "perf.data",
            lambda head: head.startswith(b"PERFILE2"),
            _lazy("perf.script.read_script"),
            as_text=_PERF_TEXT,
            conversion=Conversion(_lazy("perf.probe.conversion_argv"), "converted.txt", _PERF_TEXT),
        ),
        Format(
            "perf-stat-csv",
            "perf",
            "perf stat -x",
            _lazy("perf.stat_csv.looks_like_stat_csv"),
            _lazy("perf.stat_csv.read_stat_csv"),
        ),
        Format(
            "perf-stat-text",
            "perf",
            "perf stat",
            _lazy("perf.stat_text.looks_like_stat_text"),
            _lazy("perf.stat_text.read_stat_text"),
        ),
        Format(
            "perf-script",
            "perf",
            "perf script",
            _lazy("perf.script.looks_like_script"),
            _lazy("perf.script.read_script"),
            has_stacks=True,
        ),
    ),
    Recorder(_lazy("perf.probe.recording_step")),
    _lazy("perf.command.explain"),
    _lazy("perf.probe.perf_checks"),
)
STACKS = Profiler(
    "stacks",
    (
        Format(
            "python-stacks",
            "stacks",
            "sampled Python stacks",
            _lazy("stacks.looks_like_stacks"),
            _lazy("stacks.read_stacks"),
            has_stacks=True,
        ),
    ),
)
TORCH_PROFILER = Profiler(
    "torch_profiler",
    (
        Format(
            "torch-chrome-trace",
            "torch_profiler",
            "torch.profiler Chrome trace",
            _lazy("torch_profiler.looks_like_chrome_trace"),
            _lazy("torch_profiler.read_chrome_trace"),
            facts_are_conditions=True,
        ),
    ),
)
VALGRIND = Profiler(
    "valgrind",
    (
        Format(
            "callgrind",
            "valgrind",
            "callgrind",
            _lazy("valgrind.read.looks_like_callgrind"),
            _lazy("valgrind.read.read_callgrind_with_mix"),
        ),
    ),
    Recorder(_lazy("valgrind.probe.recording_step"), _lazy("valgrind.probe.collect_report")),
    _lazy("valgrind.command.explain"),
    _lazy("valgrind.probe.valgrind_checks"),
)
XCTRACE = Profiler(
    "xctrace",
    (
        Format(
            "xctrace-table",
            "xctrace",
            "xctrace export",
            _lazy("xctrace.toc.looks_like_table"),
            _lazy("xctrace.report.read_exports"),
            has_stacks=True,
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-toc",
            "xctrace",
            "xctrace export --toc",
            _lazy("xctrace.toc.looks_like_toc"),
            _lazy("xctrace.report.read_exports"),
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-document",
            "xctrace",
            "document of Instruments (.trace)",
            None,
            _lazy("xctrace.report.read_exports"),
            as_text=_XCTRACE_TEXT,
            is_folder=_lazy("xctrace.toc.is_document"),
            conversion=Conversion(_lazy("xctrace.record.conversion_argv"), "exports", _XCTRACE_TEXT),
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-folder",
            "xctrace",
            "folder of xctrace exports",
            None,
            _lazy("xctrace.report.read_exports"),
            is_folder=_lazy("xctrace.toc.has_exports"),
            has_stacks=True,
            facts_are_conditions=True,
        ),
    ),
    Recorder(
        _lazy("xctrace.record.recording_step"),
        _lazy("xctrace.record.collect_report"),
        _lazy("xctrace.record.check_target"),
        follows_region=False,
    ),
    _lazy("xctrace.command.explain_fault"),
    _lazy("xctrace.find.xctrace_checks"),
)

# In the order in which a file is compared with their formats.
PROFILERS = {
    profiler.name: profiler
    for profiler in (CPROFILE, NCU, NSYS, PERF, STACKS, TORCH_PROFILER, VALGRIND, XCTRACE)
}


def all_formats() -> Iterator[Format]:
    """Every format that can be read."""
    return (form for profiler in PROFILERS.values() for form in profiler.formats)


def explain_fault(tool: str, text: str, returncode: int) -> Fault | None:
    """The fault that `tool` printed as `text` before it ended with `returncode`; None where it is not known."""
    profiler = PROFILERS.get(tool)
    return profiler.explain(text, returncode) if profiler is not None and profiler.explain else None


def recognise_format(path: Path) -> Format:
    """The format of the report at `path`. Raises UnreadableReport where it is none that profkit knows."""
    folder = folder_format(path)
    if folder is not None:
        return folder
    head = read_head(path)
    for form in all_formats():
        if form.looks_like is not None and form.looks_like(head):
            return form
    if head.startswith(_POINTER):
        raise UnreadableReport(
            f"{path} is a pointer of Git LFS, not the report itself",
            f"git lfs pull --include {shlex.quote(path.name)}",
        )
    text = head.decode("utf-8", "replace")
    for tool in PROFILERS:
        fault = explain_fault(tool, text, 1)
        if fault is not None:
            raise UnreadableReport(
                f"{path} holds no report but an error of {tool}: {fault.reason}", fault.fix
            )
    known = ", ".join(form.title for form in all_formats())
    raise UnreadableReport(
        f"{path} is no report that profkit knows (it knows: {known})",
        "profkit record --help says how one is made",
    )


def folder_format(path: Path) -> Format | None:
    """The format of the folder at `path`: a document, or exports of one recording; None where it is no report."""
    try:
        if not path.is_dir():
            return None
    except (OSError, ValueError):
        return None  # `read_head` says what is wrong with it
    return next((form for form in all_formats() if form.is_folder is not None and form.is_folder(path)), None)

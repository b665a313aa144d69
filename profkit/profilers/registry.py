"""Lists all profilers with their reports, and finds the one that reads a file.

A new profiler is an entry in `PROFILERS`. No module of a tool is imported before it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from profkit.core.errors import Fault, UnreadableReport
from profkit.profilers.files import read_head
from profkit.profilers.foreign import explain_foreign, own_lines
from profkit.profilers.profiler import Conversion, Format, Profiler, Recorder, lazy_function


def _lazy(name: str) -> Callable[..., Any]:
    return lazy_function(f"profkit.profilers.{name}")


def _format(
    name: str,
    title: str,
    looks_like: str | bytes | None,
    read: str,
    folder: str | None = None,
    tool: str | None = None,
    **more: Any,
) -> Format:
    """Return a format that is recognised by how it begins, by a function, or by a function of a folder.

    Where no `tool` is given, it is that of the module in `read`.
    """
    tool = tool or read.partition(".")[0]
    looks: Callable[[bytes], bool] | None = _lazy(looks_like) if isinstance(looks_like, str) else None
    if isinstance(looks_like, bytes):
        looks = partial(_begins_with, looks_like)
    return Format(
        name, tool, title, looks, _lazy(read), is_folder=None if folder is None else _lazy(folder), **more
    )


def _begins_with(sign: bytes, head: bytes) -> bool:
    return head.startswith(sign)


_NCU_TEXT = "ncu --import {name} --csv --page raw > {stem}.csv"
_NSYS_TEXT = "nsys stats --report cuda_gpu_kern_sum --format csv {name} > {stem}.csv"
_PERF_TEXT = "perf script -i {name} > {stem}.txt"
# The tables that most of a report of xctrace is made of: `xctrace.report.wanted_schemas` has all.
XCTRACE_TABLES = (
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
_XCTRACE_TEXT = (
    "mkdir exports; xctrace export --input {name} --toc --output exports/toc.xml; "
    f"for t in {' '.join(XCTRACE_TABLES)}; do xctrace export --input {{name}} "
    "--xpath '/trace-toc/run[1]/data/table[@schema=\"'$t'\"]' --output exports/$t.xml; done"
)

_CONDITIONS: dict[str, Any] = {"facts_are_conditions": True}

CPROFILE = Profiler(
    "cprofile",
    (
        _format(
            "pstats", "a cProfile (pstats) file", "cprofile.looks_like_cprofile", "cprofile.read_cprofile",
            as_text="echo stats | python -m pstats {name} > {stem}.txt",
        ),
    ),
)  # fmt: skip
JAX_PROFILER = Profiler(
    "jax_profiler",
    (
        _format(
            "jax-chrome-trace",
            "jax.profiler Chrome trace",
            "chrome.jax_profiler.looks_like_jax_trace",
            "chrome.jax_profiler.read_jax_trace",
            tool="jax_profiler",
        ),
    ),
)
NCU = Profiler(
    "ncu",
    (
        _format("ncu-rep", ".ncu-rep", b"NVR\0", "ncu.rep.read_ncu_rep", as_text=_NCU_TEXT),
        _format("ncu-csv", "ncu --csv", "ncu.csv_report.looks_like_ncu_csv", "ncu.csv_report.read_ncu_csv"),
    ),
    Recorder(
        _lazy("ncu.probe.recording_step"),
        _lazy("ncu.probe.collect_report"),
        picks_kernel=True,
        uses_gpu=True,
        viewer="ncu --import {name}",
    ),
    _lazy("ncu.probe.explain"),
    _lazy("ncu.probe.judge_ncu"),
)
NSYS = Profiler(
    "nsys",
    (
        # no other tool whose reports are read writes SQLite; whose it is, its tables tell
        _format(
            "nsys-sqlite", "nsys SQLite", b"SQLite format 3\x00", "nsys.sqlite.read_sqlite", as_text=_NSYS_TEXT
        ),
        _format(
            "nsys-rep", ".nsys-rep", b"NVIDIA Tegra Profiler Report", "nsys.sqlite.read_sqlite", as_text=_NSYS_TEXT,
            conversion=Conversion(
                _lazy("nsys.probe.conversion_argv"),
                "converted.sqlite",
                "nsys export --type=sqlite --output={stem}.sqlite {name}",
            ),
        ),
        _format("nsys-stats-csv", "nsys stats", "nsys.stats.looks_like_stats", "nsys.stats.read_stats"),
    ),
    Recorder(
        _lazy("nsys.probe.recording_step"), _lazy("nsys.probe.collect_report"), uses_gpu=True,
        viewer="nsys stats {name}",
    ),
    _lazy("nsys.command.explain"),
    _lazy("nsys.probe.judge_nsys"),
)  # fmt: skip
PERF = Profiler(
    "perf",
    (
        _format(
            "perf-data", "perf.data", b"PERFILE2", "perf.script.read_script", as_text=_PERF_TEXT,
            conversion=Conversion(_lazy("perf.probe.conversion_argv"), "converted.txt", _PERF_TEXT),
        ),
        _format("perf-stat-csv", "perf stat -x", "perf.stat_csv.looks_like_stat_csv", "perf.stat_csv.read_stat_csv"),
        _format(
            "perf-stat-json", "perf stat -j", "perf.stat_json.looks_like_stat_json", "perf.stat_json.read_stat_json"
        ),
        _format(
            "perf-stat-text", "perf stat", "perf.stat_csv.looks_like_stat_text", "perf.stat_csv.read_stat_text"
        ),
        _format(
            "perf-script", "perf script", "perf.script.looks_like_script", "perf.script.read_script", has_stacks=True
        ),
    ),
    # Without --no-inline perf starts addr2line for each sample: minutes for a program of a few seconds.
    Recorder(_lazy("perf.probe.recording_step"), viewer="perf report --no-inline -i {name}"),
    _lazy("perf.command.explain"),
    _lazy("perf.probe.perf_checks"),
)  # fmt: skip
STACKS = Profiler(
    "stacks",
    (
        _format(
            "python-stacks", "sampled Python stacks", "stacks.looks_like_stacks", "stacks.read_stacks", has_stacks=True
        ),
    ),
)  # fmt: skip
TORCH_PROFILER = Profiler(
    "torch_profiler",
    (
        _format(
            "torch-chrome-trace",
            "torch.profiler Chrome trace",
            "torch_profiler.looks_like_chrome_trace",
            "torch_profiler.read_chrome_trace",
            **_CONDITIONS,
        ),
    ),
)
VALGRIND = Profiler(
    "valgrind",
    (
        _format(
            "callgrind",
            "callgrind",
            "valgrind.read.looks_like_callgrind",
            "valgrind.read.read_callgrind_with_mix",
        ),
    ),
    Recorder(_lazy("valgrind.probe.recording_step"), _lazy("valgrind.probe.collect_report")),
    _lazy("valgrind.command.explain"),
    _lazy("valgrind.probe.judge_valgrind"),
)
_EXPORTS = "xctrace.report.read_exports"
XCTRACE = Profiler(
    "xctrace",
    (
        _format(
            "xctrace-table", "xctrace export", "xctrace.toc.looks_like_table", _EXPORTS, has_stacks=True, **_CONDITIONS
        ),
        _format("xctrace-toc", "xctrace export --toc", "xctrace.toc.looks_like_toc", _EXPORTS, **_CONDITIONS),
        _format(
            "xctrace-document", "document of Instruments (.trace)", None, _EXPORTS, "xctrace.toc.is_document",
            as_text=_XCTRACE_TEXT,
            conversion=Conversion(_lazy("xctrace.export.conversion_argv"), "exports", _XCTRACE_TEXT),
            **_CONDITIONS,
        ),
        _format(
            "xctrace-folder", "folder of xctrace exports", None, _EXPORTS, "xctrace.toc.has_exports",
            has_stacks=True, **_CONDITIONS,
        ),
    ),
    Recorder(
        _lazy("xctrace.export.recording_step"),
        _lazy("xctrace.export.collect_report"),
        _lazy("xctrace.export.check_target"),
        _lazy("xctrace.export.report_names"),
        follows_region=False,
    ),
    _lazy("xctrace.command.explain_fault"),
    _lazy("xctrace.export.judge_xctrace"),
)  # fmt: skip

# In the order in which a file is compared with their formats.
PROFILERS = {
    profiler.name: profiler
    for profiler in (CPROFILE, JAX_PROFILER, NCU, NSYS, PERF, STACKS, TORCH_PROFILER, VALGRIND, XCTRACE)
}


def all_formats() -> Iterator[Format]:
    """Yield every format that can be read."""
    return (form for profiler in PROFILERS.values() for form in profiler.formats)


def explain_fault(tool: str, text: str, returncode: int) -> Fault | None:
    """Return the fault that `tool` printed as `text` before it ended with `returncode`; None for an unknown one."""
    profiler = PROFILERS.get(tool)
    return profiler.explain(text, returncode) if profiler is not None and profiler.explain else None


def recognise_format(path: Path) -> Format:
    """Return the format of the report at `path`. Raises UnreadableReport for an unknown one."""
    folder = folder_format(path)
    if folder is not None:
        return folder
    head = read_head(path)
    for form in all_formats():
        if form.looks_like is not None and form.looks_like(head):
            return form
    if (foreign := explain_foreign(path, head)) is not None:
        raise foreign
    text = head.decode("utf-8", "replace")
    for tool in PROFILERS:
        tool_text = own_lines(tool, text)
        fault = explain_fault(tool, tool_text, 1) if tool_text else None
        if fault is not None:
            raise UnreadableReport(
                f"{path} is not a report but an error of {tool}: {fault.reason}", fault.fix
            )
    titles = ", ".join(form.title for form in all_formats())
    raise UnreadableReport(
        f"{path} is not a report that profkit can read (it reads: {titles})",
        "profkit record --help   (shows how to record one)",
    )


def is_known(path: Path) -> bool:
    """Return whether a file is a report, or one of another tool that can be named."""
    try:
        head = read_head(path)
    except UnreadableReport:
        return False
    looks = (form.looks_like for form in all_formats() if form.looks_like is not None)
    return any(look(head) for look in looks) or explain_foreign(path, head) is not None


def folder_format(path: Path) -> Format | None:
    """Return the format of the folder at `path`: a document, or the exports of a recording; else None."""
    try:
        if not path.is_dir():
            return None
    except (OSError, ValueError):
        return None  # `read_head` says what is wrong with it
    return next((form for form in all_formats() if form.is_folder is not None and form.is_folder(path)), None)

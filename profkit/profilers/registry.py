"""Lists all profilers with their reports, and finds the one that reads a file.

A new profiler is one in the `__init__` of its folder (here, where it is one file), and a place in `PROFILERS`. No other
module of a tool is imported before it is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import Fault, UnreadableReport
from profkit.core.types import Report
from profkit.profilers.files import read_head
from profkit.profilers.foreign import explain_foreign, own_lines
from profkit.profilers.ncu import NCU
from profkit.profilers.nsys import NSYS
from profkit.profilers.perf import PERF
from profkit.profilers.profiler import Format, Profiler
from profkit.profilers.valgrind import VALGRIND
from profkit.profilers.xctrace import XCTRACE


def _looks_like_cprofile(head: bytes) -> bool:
    from profkit.profilers.cprofile import looks_like_cprofile

    return looks_like_cprofile(head)


def _read_cprofile(path: Path) -> Report:
    from profkit.profilers.cprofile import read_cprofile

    return read_cprofile(path)


CPROFILE = Profiler(
    "cprofile",
    (
        Format(
            "pstats",
            "cprofile",
            "a cProfile (pstats) file",
            _looks_like_cprofile,
            _read_cprofile,
            as_text="echo stats | python -m pstats {name} > {stem}.txt",
        ),
    ),
)


def _looks_like_jax_trace(head: bytes) -> bool:
    from profkit.profilers.chrome.jax_profiler import looks_like_jax_trace

    return looks_like_jax_trace(head)


def _read_jax_trace(path: Path) -> Report:
    from profkit.profilers.chrome.jax_profiler import read_jax_trace

    return read_jax_trace(path)


JAX_PROFILER = Profiler(
    "jax_profiler",
    (
        Format(
            "jax-chrome-trace",
            "jax_profiler",
            "jax.profiler Chrome trace",
            _looks_like_jax_trace,
            _read_jax_trace,
        ),
    ),
)


def _looks_like_stacks(head: bytes) -> bool:
    from profkit.profilers.host.stack_records import looks_like_stacks

    return looks_like_stacks(head)


def _read_stacks(path: Path) -> Report:
    from profkit.profilers.host.stacks import read_stacks

    return read_stacks(path)


STACKS = Profiler(
    "stacks",
    (
        Format(
            "python-stacks",
            "stacks",
            "sampled Python stacks",
            _looks_like_stacks,
            _read_stacks,
            has_stacks=True,
        ),
    ),
)


def _looks_like_chrome_trace(head: bytes) -> bool:
    from profkit.profilers.chrome.torch_profiler import looks_like_chrome_trace

    return looks_like_chrome_trace(head)


def _read_chrome_trace(path: Path) -> Report:
    from profkit.profilers.chrome.torch_profiler import read_chrome_trace

    return read_chrome_trace(path)


TORCH_PROFILER = Profiler(
    "torch_profiler",
    (
        Format(
            "torch-chrome-trace",
            "torch_profiler",
            "torch.profiler Chrome trace",
            _looks_like_chrome_trace,
            _read_chrome_trace,
            facts_are_conditions=True,
        ),
    ),
)

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
    for form in sorted(all_formats(), key=lambda form: form.any_content):
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

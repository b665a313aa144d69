"""Which reader reads a file: told by its content, never by its name.

Every tool folder lists what it can read in its `formats.py`; adding a profiler is adding a folder.
"""

from __future__ import annotations

import pkgutil
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.faults import explain

_POINTER = b"version https://git-lfs.github.com/spec/"
HEAD_BYTES = 64 * 1024  # what a sniffer gets to see


@dataclass(frozen=True)
class Format:
    """One kind of report.

    `read` takes the file. Where only the tool itself can read it, `convert` gives (and does not run) the argv that
    turns the file into one (or a folder) called `converted` that `read` takes, and `by_hand` is the line that does so
    where the tool is: with {name} for the file's name and {stem} for that without its suffix. `holds` is for reports
    that are folders: whether the folder at a path is one.
    """

    name: str
    tool: str
    title: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Path], Report]
    convert: Callable[[Path, Path], tuple[str, ...]] | None = None
    converted: str = "converted.txt"
    by_hand: str | None = None
    holds: Callable[[Path], bool] | None = None


def later(module: str, function: str) -> Callable[..., Any]:
    """`function` of `module`, which is imported at the first call: a reader that is not asked costs no time."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), function)(*arguments)

    return call


def all_formats() -> Iterator[Format]:
    """Every format of every tool folder, folders in alphabetical order, each folder's in its own order."""
    import profkit.profilers as tools

    for module in sorted(pkgutil.iter_modules(tools.__path__), key=lambda m: m.name):
        if module.ispkg and find_spec(f"profkit.profilers.{module.name}.formats") is not None:
            formats: tuple[Format, ...] = import_module(f"profkit.profilers.{module.name}.formats").FORMATS
            yield from formats


def sniff(path: Path) -> Format:
    """The format of the file or folder at `path`. Raises UnreadableReport where it is none that profkit knows."""
    folder = _sniff_folder(path)
    if folder is not None:
        return folder
    head = read_head(path)
    for candidate in all_formats():
        if candidate.looks_like(head):
            return candidate
    if head.startswith(_POINTER):
        raise UnreadableReport(
            f"{path} is a pointer of Git LFS, not the report itself",
            f"git lfs pull --include {shlex.quote(path.name)}",
        )
    _complain_of_faults(path, head)
    known = ", ".join(f.title for f in all_formats())
    raise UnreadableReport(
        f"{path} is no report that profkit knows (it knows: {known})",
        "profkit record --help says how one is made",
    )


def _sniff_folder(path: Path) -> Format | None:
    try:
        if not path.is_dir():
            return None
    except (OSError, ValueError):
        return None  # `read_head` says what is wrong with it
    return next((f for f in all_formats() if f.holds is not None and f.holds(path)), None)


def is_folder_report(path: Path) -> bool:
    """Whether the folder at `path` is a report: a document, or exports of one recording."""
    return _sniff_folder(path) is not None


def no_file(_: bytes) -> bool:
    """What the `looks_like` of a format is that has folders alone."""
    return False


def _complain_of_faults(path: Path, head: bytes) -> None:
    """Somebody's report may hold nothing but what its tool complained of: then that is what to say."""
    text = head.decode("utf-8", "replace")
    for tool in dict.fromkeys(f.tool for f in all_formats()):
        fault = explain(tool, text, 1)
        if fault is not None:
            raise UnreadableReport(
                f"{path} holds no report but an error of {tool}: {fault.reason}", fault.fix
            )


def read_head(path: Path) -> bytes:
    """The first 64 KiB of `path`. Raises UnreadableReport with the reason where there is nothing to read."""
    try:
        if path.is_dir():
            raise UnreadableReport(
                f"{path} is a folder, but no run's folder and no report: there is no run.json in it",
                f"ls {shlex.quote(str(path))}",
            )
        if not path.is_file():
            kind = "is not a regular file" if path.exists() else "does not exist"
            raise UnreadableReport(f"{path} {kind}", f"ls -l {shlex.quote(str(path.parent))}")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -ld {shlex.quote(str(path))}"
        ) from error
    except ValueError as error:  # an embedded null byte in the name
        raise UnreadableReport(f"{str(path)!r} is no file name: {error}", "take the null byte out") from error
    if not head:
        raise UnreadableReport(f"{path} is empty", "let its tool write it again")
    return head

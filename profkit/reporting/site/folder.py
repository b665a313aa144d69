"""The folder of a site: its own, known again by a marker; replaced file by file, and no link in it is followed."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import MachineError, UsageError
from profkit.core.files.regular import read_start
from profkit.core.files.safe_folder import chown_to_sudo_user, make_folder, make_parents, opened, remember
from profkit.core.types import Entry
from profkit.core.whole_files import write_whole

MARKER = "profkit-site.txt"
MARK = "Pages of profkit history site: they are replaced as a whole when they are written again.\n"
# What a folder that is published may hold beforehand: a checkout, and what its host reads.
_HOSTS = frozenset({".git", ".nojekyll", ".gitignore", "CNAME"})
_OURS = re.compile(r"[a-z0-9_-]+\.html|\..+\.tmp")
_REPORTS = ("report.html", "run.json")
_INSIDE = "workload"
_ELSEWHERE = "--to a new folder, or an empty one"


@dataclass(frozen=True)
class Written:
    """How much was written."""

    files: int
    bytes: int


def prepare_folder(target: Path) -> Path:
    """The folder for a site: made, or empty, or with a site in it. No link below it is followed from now on.

    Raises UsageError where it holds anything else, MachineError where it cannot be made.
    """
    try:
        missing = [path for path in (target, *target.parents) if not os.path.lexists(path)]
        make_parents(target.parent)
        with opened(target.parent):  # it may be reached: then a link to it is one that the user means
            folder = target.parent.resolve() / target.name
        if target.name and not os.path.lexists(folder):
            make_folder(folder, (_INSIDE,))
            chown_to_sudo_user(*missing)
        else:
            with opened(target):
                folder = target.resolve()
            remember(folder)
            _claim_content(target, folder)
        write_whole(folder / MARKER, (MARK,))
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{target} is not a folder", _ELSEWHERE) from error
    except OSError as error:
        raise _cannot_write(target, error) from error
    return folder


def _claim_content(target: Path, folder: Path) -> None:
    with opened(folder) as inside:
        there = set(os.listdir(inside)) - _HOSTS
        if there and not _is_site(inside):
            some = ", ".join(sorted(there)[:3])
            raise UsageError(f"{target} holds other files, and no site: {some}", _ELSEWHERE)
        with contextlib.suppress(FileExistsError):
            (inside / _INSIDE).mkdir()


def write_site(folder: Path, files: Iterable[tuple[str, str]]) -> Written:
    """Write all files into a folder that was prepared.

    Each file is there whole or not at all, and what the site before had goes only at the end: whatever stops the
    writing, the pages in the folder can be used. Raises MachineError where it cannot be written.
    """
    try:
        return _write(folder, files)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        chown_to_sudo_user(folder)


def _cannot_write(target: Path, error: OSError) -> MachineError:
    return MachineError(
        f"cannot write pages to {target}: {error.strerror or error}; pages that are there stay usable",
        "--to DIR elsewhere",
    )


def _is_site(folder: Path) -> bool:
    marker = folder / MARKER
    try:
        return not marker.is_symlink() and read_start(marker, len(MARK)) == MARK.encode()
    except OSError:
        return False


def _write(folder: Path, files: Iterable[tuple[str, str]]) -> Written:
    written: dict[str, int] = {}
    for name, content in files:
        write_whole(folder / name, (content,))
        written[name] = len(content.encode())
    with opened(folder / _INSIDE) as place:
        for name in os.listdir(place):
            if f"{_INSIDE}/{name}" not in written and _OURS.fullmatch(name):
                (place / name).unlink()
    return Written(len(written), sum(written.values()))


def run_links(folder: Path) -> Callable[[Entry], str | None]:
    """From a run to its report as the pages of workloads reach it; None where it is not where the history says."""

    def link(entry: Entry) -> str | None:
        if not entry.path:
            return None
        run = Path(os.path.abspath(entry.path))
        shown = next((run / name for name in _REPORTS if (run / name).is_file()), None)
        if shown is None:
            return None
        return os.path.relpath(shown, folder / _INSIDE)

    return link

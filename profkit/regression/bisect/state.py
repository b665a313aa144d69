"""The file of a bisection: written whole after each step, so that a later call goes on where this one ended."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import cast

from profkit.core.codec import from_plain_data, json_text, to_plain_data
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import chown_to_sudo_user, ensure_folder, make_folder
from profkit.core.types import BisectDocument, Json
from profkit.core.whole_files import write_whole

SCHEMA = "profkit.bisect/1"
FILE_NAME = "bisect.json"
_SIZE_LIMIT = 64 << 20  # bytes; 20,000 commits and a hundred steps are 3 MB
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def make_state_folder(asked: Path | None) -> Path:
    """The folder `asked` for, else `reports/bisect-TIME`, made anew.

    Raises UsageError where it is there already, MachineError where the system refuses.
    """
    stem = f"bisect-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}"
    choices = (
        [asked] if asked is not None else [Path("reports", stem + end) for end in ("", "-2", "-3", "-4")]
    )
    try:
        for folder in choices:
            made = [path for path in folder.parents if not os.path.lexists(path)]
            folder.parent.mkdir(parents=True, exist_ok=True)
            chown_to_sudo_user(*made)
            with contextlib.suppress(FileExistsError):
                make_folder(folder)
                return folder
    except OSError as error:
        raise MachineError(
            f"cannot write to {folder}: {error.strerror or error}", "--output FOLDER"
        ) from error
    raise UsageError(f"{choices[-1]} is there already", f"--resume {choices[-1]}, or another --output")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a second bisection out of the folder. Raises UsageError where one is at work there."""
    try:
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise MachineError(
            f"cannot write to {folder}: {error.strerror or error}", f"ls -ld {folder}"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise UsageError(f"another profkit is at work in {folder}", "wait for its end") from None
    try:
        yield
    finally:
        os.close(handle)


def write_state(folder: Path, document: BisectDocument) -> None:
    """Write it whole or not at all. Raises MachineError where the system refuses."""
    text = json_text({"schema": SCHEMA, **cast("dict[str, Json]", to_plain_data(document))})
    try:
        ensure_folder(folder)
        write_whole(folder / FILE_NAME, (text,), sync=True)
    except OSError as error:
        fix = f"df -h {folder}; ls -ld {folder}"
        raise MachineError(f"cannot write {folder / FILE_NAME}: {error.strerror or error}", fix) from error


def read_state(folder: Path) -> BisectDocument:
    """The bisection in `folder`. Raises UnreadableReport for what is none."""
    path = folder / FILE_NAME
    try:
        data = json.loads(read_bounded_text(path, _SIZE_LIMIT))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise UnreadableReport(f"it is not a {SCHEMA}")
        document = from_plain_data(BisectDocument, data)
        _check(document)
    except OSError as error:
        raise UnreadableReport(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError, UnreadableReport) as error:
        reason = error.message if isinstance(error, UnreadableReport) else str(error)
        raise UnreadableReport(f"cannot read {path}: {reason}") from error
    return document


def _check(document: BisectDocument) -> None:
    """Raise UnreadableReport for what git would be asked about and is no commit of the row."""
    if not document.searches or not document.command:
        raise UnreadableReport("it has no commits, or no command")
    for search in document.searches:
        row = {search.good, *search.commits}
        named = {search.inside} - {None} | {skipped.commit for skipped in search.skipped}
        named |= {commit for step in search.steps for commit in (step.earlier, step.later)}
        hashes = [commit for commit in (*row, *named) if commit is not None]
        if not search.commits or any(_HASH.fullmatch(commit) is None for commit in hashes):
            raise UnreadableReport("a commit in it is no hash")
        if any({step.earlier, step.later} - row for step in search.steps):
            raise UnreadableReport("a step in it is of a commit outside of the row")
    options = document.options
    if not (
        0.5 <= options.certainty < 1
        and 0 <= options.floor < 1
        and 1 <= options.budget < 1e6
        and options.sampling > 0
    ):
        raise UnreadableReport("its options are outside of what is possible")

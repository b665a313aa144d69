"""The file of a bisection: written whole after each step, so that a later call goes on where this one ended."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import cast

from profkit.core.codec import from_plain_data, json_text, to_plain_data
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import chown_to_sudo_user, ensure_folder, make_folder
from profkit.core.types import BisectDocument, BisectSearch, Json
from profkit.core.whole_files import write_whole
from profkit.regression.bisect.measure import FEW

SCHEMA = "profkit.bisect/1"
FILE_NAME = "bisect.json"
_SIZE_LIMIT = 64 << 20  # bytes; 20,000 commits and a hundred steps are 3 MB
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def make_state_folder(asked: Path | None) -> Path:
    """The folder `asked` for, else `reports/bisect-TIME`, made anew.

    Raises UsageError where it is there already, MachineError where the system refuses.
    """
    folder = asked or Path("reports", f"bisect-{datetime.now(timezone.utc):%Y%m%d-%H%M%S-%f}")
    try:
        made = [path for path in folder.parents if not os.path.lexists(path)]
        folder.parent.mkdir(parents=True, exist_ok=True)
        chown_to_sudo_user(*made)
        make_folder(folder)
    except FileExistsError:
        fix = f"--resume {folder}, or another --output"
        raise UsageError(f"{folder} is there already", fix) from None
    except OSError as error:
        raise MachineError(
            f"cannot write to {folder}: {error.strerror or error}", "--output FOLDER"
        ) from error
    return folder


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
        yield
    except BlockingIOError:
        raise UsageError(f"another profkit is at work in {folder}", "wait for its end") from None
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
            raise ValueError(f"it is not a {SCHEMA}")
        document = from_plain_data(BisectDocument, data)
        _check(document)
    except OSError as error:
        raise UnreadableReport(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError, UnreadableReport) as error:
        reason = error.message if isinstance(error, UnreadableReport) else str(error)
        raise UnreadableReport(f"cannot read {path}: {reason}") from error
    return document


def _check(document: BisectDocument) -> None:
    """Raise ValueError for what no bisection leaves: it would be gone on with, and git asked about it."""
    options = document.options
    possible = 0.5 <= options.certainty < 1 and 0 <= options.floor < 1 and 1 <= options.budget < 1e6
    if not possible or not 0 < options.sampling < 1e6 or (options.timeout or 1) <= 0:
        raise ValueError("its options are outside of what is possible")
    if not document.searches or not document.command:
        raise ValueError("it has no commits, or no command")
    for search in document.searches:
        _check_search(search)


def _check_search(search: BisectSearch) -> None:
    row = (search.good, *search.commits)
    if any(_HASH.fullmatch(commit) is None for commit in (*row, search.inside or search.good)):
        raise ValueError("a commit in it is no hash")
    parts, steps = search.parts, search.steps
    named = {one.commit for one in search.skipped} | {
        c for part in parts for c in (part.baseline, *part.commits)
    }
    named |= {c for step in steps for c in (step.earlier, step.later)}
    places = {commit: place for place, commit in enumerate(row)}
    if len(row) < 2 or len(places) < len(row) or named - places.keys():
        raise ValueError("it names a commit that is not between its ends, or one twice")
    pairs = [pair for step in steps for pair in step.pairs]
    if any(len(step.pairs) < FEW for step in steps) or any(
        len(p) != 2 or not all(1e-12 < v < 1e9 for v in p) for p in pairs
    ):
        raise ValueError("a step's pairs are not pairs of seconds")
    spans = [places[step.later] - places[step.earlier] for step in steps]
    kinds = [step.kind == "ends" for step in steps]
    if (
        any(span <= 0 for span in spans)
        or any(kinds[1:])
        or (steps and (not kinds[0] or spans[0] < len(row) - 1))
    ):
        raise ValueError("its steps are not those of a search")
    ratios = [*(step.ratio for step in steps), *(part.ratio for part in parts)]
    numbers = [
        *(n for one in steps for n in (one.low, one.high, one.seconds)),
        *search.probabilities.values(),
    ]
    if any(not 1e-6 < ratio < 1e6 for ratio in ratios) or not all(map(isfinite, numbers)):
        raise ValueError("a number in it is none that is measured")
    alone = search.state == "running" or (search.state == "open" and search.inside is not None)
    if not alone and not steps:
        raise ValueError("it ended without a step")
    if any(not part.commits for part in parts) or (
        search.state == "found" and sum(part.kind == "one" for part in parts) != 1
    ):
        raise ValueError("it ended without a commit")

"""What a bisection rests on: the commits between two ends as a row, and its file, written whole after each step."""

from __future__ import annotations

import os
import re
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import cast

from profkit.core.codec import json_text, to_plain_data
from profkit.core.errors import MachineError, UsageError
from profkit.core.files.safe_folder import chown_to_sudo_user, ensure_folder, make_folder
from profkit.core.files.whole import write_whole
from profkit.core.types import BisectDocument, Json
from profkit.regression.paired.checkout import git_line

MOST_COMMITS = 20_000  # what git prints of them is 2 MB
MOST_FILES = 20  # of a commit that are named
SCHEMA = "profkit.bisect/1"
FILE_NAME = "bisect.json"


def commits_between(root: Path, good: str, bad: str) -> tuple[str, ...]:
    """The commits after `good` up to `bad`, both hashes, the oldest first, each the child of the one before it.

    At a merge it goes on with the first parent that `good` leads to.

    Raises UsageError where no way of parents leads from `bad` to `good`, or it is longer than 20,000 commits.
    """
    if good == bad:
        raise UsageError(
            f"GOOD and BAD are the same commit, {good[:12]}", "profkit bisect HEAD~20 HEAD -- ..."
        )
    if git_line(root, "merge-base", "--is-ancestor", good, bad) is None:
        raise _unrelated(root, good, bad)
    count = git_line(root, "rev-list", "--count", f"{good}..{bad}") or "0"
    if int(count) > MOST_COMMITS:
        raise UsageError(
            f"{count} commits lie between them; {MOST_COMMITS} are the most", "a GOOD that is nearer"
        )
    listed = git_line(root, "rev-list", "--parents", "--ancestry-path", f"{good}..{bad}") or ""
    rows = [line.split() for line in listed.splitlines()]
    parents = {row[0]: row[1:] for row in rows if row}
    commits = [bad]
    while True:
        before = next((p for p in parents.get(commits[-1], ()) if p == good or p in parents), None)
        if before is None or before == good:
            break
        commits.append(before)
    return tuple(reversed(commits))


def changed_in(root: Path, before: str, commit: str) -> tuple[str, ...]:
    """The files that a commit changed, with lines added and removed: `src/a.py +12 -3`; the first 20 of them."""
    text = git_line(root, "diff", "--numstat", "--no-renames", "-z", before, commit, "--") or ""
    found = [re.fullmatch(r"(\d+|-)\t(\d+|-)\t(.+)", entry, re.DOTALL) for entry in text.split("\0")]
    names = [
        f"{one[3]} (binary)" if one[1] == "-" else f"{one[3]} +{one[1]} -{one[2]}" for one in found if one
    ]
    return tuple(names[:MOST_FILES])


def _unrelated(root: Path, good: str, bad: str) -> UsageError:
    if git_line(root, "merge-base", "--is-ancestor", bad, good) is not None:
        return UsageError(
            f"BAD ({bad[:12]}) is older than GOOD ({good[:12]})",
            f"the older one first: profkit bisect {bad[:12]} {good[:12]} -- ...",
        )
    if git_line(root, "rev-parse", "--is-shallow-repository") == "true":
        return UsageError(
            f"this clone is shallow: no way from {bad[:12]} to {good[:12]}", "git fetch --unshallow"
        )
    base = git_line(root, "merge-base", good, bad)
    hint = f"where both were one: profkit bisect {base[:12]} {bad[:12]} -- ..." if base else "git log --graph"
    return UsageError(f"{bad[:12]} does not come from {good[:12]}", hint)


# ---------------------------------------------------------------- the file


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
        raise UsageError(f"{folder} is there already", "another --output") from None
    except OSError as error:
        raise MachineError(
            f"cannot write to {folder}: {error.strerror or error}", "--output FOLDER"
        ) from error
    return folder


def write_state(folder: Path, document: BisectDocument) -> None:
    """Write it whole or not at all. Raises MachineError where the system refuses."""
    text = json_text({"schema": SCHEMA, **cast("dict[str, Json]", to_plain_data(document))})
    try:
        ensure_folder(folder)
        write_whole(folder / FILE_NAME, (text,), sync=True)
    except OSError as error:
        fix = f"df -h {shlex.quote(str(folder))}; ls -ld {shlex.quote(str(folder))}"
        raise MachineError(f"cannot write {folder / FILE_NAME}: {error.strerror or error}", fix) from error

"""The commits between two ends as a row, each the child of the one before it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from profkit.core import process
from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.git import git_command, git_environment
from profkit.regression.paired.git import ANSWER_SECONDS, git_line

MOST_COMMITS = 20_000  # what git prints of them is 2 MB
MOST_FILES = 20  # of a commit that are named


@dataclass(frozen=True)
class Row:
    """`commits` follow `good`, the oldest first. `merges`: of those that are one, their parents in git's order."""

    good: str
    commits: tuple[str, ...]
    merges: Mapping[str, tuple[str, ...]]


def row_between(root: Path, good: str, bad: str) -> Row:
    """The row from `good` to `bad`, both hashes: at a merge it goes on with the first parent that `good` leads to.

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
    parents = _parents_between(root, good, bad)
    commits = [bad]
    while True:
        before = next((p for p in parents.get(commits[-1], ()) if p == good or p in parents), None)
        if before is None or before == good:
            break
        commits.append(before)
    commits.reverse()
    return Row(good, tuple(commits), {c: parents[c] for c in commits if len(parents.get(c, ())) > 1})


def row_inside(root: Path, commit: str, before: str) -> Row | None:
    """The commits that a merge brought in beside its parent `before`, from where both were one.

    None for what is no merge of two.
    """
    parents = (git_line(root, "rev-parse", f"{commit}^@") or "").split()
    others = [parent for parent in parents if parent != before]
    if len(parents) != 2 or len(others) != 1:
        return None
    base = git_line(root, "merge-base", before, others[0])
    if base is None or base == others[0] or not re.fullmatch(r"[0-9a-f]{40,64}", base):
        return None
    return row_between(root, base, others[0])


def changed_in(root: Path, before: str, commit: str) -> tuple[str, ...]:
    """The files that a commit changed, with lines added and removed: `src/a.py +12 -3`; the first 20 of them."""
    text = git_line(root, "diff", "--numstat", "--no-renames", "-z", before, commit, "--") or ""
    found = [re.fullmatch(r"(\d+|-)\t(\d+|-)\t(.+)", entry, re.DOTALL) for entry in text.split("\0")]
    names = [
        f"{one[3]} (binary)" if one[1] == "-" else f"{one[3]} +{one[1]} -{one[2]}" for one in found if one
    ]
    return tuple(names[:MOST_FILES])


def _parents_between(root: Path, good: str, bad: str) -> dict[str, tuple[str, ...]]:
    """The parents of each commit on a way between the two, by its hash."""
    with TemporaryFolder("commits") as name:
        log = Path(name, "commits")
        words = git_command(root, "rev-list", "--parents", "--ancestry-path", f"{good}..{bad}")
        done = process.run(words, env=git_environment(root), timeout=ANSWER_SECONDS, log=log)
        if not done.ok:
            raise UsageError(
                f"git cannot list the commits: {done.output_tail.strip()[-200:]}", shlex.join(words)
            )
        rows = [line.split() for line in read_bounded_text(log).splitlines()]
    return {row[0]: tuple(row[1:]) for row in rows if row}


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

"""Questions to git about a repository: nobody is asked for a password, and no hook of the repository runs."""

from __future__ import annotations

from pathlib import Path

from profkit.core import process
from profkit.core.errors import UsageError
from profkit.core.files.regular import read_start
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.git import CHANGES, git_command, git_environment

ANSWER_SECONDS = 300.0
MOST_PRINTED = 8 << 20  # bytes of an answer that are looked at: a large diff


def git_line(folder: Path, *words: str) -> str | None:
    """What a git command prints, without the newline at its end; None where it fails, or git is not installed.

    Up to MOST_PRINTED bytes of it; what git says on stderr is no part of it.
    """
    printed = _printed(folder, *words)
    return printed.removesuffix("\n") if printed is not None else None


def _printed(folder: Path, *words: str) -> str | None:
    with TemporaryFolder("git") as name:
        printed = Path(name) / "printed"
        try:
            done = process.run(
                git_command(folder, *words),
                env=git_environment(folder),
                timeout=ANSWER_SECONDS,
                printed=printed,
            )
            return read_start(printed, MOST_PRINTED).decode("utf-8", "replace") if done.ok else None
        except (UsageError, OSError):
            return None


def resolve_commit(root: Path, name: str) -> str | None:
    """The full hash of the commit that `name` means there (a branch, a tag, `HEAD~1`, a short hash); None: nothing."""
    if name.startswith("-"):
        return None
    return git_line(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def subject_of(root: Path, commit: str) -> str:
    """The first line of a commit's message; empty where it cannot be read."""
    return git_line(root, "show", "--no-patch", "--format=%s", commit) or ""


def is_dirty(folder: Path) -> bool:
    """Whether files that git follows were changed since the last commit."""
    return bool(git_line(folder, *CHANGES))


def changed_files(folder: Path, base: str | None, head: str | None) -> tuple[str, ...]:
    """Files that differ between two commits, or with `head` None between `base` and the files in `folder`."""
    if base is None:
        return ()
    names = git_line(
        folder,
        "diff",
        "--name-only",
        "--no-renames",
        "--ignore-submodules=dirty",
        "-z",
        base,
        *([head] if head else []),
        "--",
    )
    return tuple(name for name in (names or "").split("\0") if name)


def diff_text(folder: Path, base: str, head: str | None) -> str:
    """The lines that differ between two commits, or with `head` None between `base` and the files in `folder`."""
    words = ("diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/")
    ends = ("--ignore-submodules=dirty", "--dst-prefix=b/", base)
    return (
        _printed(folder, "-c", "core.quotePath=false", *words, *ends, *([head] if head else []), "--") or ""
    )


def blamed_commit(folder: Path, path: str, line: int, head: str | None) -> str | None:
    """The commit that wrote a line last; None where it is in no commit, or git cannot tell."""
    span = f"{line},{line}"
    words = ("blame", "--no-textconv", "--porcelain", "-L", span, *([head] if head else []), "--", path)
    answer = (git_line(folder, *words) or "").split(" ", 1)[0]
    return answer if answer.strip("0") and len(answer) >= 40 else None


def removing_commit(folder: Path, path: str, text: str, base: str, head: str | None) -> str | None:
    """The commit after `base` that took a line with this text out of a file; None where it is in no commit."""
    span = f"{base}..{head or 'HEAD'}"
    found = git_line(folder, "log", "--no-textconv", "-1", "--format=%H", f"-S{text}", span, "--", path)
    if not found and head is not None:  # it was moved and not taken out, so that the text is there as often
        found = git_line(folder, "log", "-1", "--format=%H", span, "--", path)
    return found or None

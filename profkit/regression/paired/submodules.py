"""The submodules of a checkout, from those that lie in the repository already: most clones cannot fetch them again.

A submodule that the repository itself leaves empty is left empty: its programs do without.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from profkit.core.git import git_command
from profkit.regression.paired.git import git_line

MOST_DEEP = 8  # submodules inside of each other


def add_submodules(
    root: Path, target: Path, run: Callable[[Sequence[str], str | None], None], depth: int = 0
) -> None:
    """Fill the submodules of the checkout `target` of the repository at `root`.

    `run` runs these words of git and raises where that fails, with the line that mends it.
    """
    if not (target / ".gitmodules").is_file() or depth >= MOST_DEEP:
        return
    here = _submodules_of(root)
    for path, commit in _submodules_of(target).items():
        source, inside = root / path, target / path
        if path in here and not (source / ".git").exists():
            continue
        if _has(inside, commit):  # a kept build, at another commit
            run(git_command(inside, "checkout", "--quiet", "--force", "--detach", commit), None)
        elif _has(source, commit):
            run(
                git_command(
                    target, "clone", "--quiet", "--shared", "--no-checkout", str(source), str(inside)
                ),
                None,
            )
            run(git_command(inside, "checkout", "--quiet", "--detach", commit), None)
        else:
            fetch = shlex.join(["git", "-C", str(source), "fetch", "origin", commit])
            words = git_command(
                target, "submodule", "update", "--init", "--checkout", "--recursive", "--", path
            )
            run(words, fetch if (source / ".git").exists() else None)
            continue
        add_submodules(source, inside, run, depth + 1)


def _has(folder: Path, commit: str) -> bool:
    """Whether `folder` is a repository of its own with that commit."""
    own = (folder / ".git").exists()
    return own and git_line(folder, "cat-file", "-e", f"{commit}^{{commit}}") is not None


def _submodules_of(root: Path) -> dict[str, str]:
    """Path and commit of each submodule of what is checked out there."""
    found = {}
    for entry in (git_line(root, "ls-files", "--stage", "-z") or "").split("\0"):
        about, _, path = entry.partition("\t")
        words = about.split(" ")
        if (
            len(words) == 3
            and words[0] == "160000"
            and not path.startswith("/")
            and ".." not in path.split("/")
        ):
            found[path] = words[1]
    return found

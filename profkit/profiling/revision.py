"""Which commit a workload is of, as git tells it (no remote, no author, no path), and whether it is unchanged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from profkit.core.git import CHANGES, git_command, git_environment
from profkit.core.types import Revision, Workload

# For all questions together: a repository of a million files on a network disk is not waited for
SECONDS = 3.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def read_revision(workload: Workload, seconds: float = SECONDS) -> Revision:
    """The commit, branch and state of the repository that the workload's script lies in, else its working folder.

    `reason` says why there is none. Takes `seconds` at most; what is not known by then is None. Never raises.
    """
    if shutil.which("git") is None:
        return Revision(reason="git is not here")
    git = _Git(time.monotonic() + seconds)
    reason = "no folder"
    for folder in _script_folders(workload):
        code, answer = git(folder, "rev-parse", "--is-inside-work-tree")
        if code == 0 and answer == "true":
            return _revision_in(git, folder)
        reason = _refusal_reason(code, answer)
    return Revision(reason=reason)


def _script_folders(workload: Workload) -> list[Path]:
    """Where the script lies, where the command names one that is there; then where it runs."""
    working = Path(workload.folder)
    folders = []
    for word in workload.command[:8]:  # the interpreter, its options, the script
        try:
            path = (working / word).resolve()
            if path.suffix in (".py", ".sh") and path.is_file():
                folders.append(path.parent)
        except (OSError, ValueError, RuntimeError):
            continue
    return list(dict.fromkeys([*folders[:1], working]))


def _revision_in(git: _Git, folder: Path) -> Revision:
    code, commit = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    known = code == 0 and _COMMIT.fullmatch(commit) is not None
    code, branch = git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    name = branch if code == 0 and branch else None
    if not known:
        return Revision(None, name, None, "the repository has no commit yet")
    code, changed = git(folder, *CHANGES)
    late = "its state took too long to tell" if code is None else None
    return Revision(commit, name, bool(changed) if code == 0 else None, late)


def _refusal_reason(code: int | None, answer: str) -> str:
    if code is None:
        return "git did not answer in time"
    if "dubious ownership" in answer:
        return "the repository belongs to somebody else: git asks for its safe.directory"
    if code == 0 or "not a git repository" in answer:
        return "the folder is in no git repository"
    return "git cannot read the repository"


class _Git:
    """Asks git with what time is left. Nothing that the repository configures is started, and nothing is written."""

    def __init__(self, until: float) -> None:
        self._until = until

    def __call__(self, folder: Path, *words: str) -> tuple[int | None, str]:
        """Exit code and what it said; None where it was not done in time or could not be started."""
        left = self._until - time.monotonic()
        if left <= 0:
            return None, ""
        try:
            done = subprocess.run(
                git_command(folder, *words),
                capture_output=True,
                timeout=left,
                env=git_environment(folder, left),
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return None, ""
        output = done.stdout if done.returncode == 0 else done.stderr
        return done.returncode, output.decode("utf-8", "replace").strip()


MOST_FILES = 1000  # beside a script
_CODE = (".py", ".pyx", ".so", ".sh", ".yaml", ".yml", ".toml", ".json", ".cu", ".ptx")


def unchanged_program(
    workload: Workload, revision: Revision | None, packages: Mapping[str, str]
) -> str | None:
    """A text that two runs have in common where the same program did the same work; for a digest, not for people.

    It holds the command, the commit, the versions of packages, and size and date of the files that the command names
    and of the code beside its script. None where that cannot tell: the commit has changes, or there are too many files.
    """
    if revision is not None and revision.commit is not None and revision.dirty is not False:
        return None
    if not workload.command:
        return None
    commit = revision.commit if revision is not None else None
    try:
        files = sorted(_stamps(workload))
    except (OSError, ValueError, RuntimeError):
        return None
    if len(files) > MOST_FILES:
        return None
    what = (
        [*workload.command],
        workload.folder,
        workload.stdin,
        workload.python,
        commit,
        dict(packages),
        files,
    )
    return json.dumps(what, sort_keys=True)


def _stamps(workload: Workload) -> Iterator[tuple[str, int, int]]:
    """Name, size and date in nanoseconds."""
    working = Path(workload.folder)
    named = [working / word for word in workload.command] + [working / str(workload.stdin)]
    for path in named:
        with suppress(OSError, ValueError):  # it is no name of a file
            if path.is_file():
                yield _stamp(path)
    for folder in _script_folders(workload)[:1]:
        with os.scandir(folder) as entries:
            for entry in islice(
                (e for e in entries if e.name.endswith(_CODE) and e.is_file()), MOST_FILES + 1
            ):
                yield _stamp(Path(entry.path))


def _stamp(path: Path) -> tuple[str, int, int]:
    told = path.stat()
    return path.name, told.st_size, told.st_mtime_ns

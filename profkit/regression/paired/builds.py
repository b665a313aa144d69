"""Checkouts that a setup command made ready, kept from one time to the next: to build takes longer than to measure.

A build belongs to a repository, a setup command, and the lock files of a commit (what it depends on). Where another
commit has the same lock files, an unused build moves to it: what git ignores there (an environment, object files)
stays, so that the setup command only does what the change asks for. The builds lie in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import make_parents
from profkit.core.git import git_command
from profkit.core.whole_files import user_cache, write_whole
from profkit.regression.paired.git import git_line

UNUSED_SECONDS = 30 * 86_400.0
MOST_BUILDS = 4  # of one repository, setup and set of lock files; the one that was used longest ago moves on
_LOCKS = [
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pixi.lock",
    "Pipfile.lock",
    "conda-lock.yml",
    "environment.yml",
    "environment.yaml",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements.lock",
    "Cargo.lock",
    "Cargo.toml",
    "package-lock.json",
    "CMakeLists.txt",
    "go.sum",
]


@dataclass(frozen=True)
class Build:
    """One kept checkout. `ready`: it holds `commit`, and the setup command has run for that."""

    place: Path
    folder: Path
    root: Path
    commit: str
    ready: bool

    def check_out(self, run: Callable[[Sequence[str]], None]) -> None:
        """Put the files of the commit there; `run` runs these words of git, and raises where that fails."""
        with contextlib.suppress(OSError):
            (self.place / _READY).unlink()
        if not (self.folder / ".git").exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            words = ("clone", "--quiet", "--shared", "--no-checkout", str(self.root), str(self.folder))
            run(git_command(self.root, *words))
        run(git_command(self.folder, "checkout", "--quiet", "--force", "--detach", self.commit))
        run(
            git_command(self.folder, "clean", "--quiet", "--force", "-d")
        )  # not what git ignores: that is the build

    def mark_ready(self) -> None:
        """The setup command has run."""
        write_whole(self.place / _READY, [json.dumps({"commit": self.commit})])


_READY, LOCK = "ready.json", "lock"


@contextlib.contextmanager
def kept_build(root: Path, commit: str, setup: Sequence[str]) -> Iterator[Build | None]:
    """A build for `commit` that nobody else uses meanwhile; None where there is no cache folder to keep one in."""
    cache = user_cache("builds")
    if cache is None:
        yield None
        return
    family = cache / _key_of(root, commit, setup)
    if not family.exists():
        _remove_unused(cache)
    for place in _places(family, commit):
        handle = lock_folder(place)
        if handle is not None:
            try:
                ready = _commit_in(place) == commit
                if ready:
                    os.utime(place / _READY)  # used just now: not the one that moves on
                yield Build(place, place / root.name, root, commit, ready)
            finally:
                os.close(handle)
            return
    yield None


def _remove_unused(cache: Path) -> None:
    """Take away the builds that nobody used for a month: they are large, and of lock files that have changed."""
    with contextlib.suppress(OSError):
        for family in list(cache.iterdir()):
            used = [
                path.lstat().st_mtime for path in (family, *family.glob("*"), *family.glob(f"*/{_READY}"))
            ]
            if time.time() - max(used) > UNUSED_SECONDS:
                shutil.rmtree(family, ignore_errors=True)


def _key_of(root: Path, commit: str, setup: Sequence[str]) -> str:
    entries = git_line(root, "ls-tree", commit) or ""
    locks = [line for line in entries.splitlines() if line.partition("\t")[2] in _LOCKS]
    text = json.dumps([str(root), list(setup), locks])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _places(family: Path, commit: str) -> list[Path]:
    """Where the build may be, the best first: where the commit is ready, an empty place, the one used longest ago."""
    places = [family / str(number) for number in range(MOST_BUILDS)]

    def order(place: Path) -> tuple[int, float]:
        there = _commit_in(place)
        used = (place / _READY).stat().st_mtime if there is not None else 0.0
        return (0 if there == commit else 1 if there is not None else 2), used

    known = [place for place in places if _commit_in(place) is not None]
    # A second build beside a first one, for the other side of a comparison, begins from nothing once.
    return sorted(places, key=order) if known else places


def _commit_in(place: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        commit = json.loads(read_bounded_text(place / _READY))["commit"]
        return commit if isinstance(commit, str) else None
    return None


def lock_folder(place: Path) -> int | None:
    """A handle that holds the folder while it is open; None where another process has it, or it cannot be made.

    A process that is killed holds nothing any more.
    """
    try:
        make_parents(place)
        handle = os.open(place / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle

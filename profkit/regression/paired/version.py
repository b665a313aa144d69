"""One of two versions: a command, where it runs, and whose code it must run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from profkit.regression.paired.checkout import (
    CheckoutSpec,
    NoCheckout,
    checked_out,
    commit_of,
    git_line,
    is_dirty,
    no_repository,
    repository_of,
    resolve_commit,
)

PRESENT = "the working tree"
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")  # a repository may hold several projects


@dataclass(frozen=True)
class Version:
    """A version that is ready to run. `root` is the folder of its code, where it is one of a repository's."""

    name: str
    command: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None
    commit: str | None = None
    dirty: bool = False
    repository: Path | None = None  # where it was checked out from; None: it runs in its own place

    def environment(self) -> dict[str, str]:
        """What is set for its processes: Python finds the modules of its own folder before installed ones.

        A project that is installed in place (`pip install -e`) would run the code of one folder in both versions.
        """
        env = dict(self.env)
        if self.root is not None:
            folders = [str(path) for path in _module_folders(self.cwd, self.root)]
            present = env.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
            env["PYTHONPATH"] = os.pathsep.join([*folders, *([present] if present else [])])
        return env


def _module_folders(cwd: Path, root: Path) -> list[Path]:
    """Where the modules of the code lie: the root, and each project around `cwd` inside it, each with its `src`."""
    inside = [path for path in (cwd, *cwd.parents) if path != root and path.is_relative_to(root)]
    projects = [path for path in inside if any((path / name).is_file() for name in _PROJECT_FILES)]
    folders = [folder for path in (*projects, root) for folder in (path, path / "src")]
    return [folder for folder in folders if folder == root or folder.is_dir()]


def named_commit(root: Path, name: str) -> str:
    """The hash of what a user called `name`. Raises NoCheckout where there is no such commit."""
    commit = resolve_commit(root, name)
    if commit is None and git_line(root, "rev-parse", "--is-shallow-repository") == "true":
        raise NoCheckout(
            f"there is no commit {name!r} in {root}, which is a shallow clone",
            "git fetch --unshallow  # in GitHub Actions: actions/checkout with fetch-depth: 0",
        )
    if commit is None:
        raise NoCheckout(f"there is no commit {name!r} in {root}", f"git -C {root} log --oneline; git fetch")
    return commit


@contextlib.contextmanager
def version_of(
    name: str | None,
    command: tuple[str, ...],
    cwd: Path,
    spec: CheckoutSpec,
    log: Path,
    tick: Callable[[float], None] | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Version]:
    """The version of the commit `name` (a branch, a tag, a hash), or with None the files as they are in `cwd`.

    `command` is as it would be typed in `cwd`. Raises NoCheckout where the commit cannot be had there.
    """
    root, env = repository_of(cwd), env or {}
    if name is None:
        commit = commit_of(cwd) if root is not None else None
        dirty = root is not None and is_dirty(root)
        title = PRESENT if dirty or commit is None else f"{PRESENT} ({commit[:12]})"
        yield Version(title, command, cwd, env, root, commit, dirty)
        return
    if root is None:
        fault = no_repository(cwd)
        raise NoCheckout(f"{fault.message}, so it has no commit {name!r}", fault.fix)
    commit = named_commit(root, name)
    title = commit[:12] if commit.startswith(name) else f"{name} ({commit[:12]})"
    with checked_out(cwd, commit, spec, log, tick) as checkout:
        yield Version(
            title,
            checkout.command_inside(command, cwd),
            checkout.path_inside(cwd),
            env,
            checkout.folder,
            commit,
            repository=root,
        )

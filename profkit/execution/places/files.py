"""What is sent to a place: profkit, the libraries that it lacks there, and the workload's files."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shlex
import stat
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.core.errors import UsageError
from profkit.core.git import git_command, git_environment
from profkit.execution.places.boot import file_hash

MOST_BYTES = 1 << 30  # of a workload's files
MOST_FILES = 50_000
PACKAGE = Path(__file__).resolve().parents[2]
# What profkit cannot do without at a place. Without capstone it does less; numpy is too large to send.
NEEDED, SENDABLE = ("psutil", "yaml"), ("psutil", "yaml", "capstone")
DISTRIBUTIONS = {"yaml": "PyYAML"}


@dataclass(frozen=True)
class Hello:
    """What the Python at a place says of itself. `host` tells its machine from others."""

    python: str = ""
    version: tuple[int, ...] = ()
    platform: str = ""
    abi: str | None = None
    libraries: Mapping[str, bool] = field(default_factory=dict)
    host: str = ""


@dataclass(frozen=True)
class File:
    """One file of a tree: where its content is now, or the content itself; kind f: file, x: program, l: link."""

    name: str
    sha: str
    size: int
    kind: str
    content: Path | bytes


@dataclass(frozen=True)
class Tree:
    """Files that are laid out together. `folder`: that of them in which the command runs."""

    files: tuple[File, ...]
    folder: str = "."

    @property
    def id(self) -> str:
        """The SHA-256 of its table."""
        return hashlib.sha256(json.dumps(self.table()).encode()).hexdigest()

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(file.size for file in self.files)

    def table(self) -> list[list[Any]]:
        """Its files, as they are told to a place."""
        return [[file.name, file.sha, file.size, file.kind] for file in self.files]


@dataclass(frozen=True)
class Sending:
    """What the user lets go to a place, beside profkit. `env` by name; `python` is the interpreter there."""

    paths: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None


def read_environment(names: Sequence[str]) -> dict[str, str]:
    """The variables that are sent by name. Raises UsageError for one that is not set."""
    for name in names:
        if name not in os.environ:
            raise UsageError(f"--send-env {name}: there is no such variable here", f"export {name}=...")
    return {name: os.environ[name] for name in names}


@functools.cache
def profkit_tree() -> Tree:
    """profkit itself: every file of the package."""
    paths = sorted(path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return Tree(tuple(_file(path, path.relative_to(PACKAGE.parent).as_posix()) for path in paths))


def library_tree(hello: Hello) -> tuple[Tree | None, tuple[str, ...]]:
    """The libraries that a place lacks, from what is installed here; and the names of those that do not fit there."""
    missing = [name for name in SENDABLE if not hello.libraries.get(name)]
    files: list[File] = []
    unfit = []
    for name in missing:
        found = _library_files(name, hello)
        if found is None:
            unfit.append(name)
        else:
            files += found
    return (Tree(tuple(files)) if files else None), tuple(unfit)


def _library_files(name: str, hello: Hello) -> list[File] | None:
    """The files of one library; None where its machine code is for another system or another Python."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    same_system = hello.platform == sysconfig.get_platform()
    same_python = same_system and hello.abi == sysconfig.get_config_var("SOABI")
    files = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if not path.is_file() or {"__pycache__", "tests", "include"} & set(inside.parts):
            continue
        if path.suffix in (".so", ".dylib", ".pyd"):
            lasting = ".abi3." in path.name or not path.name.endswith(
                f"{sysconfig.get_config_var('EXT_SUFFIX')}"
            )
            if not (same_system if lasting else same_python):
                if name == "yaml":  # it does without
                    continue
                return None
        elif path.suffix in (".a", ".pyx", ".pxd"):
            continue
        files.append(_file(path, f"{name}/{inside.as_posix()}"))
    return files


def missing_library_fix(names: Sequence[str], python: str) -> str:
    """The line that installs libraries at a place."""
    return f"{shlex.quote(python)} -m pip install {' '.join(DISTRIBUTIONS.get(name, name) for name in names)}"


# ---------------------------------------------------------------- the workload's files


def workload_tree(command: Sequence[str], paths: Sequence[Path]) -> Tree:
    """The tracked files of the git work tree one is in, as they are on disk now, and what `paths` name.

    Where `paths` lie outside of the work tree, all keeps its place under the folder that is above all of it. Raises
    UsageError: a path that is not there, too much, or a command that names a file which is not sent.
    """
    here = Path.cwd()
    top = _work_tree(here)
    tracked = _tracked_files(top) if top is not None else []
    named = [path for root in paths for path in _files_below(root)]
    roots = [str(path.resolve() if path.is_dir() else path.absolute().parent.resolve()) for path in paths]
    base = Path(os.path.commonpath([str(top or here), str(here), *roots]))
    files: dict[str, Path] = {}
    for path in (*tracked, *named):
        files[path.relative_to(base).as_posix()] = path
    if len(files) > MOST_FILES:
        raise UsageError(f"{len(files)} files would be sent, and at most {MOST_FILES} are", "--send PATH")
    sizes = {name: path.lstat().st_size for name, path in files.items()}
    if sum(sizes.values()) > MOST_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise UsageError(
            f"{sum(sizes.values()) >> 20} MiB would be sent, and at most {MOST_BYTES >> 20} MiB are; the largest file "
            f"is {largest} ({sizes[largest] >> 20} MiB)",
            "bring the data to the place by other means, and name it by its path there",
        )
    _check_command(command, here, base, files)
    sent = (_link_or_file(path, name, base) for name, path in sorted(files.items()))
    return Tree(tuple(file for file in sent if file is not None), here.relative_to(base).as_posix())


def _work_tree(folder: Path) -> Path | None:
    answer = _git(folder, "rev-parse", "--show-toplevel")
    return Path(os.fsdecode(answer.rstrip(b"\n"))).resolve() if answer else None


def _tracked_files(top: Path) -> list[Path]:
    names = _git(top, "ls-files", "-z", "--cached", "--recurse-submodules").split(b"\0")
    paths = [top / os.fsdecode(name) for name in dict.fromkeys(names) if name]
    return [path for path in paths if path.is_symlink() or path.is_file()]  # what was deleted is gone


def _git(folder: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(
            git_command(folder, *words),
            capture_output=True,
            env=git_environment(folder),
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _files_below(root: Path) -> list[Path]:
    if not os.path.lexists(root):
        raise UsageError(f"--send {root}: it is not there")
    base = root.resolve() if root.is_dir() else root.absolute().parent.resolve() / root.name
    if base.is_file():
        return [base]
    inside = (
        Path(at, name)
        for at, _, names in os.walk(base)
        for name in names
        if "__pycache__" not in Path(at).parts
    )
    return [path for path in inside if path.is_symlink() or path.is_file()]


def _check_command(command: Sequence[str], here: Path, base: Path, files: Mapping[str, Path]) -> None:
    """Raise UsageError where the command names a file that is here and would not be there."""
    for word in command:
        path = Path(os.path.normpath(here / word))
        if not word or not (here / word).is_file() or not path.is_relative_to(here):
            continue
        if path.relative_to(base).as_posix() not in files:
            shown = shlex.quote(word)
            raise UsageError(
                f"{word} is not tracked by git, so it would not be sent",
                f"git add {shown}, or --send {shown}",
            )
        if Path(word).is_absolute():
            relative = path.relative_to(here)
            raise UsageError(f"{word} is a path of this machine; it is another there", f"call it {relative}")


def _link_or_file(path: Path, name: str, base: Path) -> File | None:
    """A link stays one where it leads to something inside of the tree; any other is left out."""
    if not path.is_symlink():
        return _file(path, name)
    target = os.readlink(path)
    leads = os.path.normpath(os.path.join(path.parent, target))
    if os.path.isabs(target) or not Path(leads).is_relative_to(base):
        return None
    content = os.fsencode(target)
    return File(name, hashlib.sha256(content).hexdigest(), len(content), "l", content)


def _file(path: Path, name: str) -> File:
    status = path.stat()
    return File(name, file_hash(path), status.st_size, "x" if status.st_mode & stat.S_IXUSR else "f", path)

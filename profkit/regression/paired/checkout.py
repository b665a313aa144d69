"""Check out another commit of a repository beside the present one, and make it ready to run.

Without a setup command it is a git worktree in a temporary folder, removed afterwards; with one it is kept in
the user's cache folder, since building takes longer than measuring. If it is not available, NoCheckout says why.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from profkit.core import process
from profkit.core.errors import UsageError
from profkit.core.files.safe_folder import TemporaryFolder, make_parents, opened, user_cache
from profkit.core.git import CHANGES, QUIET, ask_git, git_command, git_environment
from profkit.core.signals import defer_interrupts
from profkit.regression.profile_process import Command, Seconds

_ERROR = re.compile(r"\b(?:error|fatal)\b *[:\[]|Error:", re.IGNORECASE)  # of compilers, git, pip and Python
DEEPER = "git fetch --unshallow  # in GitHub Actions: actions/checkout with fetch-depth: 0"
Tick: TypeAlias = Callable[[float], None] | None
GIT_SECONDS = 300.0  # a large tree from a cold disk takes a minute; a wait for a password never ends


@dataclass(frozen=True)
class CheckoutSpec:
    """How a checkout is made ready: by `setup`, before its first run, in at most `setup_timeout` seconds."""

    setup: Command = ()
    setup_timeout: Seconds = 600.0


class NoCheckout(UsageError):
    """A commit cannot be checked out. `log`: what a failed step printed.

    Whoever keeps that file names it as the fix.
    """

    def __init__(self, message: str, fix: str | None = None, log: Path | None = None) -> None:
        super().__init__(message, fix)
        self.log = log


@dataclass(frozen=True)
class Checkout:
    """A folder with the files of `commit`, which stands for the repository at `root`."""

    root: Path
    folder: Path
    commit: str

    def path_inside(self, path: Path) -> Path:
        """Return the same place in the checkout.

        Raise NoCheckout if it is outside of the repository or not there.
        """
        try:
            inside = path.resolve().relative_to(self.root)
        except ValueError:
            raise NoCheckout(f"the workload runs in {path}, outside of the repository") from None
        folder = self.folder / inside
        if not folder.is_dir():
            raise NoCheckout(f"the folder {inside} is not in {self.commit[:12]}")
        return folder

    def command_inside(self, command: tuple[str, ...], cwd: Path) -> tuple[str, ...]:
        """Return the command as it runs in the checkout, where the workload ran in `cwd`.

        A path into the repository becomes one into the checkout. What the commit does not hold, an interpreter in
        `.venv` or data that nobody committed, is taken from the repository: it belongs to the machine, and is the
        same for both.
        """
        return tuple(self._word_inside(word, cwd) for word in command)

    def _word_inside(self, word: str, cwd: Path) -> str:
        path = Path(word)
        if path.is_absolute():
            if not path.is_relative_to(self.root):
                return word
            copied = self.folder / path.relative_to(self.root)
            return str(copied) if copied.exists() else word
        with contextlib.suppress(OSError, ValueError, NoCheckout):
            if ("/" in word or "." in word) and (cwd / word).exists():
                return word if (self.path_inside(cwd) / word).exists() else str(cwd / word)
        return word


_DUBIOUS = re.compile(r"dubious ownership in repository at '(.+)'")


def repository_of(folder: Path) -> Path | None:
    """Return the top folder of the git repository around `folder`; None if there is none, or no git."""
    line = git_line(folder, "rev-parse", "--show-toplevel")
    return Path(line).resolve() if line else None


def no_repository(folder: Path) -> NoCheckout:
    """Build the fault for a folder without a repository, with git's own reason."""
    _, complaint = ask_git(folder, "rev-parse", "--show-toplevel", seconds=GIT_SECONDS)
    if (doubted := _DUBIOUS.search(complaint)) is not None:
        # the folder belongs to another user, as a checkout in a container job does
        fix = f"git config --global --add safe.directory {shlex.quote(doubted[1])}"
        return NoCheckout(f"git does not trust {doubted[1]}: it belongs to another user", fix)
    fix = f"git init; or git -C {shlex.quote(str(folder))} status, which says why"
    return NoCheckout(f"{folder} is in no git repository that git reads", fix)


def commit_of(folder: Path) -> str | None:
    """Return the commit that `folder` is at; None if it is in no repository."""
    return git_line(folder, "rev-parse", "--verify", "HEAD")


@contextlib.contextmanager
def checked_out(
    folder: Path,
    commit: str,
    spec: CheckoutSpec,
    log: Path,
    tick: Tick = None,
) -> Iterator[Checkout]:
    """Check out `commit` of the repository around `folder`, and set it up; it is removed after the block.

    `log` is a folder for what git and the setup print. Raises NoCheckout with the reason.
    """
    root = repository_of(folder)
    if root is None:
        raise no_repository(folder)
    if spec.setup:
        with _kept_build(root, spec.setup) as place:
            if place is not None:
                target = place / root.name
                _clone(root, target, commit, log, tick)
                _run_setup(spec, target, log, tick)
                yield Checkout(root, target, commit)
                return
    with TemporaryFolder("checkout") as name:
        target = Path(name).resolve() / root.name
        try:
            git_line(root, "worktree", "prune")  # what a run that was killed left registered
            _run_git(git_command(root, "worktree", "add", "--detach", str(target), commit), root, log, tick)
            if spec.setup:
                _run_setup(spec, target, log, tick)
            yield Checkout(root, target, commit)
        finally:
            with defer_interrupts():
                git_line(root, "worktree", "remove", "--force", "--force", str(target))
                shutil.rmtree(target, ignore_errors=True)
                git_line(root, "worktree", "prune")


def _clone(root: Path, target: Path, commit: str, log: Path, tick: Tick) -> None:
    """Put the commit's files into a clone that is kept; files that git ignores stay: they are the build."""
    if not (target / ".git").exists():
        shutil.rmtree(target, ignore_errors=True)
        words = ("clone", "--quiet", "--shared", "--no-checkout", str(root), str(target))
        _run_git(git_command(root, *words), root, log, tick)
    _run_git(git_command(target, "checkout", "--quiet", "--force", "--detach", commit), root, log, tick)
    _run_git(git_command(target, "clean", "--quiet", "--force", "-d"), root, log, tick)


def _run_setup(spec: CheckoutSpec, target: Path, log: Path, tick: Tick) -> None:
    _run_step("the setup command", spec.setup, target, log / "setup.log", spec.setup_timeout, tick)


def _run_git(words: Sequence[str], root: Path, log: Path, tick: Tick) -> None:
    environment = git_environment(root)
    _run_step("git's checkout", words, root, log / "checkout.log", GIT_SECONDS, tick, environment)


def _run_step(
    what: str,
    words: Sequence[str],
    cwd: Path,
    log: Path,
    timeout: float,
    tick: Tick,
    environment: Mapping[str, str] = QUIET,
) -> None:
    """Run one step; if it fails, raise NoCheckout with the first line that names an error, else the last line."""
    with contextlib.suppress(OSError):
        make_parents(log.parent)
    try:
        done = process.run(words, cwd=cwd, env=environment, log=log, timeout=timeout, tick=tick)
    except UsageError as fault:
        raise NoCheckout(f"{what} cannot be run: {fault.message}", fault.fix) from None
    if not done.ok:
        lines = [line.strip() for line in done.output_tail.splitlines() if line.strip()]
        # A compiler ends with how many errors there were, make with which of its lines failed.
        named = [line for line in lines if _ERROR.search(line)] or lines[-1:]
        first = f": {named[0][:200]}" if named else ""
        raise NoCheckout(f"{what} {done.ending()}{first}", log=log)


# ---------------------------------------------------------------- builds, kept from one time to the next

# A build belongs to a repository and a setup command, and moves from commit to commit: what git ignores there (an
# environment, object files) stays, so that the setup command only does what the change asks for.
_LOCK = ".lock"
UNUSED_SECONDS = 30 * 86_400.0  # then a build is removed
MAX_BUILDS = 4  # of one repository and setup: so many calls can use them at once


@contextlib.contextmanager
def _kept_build(root: Path, setup: Sequence[str]) -> Iterator[Path | None]:
    """Yield the folder of a build that nobody else uses meanwhile; None if there is no place to keep one."""
    cache = user_cache("builds")
    if cache is None:
        yield None
        return
    with contextlib.suppress(OSError):  # what nobody used for a month goes: they are large
        for lock in list(cache.glob(f"*/{_LOCK}")):
            if time.time() - lock.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(lock.parent, ignore_errors=True)
    key = hashlib.sha256(json.dumps([str(root), list(setup)]).encode()).hexdigest()[:16]
    for number in range(MAX_BUILDS):
        with contextlib.ExitStack() as stack:
            try:
                free = stack.enter_context(locked(cache / f"{key}-{number}"))
            except OSError:
                continue
            if free:
                yield cache / f"{key}-{number}"
                return
    yield None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Make a folder and lock it during the block; yield False if another process has it. Raises OSError.

    A process that is killed holds nothing any more; where a file system knows no locks, none is held.
    """
    make_parents(folder)
    with opened(folder) as inside:
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(inside / _LOCK, flags, 0o600)
        os.utime(handle)  # used just now
    try:
        free = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            free = False
        except OSError:
            pass
        yield free
    finally:
        os.close(handle)


# ---------------------------------------------------------------- questions to git


def git_line(folder: Path, *words: str) -> str | None:
    """Return what a git command prints, without its last newline; None if it fails, or git is not installed."""
    printed = _printed(folder, *words)
    return printed.removesuffix("\n") if printed is not None else None


def _printed(folder: Path, *words: str) -> str | None:
    printed, _ = ask_git(folder, *words, seconds=GIT_SECONDS)
    return printed.decode("utf-8", "replace") if printed is not None else None


def resolve_commit(root: Path, name: str) -> str | None:
    """Return the full hash of the commit that a branch, a tag, `HEAD~1` or a short hash means there.

    None if none.
    """
    if name.startswith("-"):
        return None
    return git_line(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def subject_of(root: Path, commit: str) -> str:
    """Return the first line of a commit's message; empty if it cannot be read."""
    return git_line(root, "show", "--no-patch", "--format=%s", commit) or ""


def is_dirty(folder: Path) -> bool:
    """Return whether files that git follows were changed since the last commit."""
    return bool(git_line(folder, *CHANGES))


def diff_text(folder: Path, base: str, head: str | None) -> str:
    """Return the diff of two commits, or with `head` None of `base` and the files in `folder`, without context."""
    words = ("diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/")
    ends = ("--ignore-submodules=dirty", "--dst-prefix=b/", base)
    return (
        _printed(folder, "-c", "core.quotePath=false", *words, *ends, *([head] if head else []), "--") or ""
    )


def blamed_commit(folder: Path, path: str, line: int, head: str | None) -> str | None:
    """Return the commit that last wrote a line; None if it is in no commit, or git cannot tell."""
    span = f"{line},{line}"
    words = ("blame", "--no-textconv", "--porcelain", "-L", span, *([head] if head else []), "--", path)
    answer = (git_line(folder, *words) or "").split(" ", 1)[0]
    return answer if answer.strip("0") and len(answer) >= 40 else None


PRESENT = "the working tree"
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")  # a repository may hold several projects


@dataclass(frozen=True)
class Version:
    """A version that is ready to run. `root` is the folder of its code, if it is in a repository."""

    name: str
    command: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None
    commit: str | None = None
    dirty: bool = False
    repository: Path | None = None  # where it was checked out from; None: it runs in its own place
    given: Path | None = None  # what it reads at its standard input

    def environment(self) -> dict[str, str]:
        """Return the variables for its processes: Python finds the modules of its own folder first.

        A project that is installed in place (`pip install -e`) would run the code of one folder in both versions.
        """
        env = dict(self.env)
        if self.root is not None:
            folders = [str(path) for path in _module_folders(self.cwd, self.root)]
            present = env.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
            env["PYTHONPATH"] = os.pathsep.join([*folders, *([present] if present else [])])
        return env


def _module_folders(cwd: Path, root: Path) -> list[Path]:
    """List where the modules of the code lie: the root, and each project around `cwd` in it, each with its `src`."""
    inside = [path for path in (cwd, *cwd.parents) if path != root and path.is_relative_to(root)]
    projects = [path for path in inside if any((path / name).is_file() for name in _PROJECT_FILES)]
    folders = [folder for path in (*projects, root) for folder in (path, path / "src")]
    return [folder for folder in folders if folder == root or folder.is_dir()]


def known_name(root: Path, name: str) -> str:
    """Return `name`, or the branch of that name at a remote.

    A clone has its own branch only of what it checked out. The remote is origin, or the one other that has such a
    branch.
    """
    if resolve_commit(root, name) is not None:
        return name
    there = _at_remotes(root, name)
    return there[0] if there and (len(there) == 1 or there[0].startswith("origin/")) else name


def _at_remotes(root: Path, name: str) -> list[str]:
    """List the branches of that name at remotes, origin's first, as a user would type them."""
    remotes = sorted(
        (git_line(root, "remote") or "").split(), key=lambda remote: (remote != "origin", remote)
    )
    return [
        f"{remote}/{name}"
        for remote in remotes
        if resolve_commit(root, f"refs/remotes/{remote}/{name}") is not None
    ]


def named_commit(root: Path, name: str) -> str:
    """Return the hash of the commit that a user named. Raises NoCheckout if there is no such commit."""
    commit = resolve_commit(root, known_name(root, name))
    if commit is None:
        there = _at_remotes(root, name)
        if there:
            raise NoCheckout(
                f"there is no branch {name!r} in {root}, but {' and '.join(there)}",
                f"--base {shlex.quote(there[0])}",
            )
        shallow = git_line(root, "rev-parse", "--is-shallow-repository") == "true"
        clone = ", which is a shallow clone" if shallow else ""
        fix = DEEPER if shallow else f"git -C {root} log --oneline; git fetch"
        raise NoCheckout(f"there is no commit {name!r} in {root}{clone}", fix)
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
    """Yield the version of the commit `name` (a branch, a tag, a hash); None: the files as they are in `cwd`.

    `command` is as it would be typed in `cwd`. Raises NoCheckout if the commit is not available there.
    """
    root, env = repository_of(cwd), env or {}
    if name is None:
        commit = commit_of(cwd) if root is not None else None
        dirty = root is not None and is_dirty(root)
        title = PRESENT if dirty or commit is None else f"{PRESENT} ({commit[:12]})"
        yield Version(title, command, cwd, env, root, commit, dirty)
        return
    if root is None:
        raise no_repository(cwd)
    name = known_name(root, name)
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

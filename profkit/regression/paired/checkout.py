"""Another commit of a repository, checked out beside the present one and set up, ready to run.

Without a setup command it is a git worktree in a temporary folder, removed afterwards; with one it is kept for the
next time (`builds.py`). Where it cannot be had, NoCheckout says why.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from profkit.core import process
from profkit.core.errors import UsageError
from profkit.core.files.safe_folder import make_parents
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.git import QUIET, git_command, git_environment
from profkit.core.signals import defer_interrupts
from profkit.regression.nightly import config_values as values
from profkit.regression.paired.builds import kept_build
from profkit.regression.paired.git import git_line
from profkit.regression.paired.submodules import add_submodules

# git's words since 2.35.2 (CVE-2022-24765), and the folder that it would have to trust
_OF_ANOTHER_USER = re.compile(r"dubious ownership in repository at '(.*)'")
_ERROR = re.compile(r"\b(?:error|fatal)\b *[:\[]|Error:", re.IGNORECASE)  # of compilers, git, pip and Python
GIT_SECONDS = 300.0  # a large tree from a cold disk takes a minute; a wait for a password never ends


@dataclass(frozen=True)
class CheckoutSpec:
    """How a commit is checked out and made ready. `setup_timeout` in seconds, for each of the two commands."""

    # empty: git does it; else a command with {commit} and {folder}
    checkout: Annotated[tuple[str, ...], values.checkout] = ()
    setup: values.Command = ()  # run in the checkout before its first run
    setup_timeout: values.Seconds = 600.0


class NoCheckout(Exception):
    """Why there is no checkout of that commit, and what would fix that.

    `log`: what a failed step printed. Whoever keeps that file names it as the fix.
    """

    def __init__(self, reason: str, fix: str | None = None, log: Path | None = None) -> None:
        super().__init__(reason)
        self.reason, self.fix, self.log = reason, fix, log


@dataclass(frozen=True)
class Checkout:
    """A folder with the files of `commit`, which stands for the repository at `root`."""

    root: Path
    folder: Path
    commit: str

    def path_inside(self, path: Path) -> Path:
        """The same place in the checkout; raises NoCheckout for what is outside of the repository or not there."""
        try:
            inside = path.resolve().relative_to(self.root)
        except ValueError:
            raise NoCheckout(f"the workload runs in {path}, outside of the repository") from None
        folder = self.folder / inside
        if not folder.is_dir():
            raise NoCheckout(f"the folder {inside} is not in {self.commit[:12]}")
        return folder

    def command_inside(self, command: tuple[str, ...], cwd: Path) -> tuple[str, ...]:
        """The command as it runs in the checkout, where the workload ran in `cwd`.

        A path into the repository becomes one into the checkout. What the commit does not hold, an interpreter in
        `.venv` or data that nobody committed, is taken from the repository: it belongs to the machine, and is the same
        for both.
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


def repository_of(folder: Path) -> Path | None:
    """The top folder of the git repository that `folder` lies in; None where there is none, or no git."""
    line = git_line(folder, "rev-parse", "--show-toplevel")
    return Path(line).resolve() if line else None


def no_repository(folder: Path, fix: str = "cd REPOSITORY") -> NoCheckout:
    """Why `repository_of` finds none around `folder`, with the line that mends it; `fix` where there is none at all."""
    try:
        done = process.run(
            git_command(folder, "rev-parse", "--show-toplevel"),
            env=git_environment(folder),
            timeout=GIT_SECONDS,
        )
    except UsageError:
        return NoCheckout("git is not installed")
    if match := _OF_ANOTHER_USER.search(done.output_tail):
        line = shlex.join(["git", "config", "--global", "--add", "safe.directory", match[1]])
        return NoCheckout(
            f"the git repository around {folder} belongs to another user, so git does not read it", line
        )
    return NoCheckout(f"{folder} is in no git repository", fix)


def commit_of(folder: Path) -> str | None:
    """The commit that `folder` is at; None where it is in no repository."""
    return git_line(folder, "rev-parse", "--verify", "HEAD")


@contextlib.contextmanager
def checked_out(
    folder: Path,
    commit: str,
    spec: CheckoutSpec,
    log: Path,
    tick: Callable[[float], None] | None = None,
) -> Iterator[Checkout]:
    """`commit` of the repository around `folder`, set up and ready to run; gone again behind the block.

    `log` is a folder for what git and the setup print. Raises NoCheckout with the reason.
    """
    root = repository_of(folder)
    if root is None:
        fault = no_repository(folder)
        raise NoCheckout(f"{commit[:12]} cannot be checked out: {fault.reason}", fault.fix)
    if not spec.checkout:
        _require_commit(root, commit)
    if spec.setup and not spec.checkout:
        with kept_build(root, commit, spec.setup) as build:
            if build is not None:
                if not build.ready:
                    build.check_out(lambda words: _run_git(words, root, log / "checkout.log", tick))
                    _submodules(root, build.folder, log, tick)
                    _run_setup(spec, build.folder, log, tick)
                    build.mark_ready()
                yield Checkout(root, build.folder, commit)
                return
    with TemporaryFolder("checkout") as name:
        target = Path(name).resolve() / root.name
        try:
            if spec.checkout:
                words = tuple(
                    w.replace("{commit}", commit).replace("{folder}", str(target)) for w in spec.checkout
                )
                _run_step("the checkout command", words, root, log / "checkout.log", spec.setup_timeout, tick)
            else:
                _worktree(root, target, commit, log, tick)
            if spec.setup:
                _run_setup(spec, target, log, tick)
            yield Checkout(root, target, commit)
        finally:
            if not spec.checkout:
                with defer_interrupts():
                    git_line(root, "worktree", "remove", "--force", "--force", str(target))
                    shutil.rmtree(target, ignore_errors=True)
                    git_line(root, "worktree", "prune")


def _require_commit(root: Path, commit: str) -> None:
    """Raise NoCheckout where this clone does not have the commit."""
    if git_line(root, "cat-file", "-e", f"{commit}^{{commit}}") is not None:
        return
    if git_line(root, "rev-parse", "--is-shallow-repository") == "true":
        raise NoCheckout(
            f"this clone is shallow and does not have the commit {commit[:12]}",
            "git fetch --unshallow  # in GitHub Actions: actions/checkout with fetch-depth: 0",
        )
    raise NoCheckout(f"this clone does not have the commit {commit[:12]}", f"git fetch origin {commit}")


def _worktree(root: Path, target: Path, commit: str, log: Path, tick: Callable[[float], None] | None) -> None:
    git_line(root, "worktree", "prune")  # what a run that was killed left registered
    _run_git(
        git_command(root, "worktree", "add", "--detach", str(target), commit),
        root,
        log / "checkout.log",
        tick,
    )
    _submodules(root, target, log, tick)


def _submodules(root: Path, target: Path, log: Path, tick: Callable[[float], None] | None) -> None:
    def run(words: Sequence[str], fix: str | None) -> None:
        try:
            _run_git(words, root, log / "submodules.log", tick, "the checkout of submodules")
        except NoCheckout as fault:
            raise NoCheckout(fault.reason, fix or fault.fix, fault.log) from None

    add_submodules(root, target, run)


def _run_setup(spec: CheckoutSpec, target: Path, log: Path, tick: Callable[[float], None] | None) -> None:
    _run_step("the setup command", spec.setup, target, log / "setup.log", spec.setup_timeout, tick)


def _run_git(
    words: Sequence[str],
    root: Path,
    log: Path,
    tick: Callable[[float], None] | None,
    what: str = "git's checkout",
) -> None:
    _run_step(what, words, root, log, GIT_SECONDS, tick, git_environment(root))


def _run_step(
    what: str,
    words: Sequence[str],
    cwd: Path,
    log: Path,
    timeout: float,
    tick: Callable[[float], None] | None,
    environment: Mapping[str, str] = QUIET,
) -> None:
    """Run one step; raise NoCheckout with the first line that names an error where it fails, else with the last one."""
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

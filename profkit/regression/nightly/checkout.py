"""The last good commit, checked out beside the present one: a git worktree in a temporary folder, removed afterwards.

Where it cannot be had, that is reported, and the candidate regression waits for further nights.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from profkit.core import process
from profkit.core.errors import UsageError
from profkit.core.signals import defer_interrupts
from profkit.regression.nightly.config import ConfirmSpec

GIT_SECONDS = 300.0  # a large tree from a cold disk takes a minute; a wait for a password never ends
# Nothing may ask for a password, no hook of the repository's may run for a copy that lives for minutes.
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C", "GIT_LFS_SKIP_SMUDGE": "0"}
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


class NoCheckout(Exception):
    """Why there is no checkout of that commit tonight, and what would fix that."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.fix = reason, fix


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
    line = _git_line(folder, "rev-parse", "--show-toplevel")
    return Path(line).resolve() if line else None


def commit_of(folder: Path) -> str | None:
    """The commit that `folder` is at; None where it is in no repository."""
    return _git_line(folder, "rev-parse", "--verify", "HEAD")


@contextlib.contextmanager
def checked_out(
    folder: Path,
    commit: str,
    spec: ConfirmSpec,
    log: Path,
    tick: Callable[[float], None] | None = None,
) -> Iterator[Checkout]:
    """`commit` of the repository around `folder`, set up and ready to run; gone again behind the block.

    `log` is a folder for what git and the setup print. Raises NoCheckout with the reason.
    """
    root = repository_of(folder)
    if root is None:
        reason = (
            "git is not installed" if shutil.which("git") is None else f"{folder} is in no git repository"
        )
        raise NoCheckout(f"the last good commit cannot be checked out: {reason}")
    if not spec.checkout:
        _require_commit(root, commit)
    place = Path(tempfile.mkdtemp(prefix="profkit-checkout-")).resolve()
    target = place / root.name
    try:
        if spec.checkout:
            words = tuple(
                w.replace("{commit}", commit).replace("{folder}", str(target)) for w in spec.checkout
            )
            _run_step("the checkout command", words, root, log / "checkout.log", spec.setup_timeout, tick)
        else:
            _worktree(root, target, commit, log, tick)
        if spec.setup:
            _run_step("the setup command", spec.setup, target, log / "setup.log", spec.setup_timeout, tick)
        yield Checkout(root, target, commit)
    finally:
        with defer_interrupts():  # an impatient second Ctrl-C must not leave it lying about
            if not spec.checkout:
                _git_line(root, "worktree", "remove", "--force", "--force", str(target))
            shutil.rmtree(place, ignore_errors=True)
            if not spec.checkout:
                _git_line(root, "worktree", "prune")


def _require_commit(root: Path, commit: str) -> None:
    """Raise NoCheckout where this clone does not have the commit."""
    if _git_line(root, "cat-file", "-e", f"{commit}^{{commit}}") is not None:
        return
    if _git_line(root, "rev-parse", "--is-shallow-repository") == "true":
        raise NoCheckout(
            f"this clone is shallow and does not have the last good commit {commit[:12]}",
            "git fetch --unshallow  # in GitHub Actions: actions/checkout with fetch-depth: 0",
        )
    raise NoCheckout(
        f"this clone does not have the last good commit {commit[:12]}", f"git fetch origin {commit}"
    )


def _worktree(root: Path, target: Path, commit: str, log: Path, tick: Callable[[float], None] | None) -> None:
    _git_line(root, "worktree", "prune")  # what a night that was killed left registered
    words = ("git", "-C", str(root), *_NO_HOOKS, "worktree", "add", "--detach", str(target), commit)
    _run_step("git worktree", words, root, log / "checkout.log", GIT_SECONDS, tick)
    if (target / ".gitmodules").is_file():
        deeper = ("git", "-C", str(target), *_NO_HOOKS, "submodule", "update", "--init", "--recursive")
        _run_step("the checkout of submodules", deeper, target, log / "submodules.log", GIT_SECONDS, tick)


def _run_step(
    what: str,
    words: tuple[str, ...],
    cwd: Path,
    log: Path,
    timeout: float,
    tick: Callable[[float], None] | None,
) -> None:
    """Run one step; raise NoCheckout with its last line where it fails."""
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
    try:
        done = process.run(words, cwd=cwd, env=_QUIET, log=log, timeout=timeout, tick=tick)
    except UsageError as fault:
        raise NoCheckout(f"{what} cannot be run: {fault.message}", fault.fix) from None
    if not done.ok:
        lines = [line.strip() for line in done.output_tail.splitlines() if line.strip()]
        last = f": {lines[-1][:200]}" if lines else ""
        raise NoCheckout(f"{what} {done.ending()}{last}", f"cat {log}")


def _git_line(folder: Path, *words: str) -> str | None:
    """What a git command prints, without the newline at its end; None where it fails, or git is not installed."""
    try:
        done = process.run(["git", "-C", str(folder), *words], env=_QUIET, timeout=GIT_SECONDS)
    except UsageError:
        return None
    return done.output_tail.removesuffix("\n") if done.ok else None

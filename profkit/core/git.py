"""Call git in a repository that may be a stranger's, so that nothing its own configuration names is started."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from profkit.core.process import ask

# What a hook of git's around profkit sets would name another repository than that of the folder.
_STRAY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY",
)  # fmt: skip
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
    "GIT_LFS_SKIP_SMUDGE": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_ALWAYS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "log.showSignature=false", "protocol.ext.allow=never",
)  # fmt: skip
# What of a repository's own configuration starts a program, and what takes its place. Forms that git reads, too.
_HARMLESS = (
    (r"filter\..*\.required", "false"),
    (r"filter\..*\.(clean|smudge|process)", ""),
    (r"diff\..*\.(command|textconv)|diff\.external", ""),
    (r"core\.(gitproxy|alternaterefscommand|pager|editor|askpass)", ""),
    (r"core\.sshcommand", "ssh"),
    (r"credential\..*", ""),
    (r"submodule\..*\.update", "checkout"),
    (r"remote\..*\.uploadpack", "git-upload-pack"),
)
# What `git lfs install --local` writes: the program is the user's own.
_LFS = re.compile(r"git-lfs (clean -- %f|smudge( --skip)? -- %f|filter-process( --skip)?)|true")
_SECONDS = 10.0
# Files that git follows and that were changed; git would look into a submodule with the submodule's own configuration.
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")


def git_command(folder: Path, *words: str) -> list[str]:
    """Return the command that calls git in `folder`; run it in `git_environment(folder)`."""
    return ["git", "-C", str(folder), *(word for value in _ALWAYS for word in ("-c", value)), *words]


def ask_git(folder: Path, *words: str, seconds: float) -> tuple[bytes | None, str]:
    """Call git and return what it prints, None if it fails or takes longer than `seconds`.

    And its first line of stderr.
    """
    return _answer(git_command(folder, *words), lambda: git_environment(folder, seconds), seconds)


def _answer(
    command: list[str], env: Callable[[], dict[str, str]], seconds: float
) -> tuple[bytes | None, str]:
    try:
        done = ask(command, timeout=seconds, env=env())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return None, str(getattr(error, "strerror", None) or "it takes too long")
    complaint = done.stderr.decode("utf-8", "replace").partition("\n")[0].strip()
    return done.stdout if done.returncode == 0 else None, complaint


def git_environment(folder: Path, seconds: float = _SECONDS) -> dict[str, str]:
    """Return the environment for calls of git in `folder`: no password prompts, and no other repository.

    Filters, helpers and the like from the repository's own configuration are off; the user's own stay (git-lfs).
    `seconds` limits the call that lists them (git 2.31 or newer).
    """
    settings = _replacements(str(folder), seconds)
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    named = {"GIT_CONFIG_COUNT": str(first + len(settings))} if settings else {}
    for number, (name, value) in enumerate(settings, first):
        named |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return _cleared() | named


def _cleared() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _STRAY} | QUIET


@functools.lru_cache(maxsize=256)
def _replacements(folder: str, seconds: float) -> tuple[tuple[str, str], ...]:
    forms = "|".join(form for form, _ in _HARMLESS)
    command = ["git", "-C", folder, "config", "--null", "--show-scope", "--get-regexp", f"^({forms})$"]
    answer, _ = _answer(command, _cleared, seconds)
    parts = (answer or b"").decode("utf-8", "surrogateescape").split("\0")
    return tuple(_harmless(zip(parts[::2], parts[1::2], strict=False)))


def _harmless(settings: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for scope, setting in settings:
        name, _, value = setting.partition("\n")
        if scope not in ("local", "worktree") or (name.startswith("filter.lfs.") and _LFS.fullmatch(value)):
            continue
        yield name, next(harmless for form, harmless in _HARMLESS if re.fullmatch(form, name, re.DOTALL))

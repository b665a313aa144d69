"""How git is called: without questions, hooks or another repository than the folder's."""

from __future__ import annotations

import os
from pathlib import Path

# What a hook of git's around profkit sets would name another repository than that of the folder.
_STRAY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
)
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
    "GIT_LFS_SKIP_SMUDGE": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_ALWAYS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "log.showSignature=false",
    "protocol.ext.allow=never",
)
# Files that git follows and that were changed; git would look into a submodule with the submodule's own configuration.
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")


def git_command(folder: Path, *words: str) -> list[str]:
    """The words of a call of git in `folder`; it is to run in `git_environment()`."""
    return ["git", "-C", str(folder), *(word for value in _ALWAYS for word in ("-c", value)), *words]


def git_environment() -> dict[str, str]:
    """Variables for calls of git: nobody is asked for a password, no other repository than the folder's is meant."""
    return {name: value for name, value in os.environ.items() if name not in _STRAY} | QUIET

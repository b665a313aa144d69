"""What a tool has to be told of the workload's environment, where somebody else starts the workload for it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from profkit.core.types import Step

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_SESSION = re.compile(
    r"(?:_|SHLVL|PWD|OLDPWD|PS1|LINES|COLUMNS|BASH_FUNC_.*|XPC_.*|__CF.*|TERM_.*|SSH_.*)\Z"
)
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|_KEY|APIKEY|CRED|AUTH|COOKIE|SESSION|PRIVATE|WEBHOOK|DSN", re.IGNORECASE
)
_LONGEST = 32 * 1024  # characters of a value: the command line has room for a megabyte


def told_argv(step: Step, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command line of a step, with every variable that its tool has to be told (`step.tells`).

    Those are `env`, which is set for the step, and what the workload would inherit. Left out are names that look like
    secrets, since other users of a machine can read command lines, and what belongs to the terminal's own session.
    """
    if step.tells is None:
        return step.argv
    wanted = {name: value for name, value in os.environ.items() if _may_be_told(name, value)} | dict(env)
    pairs = [part for name in sorted(wanted) for part in (step.tells, f"{name}={wanted[name]}")]
    return (*step.argv[:2], *pairs, *step.argv[2:])  # after the program and its verb


def _may_be_told(name: str, value: str) -> bool:
    if _NAME.fullmatch(name) is None or _OF_SESSION.match(name) or _SECRET.search(name):
        return False
    return len(value) <= _LONGEST

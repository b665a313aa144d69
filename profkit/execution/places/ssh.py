"""`ssh:HOST`: OpenSSH's own client, with the user's own configuration, keys and jump hosts."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from profkit.core.errors import UsageError
from profkit.execution.places.place import ExecutionPlace

# A question for a password would wait for ever. Nobody's agent, display or ports are lent to the other machine. A line
# that is dead is noticed within a minute. A connection that others share is used where the user has one, and never
# made here: it would end with the first worker that is killed, and all others with it.
OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "20",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "ControlMaster": "no",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
}
PROGRAM = "PROFKIT_SSH"


def shell_on(words: Sequence[str]) -> ExecutionPlace:
    """A shell on `HOST`, `USER@HOST` or `//USER@HOST:PORT`. Raises UsageError for anything else."""
    host = f"ssh:{words[0]}" if words[0].startswith("//") else words[0]
    if len(words) != 1 or host.startswith("-"):
        raise UsageError(
            f"ssh:{' '.join(words)} is not one host",
            "--on ssh:HOST, with its options in ~/.ssh/config; or --on 'prefix:ssh OPTIONS HOST'",
        )
    if re.fullmatch(r"[^/:\[]+:\d+", host):
        raise UsageError(f"ssh:{host}: a host with a port is an address", f"--on ssh://{host}")
    program = os.environ.get(PROGRAM) or "ssh"
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    start = (program, "-T", *options, "--", host, "sh")
    return ExecutionPlace(
        "ssh", f"ssh:{words[0]}", start, try_it=f"{shlex.quote(program)} {shlex.quote(host)} true"
    )

"""Small questions to the system: what one of its programs answers, which Python this is, how root is asked."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass

# Where macOS has its own programs. A virtual environment's or a service's PATH may be without sbin.
_SYSTEM = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class ProgramAnswer:
    """What it printed on each stream, and the status it ended with."""

    output: bytes
    errors: bytes
    status: int

    @property
    def text(self) -> str:
        """Both streams as text, standard output first."""
        return f"{self.output.decode('utf-8', 'replace')}\n{self.errors.decode('utf-8', 'replace')}".strip()


def ask_program(*argv: str, seconds: float = 5.0) -> ProgramAnswer | None:
    """The answer of a program found on PATH or among the system's own; None where it is not there or too slow."""
    program = shutil.which(argv[0]) or shutil.which(argv[0], path=_SYSTEM)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *argv[1:]], capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ProgramAnswer(done.stdout, done.stderr, done.returncode)


def program_output(*argv: str, seconds: float = 5.0) -> str | None:
    """Its standard output as text without surrounding blanks; None where it is absent or did not end with 0."""
    answer = ask_program(*argv, seconds=seconds)
    if answer is None or answer.status != 0:
        return None
    return answer.output.decode("utf-8", "replace").strip()


def superuser_command(*commands: str, superuser: bool | None = None) -> str:
    """The commands as one line: as they are for root, with `sudo` where there is one, else said to be for root.

    None asks the process who it is. Minimal systems and containers have no sudo, and a line with it fails there.
    """
    if superuser is None:
        superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    if superuser:
        return " && ".join(commands)
    if shutil.which("sudo") is not None:
        return " && ".join(f"sudo {command}" for command in commands)
    return f"as root: {' && '.join(commands)}"


def python_name() -> str:
    """`3.11.7`, or with its name where it is not CPython: `PyPy 3.10.14`."""
    name, version = platform.python_implementation(), platform.python_version()
    return version if name == "CPython" else f"{name} {version}"

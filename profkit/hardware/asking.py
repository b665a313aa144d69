"""One question to a small program of the system, such as `sysctl` or `ioreg`: what it answers, within seconds."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

# Where macOS has its own programs. A virtual environment's or a service's PATH may be without sbin.
_SYSTEM = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Answer:
    """What it printed on each stream, and the status it ended with."""

    output: bytes
    errors: bytes
    status: int

    @property
    def text(self) -> str:
        """Both streams as text, standard output first."""
        return f"{self.output.decode('utf-8', 'replace')}\n{self.errors.decode('utf-8', 'replace')}".strip()


def ask(*argv: str, seconds: float = 5.0) -> Answer | None:
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
    return Answer(done.stdout, done.stderr, done.returncode)


def told(*argv: str, seconds: float = 5.0) -> str | None:
    """Its standard output as text without surrounding blanks; None where it is absent or did not end with 0."""
    answer = ask(*argv, seconds=seconds)
    if answer is None or answer.status != 0:
        return None
    return answer.output.decode("utf-8", "replace").strip()

"""Small questions to the system: what one of its programs prints, what a small file of /proc or /sys holds.

Files are read below a root, where each may be absent, unreadable or malformed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from profkit.core.process import ask

# Where macOS has its own programs. A virtual environment's or a service's PATH may be without sbin.
_SYSTEM = "/usr/bin:/bin:/usr/sbin:/sbin"


def ask_program(*argv: str, seconds: float = 5.0) -> bytes | None:
    """Return what a program on PATH or of the system prints; None where it is absent, too slow or fails."""
    program = shutil.which(argv[0]) or shutil.which(argv[0], path=_SYSTEM)
    if program is None:
        return None
    try:
        done = ask([program, *argv[1:]], timeout=seconds)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def superuser_command(command: str) -> str:
    """Return the command as it is for root, else with `sudo` before it."""
    return command if os.geteuid() == 0 else f"sudo {command}"


# ------------------------------------------------------------ files

READ_LIMIT = 4 * 1024 * 1024  # /proc/cpuinfo of a 512-thread server is about 1 MB
_CHUNK = 64 * 1024  # /proc/sys answers ENOMEM to a read of 4 MiB (fs/proc/proc_sysctl.c)
CORE_LIMIT = 8192  # Linux's own upper bound for CONFIG_NR_CPUS; a longer list is nonsense


def read_text(root: Path, path: str) -> str | None:
    """Return the stripped content of a file below `root`, or None where it cannot be read."""
    try:
        with (root / path).open("rb", buffering=0) as file:
            chunks: list[bytes] = []
            while sum(map(len, chunks)) < READ_LIMIT and (chunk := file.read(_CHUNK)):
                chunks.append(chunk)
        return b"".join(chunks).decode("utf-8", "replace").strip(" \t\r\n\0")
    except (OSError, ValueError):
        return None


def read_number(root: Path, path: str) -> int | None:
    """Return the whole number that a file holds, or None where it holds none."""
    content = read_text(root, path)
    try:
        return int(content) if content else None
    except ValueError:
        return None


def parse_fields(content: str | None, separator: str = ":") -> dict[str, str]:
    """Parse `name: value` lines into a mapping; lines of another form are skipped."""
    fields: dict[str, str] = {}
    for line in (content or "").splitlines():
        name, mark, value = line.partition(separator)
        if mark:
            fields[name.strip()] = value.strip()
    return fields


def parse_core_list(content: str | None) -> tuple[int, ...]:
    """Parse the kernel's list format (`0-3,8`) into core numbers; empty where it is not such a list."""
    cores: list[int] = []
    for part in (content or "").split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            continue
        low, high = int(first), int(last or first)
        if high >= CORE_LIMIT:
            return ()
        cores.extend(range(low, high + 1))
    return tuple(sorted(set(cores)))

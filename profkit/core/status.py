"""How the workload itself ended, told through a file: profilers hide it (perf returns 0 when its child is killed)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profkit.core.files.regular import read_start

# `"$@"` and not `exec`: the shell has to live on to see how the workload ended. The file is written whole
# before it gets its name, so that a reader never sees half of it. The shell's own exit repeats the status for perf.
_SCRIPT = (
    'out=$1; shift; trap : INT TERM; "$@"; status=$?; '
    'printf "%s\\n" "$status" > "$out.part" && mv -f "$out.part" "$out"; exit "$status"'
)


def status_wrapper(argv: Sequence[str], status_file: Path | str) -> tuple[str, ...]:
    """`argv` run by a shell that writes how it ended to `status_file`.

    SIGINT and SIGTERM reach the workload and not only the shell, since they are sent to the whole group.
    """
    return ("sh", "-c", _SCRIPT, "sh", str(status_file), *argv)


def without_wrapper(argv: Sequence[str]) -> tuple[str, ...]:
    """The workload in a command line that a profiler recorded, without the shell of `status_wrapper` around it."""
    words = tuple(argv)
    return words[5:] if words[:4] == ("sh", "-c", _SCRIPT, "sh") else words


def read_status(path: Path | str) -> int | None:
    """The workload's status as subprocess gives it: negative is the signal that ended it.

    None where the file is missing or holds no status: the wrapper itself was killed.
    A shell says 128 + n for a child that died by signal n; its own exit with such a number looks the same.
    """
    try:
        text = read_start(path, 32).decode("ascii").strip()
        status = int(text)
    except (OSError, ValueError):
        return None
    if not 0 <= status <= 255:
        return None
    return 128 - status if 128 < status <= 128 + 64 else status

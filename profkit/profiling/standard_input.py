"""What a workload reads from its standard input: one file, which each of its processes gets from the beginning."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator, Sequence

from profkit.core.errors import MachineError, UsageError
from profkit.runtime.passes.command import reads_program_from_input

CALLER = "-"  # what profkit itself was given
MOST_BYTES = 1 << 30  # of the caller's input, which is kept in a file while the run goes on
_PIECE = 1 << 20


def check_input(command: Sequence[str], stdin: str | None) -> None:
    """Raise UsageError for a file that no pass can read, and for a program that would be read from an empty input."""
    if stdin is None and reads_program_from_input(command):
        raise UsageError(
            "the workload reads its program from standard input, which is empty: each pass would need it once more",
            "--stdin FILE, or --stdin - for what profkit is given",
        )
    if stdin is None or stdin == CALLER:
        return
    try:
        mode = os.stat(stdin).st_mode
        if stat.S_ISREG(mode):
            with open(stdin, "rb"):
                return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"the workload's standard input {stdin!r} cannot be read: {reason}") from error
    raise UsageError(
        f"the workload's standard input {stdin} is no file, so it cannot be read once more for each pass",
        f"--stdin - < {shlex.quote(stdin)}",
    )


@contextlib.contextmanager
def input_file(stdin: str | None) -> Iterator[str | None]:
    """The file behind `--stdin`, None for an empty input. What profkit was given is kept in one until the block ends.

    Raises UsageError where profkit was given none, or more than 1 GiB; MachineError where it cannot be kept.
    """
    if stdin is None or stdin != CALLER:
        yield os.path.abspath(stdin) if stdin is not None else None
        return
    if _is_terminal():
        raise UsageError("--stdin - and standard input is a terminal", "--stdin FILE")
    with contextlib.ExitStack() as last:
        try:
            file = last.enter_context(tempfile.NamedTemporaryFile(prefix="profkit-stdin-"))
            size = 0
            while piece := _read_piece():
                size += file.write(piece)
                if size > MOST_BYTES:
                    raise UsageError(
                        f"more than {MOST_BYTES >> 30} GiB came by standard input", "--stdin FILE"
                    )
            file.flush()
        except OSError as error:
            raise MachineError(f"standard input cannot be kept: {error.strerror}", "--stdin FILE") from error
        yield file.name


def _is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:  # pragma: no cover - isatty is False of a closed one
        return False


def _read_piece() -> bytes:
    try:
        return os.read(0, _PIECE)
    except OSError as error:
        raise UsageError(
            f"--stdin - and there is no standard input: {error.strerror}", "--stdin FILE"
        ) from error


def passed_over() -> bool:
    """Whether profkit was given a file as standard input that holds more, which no workload gets unasked."""
    with contextlib.suppress(OSError):
        there = os.fstat(0)
        return stat.S_ISREG(there.st_mode) and os.lseek(0, 0, os.SEEK_CUR) < there.st_size
    return False

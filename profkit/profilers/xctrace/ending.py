"""How a recording ended, by its table of contents: xctrace ends with 0 whatever became of the program in it."""

from __future__ import annotations

import signal

from profkit.profilers.xctrace.toc import Run

TIME_LIMIT = "time limit reached"


def was_cut(run: Run) -> bool:
    """Whether the time limit ended the recording, and with it the program."""
    return run.summary.get("end-reason", "").strip().lower() == TIME_LIMIT


def exit_status(run: Run) -> int | None:
    """The program's exit status as a shell says it (128 + n for a signal); None where it is not told.

    Told as `return-exit-status` beside `termination-reason` ("exit(4)", "SIGKILL"), for a program that xctrace launched
    and that ended before the recording did.
    """
    reason = run.process.get("termination-reason", "").strip()
    told = run.process.get("return-exit-status", "").strip()
    if reason in signal.Signals.__members__:
        return 128 + signal.Signals[reason]
    if reason.startswith("exit(") and reason.endswith(")"):
        told = reason[5:-1].strip()
    if not (told.isascii() and told.isdigit() and len(told) < 4) or int(told) > 255:
        return None
    return int(told)

"""How a probe asks a tool: a short call, whose answer is all that it printed."""

from __future__ import annotations

import contextlib
import subprocess


def answer(argv: tuple[str, ...], seconds: float) -> tuple[int, str]:
    """The exit code and what was printed, standard output first.

    127 and a sentence where it could not be run, or did not end within `seconds`.
    """
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=seconds, stdin=subprocess.DEVNULL
        )
        return done.returncode, done.stdout + done.stderr
    return 127, f"{argv[0]} could not be run, or did not end within {seconds:.0f} s"


def last_line(text: str) -> str:
    """The last thing that was printed, cut to a sentence's length."""
    lines = text.split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "nothing at all")

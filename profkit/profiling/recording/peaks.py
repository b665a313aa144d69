"""Measures what this machine can do at best, each way in a fresh process: threads are chosen before numpy loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profkit.core import process
from profkit.core.errors import ProfkitError
from profkit.core.types import Machine, Peaks
from profkit.hardware.peaks import combine_peaks, peaks_argv, peaks_environment, read_peaks

SECONDS = 1.0  # for each kind of measurement; the best of many passes over the arrays
DEADLINE = 60.0


def record_peaks(
    machine: Machine, log: Path, tick: Callable[[float], None] | None = None
) -> tuple[Peaks | None, str | None]:
    """The machine's measured peaks on one core and on all; or None and the reason."""
    found: list[Peaks] = []
    for threads in sorted({1, machine.cores}):
        argv = peaks_argv(threads, SECONDS)
        try:
            outcome = process.run(argv, env=peaks_environment(threads), log=log, timeout=DEADLINE, tick=tick)
            if outcome.timed_out:
                return None, f"the peaks could not be measured: the measurement {outcome.ending()}"
            found.append(
                read_peaks(outcome.output_tail)
            )  # says itself what is missing where it could not measure
        except ProfkitError as error:
            return None, f"the peaks could not be measured: {error.message}"
    return combine_peaks(found[0], found[-1]), None

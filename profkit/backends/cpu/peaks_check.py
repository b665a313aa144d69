"""Whether the peaks can be measured that bandwidth and roofline are held against: a short try on one core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Peaks
from profkit.hardware.machine import read_machine
from profkit.hardware.peaks import peaks_argv, peaks_environment, read_peaks
from profkit.profilers.programs import try_command

_TABLE = Path(__file__).with_name("checks.yaml")


def peaks_checks() -> Iterator[Check]:
    """Measure bandwidth and arithmetic of one core for a third of a second in a fresh process."""
    trial = try_command(peaks_argv(1, 0.3), peaks_environment(1), seconds=30.0)
    try:
        peaks = read_peaks(trial.output)
    except ProfkitError as error:
        reason = error.message if trial.ok or trial.returncode == 3 else f"{trial.ending}: {trial.last_line}"
        return judge_rows(_TABLE, "no peaks", {"reason": reason, "fix": error.fix})
    return judge_peaks(peaks, vector_multiply_add="fma" in read_machine().features)


def judge_peaks(peaks: Peaks, vector_multiply_add: bool) -> Iterator[Check]:
    """Tell the rates of one core; `vector_multiply_add` says that the processor has FMA."""
    bandwidth, flops = peaks.bandwidth_one, peaks.flops_f32_one
    rates = {"giga_bytes": (bandwidth or 0) / 1e9, "giga_flops": (flops or 0) / 1e9}
    return judge_rows(
        _TABLE, "peaks", peaks, rates, {"fma": vector_multiply_add, "both": bandwidth and flops}
    )

"""Whether the peaks can be measured that bandwidth and roofline are held against: a short try on one core."""

from __future__ import annotations

from profkit.core.errors import ProfkitError
from profkit.core.types import Check, Peaks
from profkit.hardware.machine import read_machine
from profkit.hardware.peaks import peaks_argv, peaks_environment, read_peaks
from profkit.profilers.programs import try_command

# A core with fused multiply-add on 8 lanes does 16 float32 operations a cycle per unit: 32 GFLOP/s at 2 GHz.
# A library below a quarter of that is built for no processor in particular (reference BLAS: 1 to 3).
_SLOW = 8e9


def peaks_checks() -> tuple[Check, ...]:
    """Measure bandwidth and arithmetic of one core for a third of a second in a fresh process."""
    trial = try_command(peaks_argv(1, 0.3), peaks_environment(1), seconds=30.0)
    try:
        peaks = read_peaks(trial.output)
    except ProfkitError as error:
        reason = error.message if trial.ok or trial.returncode == 3 else f"{trial.ending}: {trial.last_line}"
        return (
            Check("measured peaks", "missing", f"{reason}; bandwidth has no peak to stand beside", error.fix),
        )
    return (judge_peaks(peaks, vector_multiply_add="fma" in read_machine().features),)


def judge_peaks(peaks: Peaks, vector_multiply_add: bool) -> Check:
    """Tell the rates of one core; `vector_multiply_add` says that the processor has FMA."""
    if peaks.bandwidth_one is None or peaks.flops_f32_one is None:
        return Check("measured peaks", "limited", peaks.method, "free memory, or raise the container's limit")
    rates = (
        f"one core in a short try: {peaks.bandwidth_one / 1e9:.1f} GB/s, "
        f"{peaks.flops_f32_one / 1e9:.1f} GFLOP/s in float32"
    )
    if vector_multiply_add and peaks.flops_f32_one < _SLOW:
        detail = f"{rates}: numpy computes with a library that does not use this processor ({peaks.method})"
        return Check("measured peaks", "limited", detail, "pip install --force-reinstall numpy")
    return Check("measured peaks", "ok", rates)

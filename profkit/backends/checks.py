"""What torch says of itself in some Python: its version, what it was built for, and whether a device serves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from profkit.core.errors import ProfkitError
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Peaks
from profkit.hardware.machine import read_machine
from profkit.hardware.peaks import peaks_argv, peaks_environment, read_peaks
from profkit.profilers.programs import try_command

# In a process of its own: importing torch takes seconds and much memory, and initialising CUDA makes a context.
_ASK = """
import json, warnings
warnings.simplefilter("ignore")
try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    print(json.dumps({"version": None}))
else:
    said = None
    try:
        torch.cuda.init()
    except Exception as error:
        said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
    mps = getattr(torch.backends, "mps", None)
    print(json.dumps({
        "version": torch.__version__,
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "said": said,
        "built": bool(mps and mps.is_built()),
        "available": bool(mps and mps.is_available()),
    }))
"""
_SECONDS = 120.0  # a first import from a slow disk


def ask_torch(python: str) -> dict[str, Any]:
    """Import torch by this Python and ask it; `starts` is whether it answered at all."""
    trial = try_command([python, "-c", _ASK], seconds=_SECONDS)
    return read_torch(trial.output if trial.ok else "", trial.last_line, python)


def read_torch(answer: str, last_line: str, python: str) -> dict[str, Any]:
    """The facts in what was printed; `last_line` is where a torch that does not start says why."""
    line = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    facts = {"python": python, "last_line": last_line[:200], "starts": line is not None, "version": None}
    return facts if line is None else facts | json.loads(line)


# ------------------------------------------------------------ peaks

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

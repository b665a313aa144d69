"""Why it changed: tonight's run beside the last good one, as far as the counters of both tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.run_folder import read_run
from profkit.core.types import WorkloadOutcome
from profkit.regression.nightly.judge import Past


def with_causes(workload: WorkloadOutcome, past: Past) -> WorkloadOutcome:
    """The workload with its comparison, where it changed and both runs can be read; else as it is, with why."""
    moved = [m for m in workload.metrics if m.gates and m.outcome in ("regressed", "ambiguous", "improved")]
    if not moved or past.entry.path is None:
        return workload
    good = past.good(moved[0])
    if good is None or good.path is None:
        return workload
    from profkit.regression.compare import compare  # here: a quiet night compares nothing

    try:
        baseline, candidate = read_run(Path(good.path)), read_run(Path(past.entry.path))
        comparison = compare(baseline, candidate, paths=(good.path, past.entry.path))
    except ProfkitError as fault:
        note = f"no causes: the last good night's run cannot be held beside this one ({fault.message})"
        return replace(workload, notes=(*workload.notes, note))
    return replace(workload, comparison=comparison)

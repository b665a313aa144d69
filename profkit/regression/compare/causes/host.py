"""The device is idle for more of the time, and whether it waits for its host then."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became, kernels
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where GPU utilization fell. That it waits for the host is only said where nothing was launched while it idled."""
    fall = view.fell("gpu.utilization")
    if fall is None:
        return
    evidence = [became("GPU busy", fall.baseline.value, fall.candidate.value, "%")]
    for side, trace in (("baseline", view.baseline.trace), ("candidate", view.candidate.trace)):
        if trace is not None and trace.starved is not None:
            word = "submitted" if trace.tool == "xctrace" else "launched"
            evidence.append(f"of its idle time, nothing was {word}: {100 * trace.starved:.0f} % ({side})")
    after = view.candidate.trace.starved if view.candidate.trace is not None else None
    waits = after is not None and after > 0.5
    sentence = (
        f"The GPU waits more for the host between its {kernels(view)}."
        if waits
        else "The GPU is idle for more of the time."
    )
    yield Cause("host", sentence, evidence=tuple(evidence))

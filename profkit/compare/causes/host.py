"""The device waits for the host: it is busy for less of the time though its kernels take what they took."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.compare.causes.words import became
from profkit.compare.view import View
from profkit.model import Cause


def find(view: View) -> Iterator[Cause]:
    """Where GPU utilization fell."""
    fall = view.fell("gpu.utilization")
    if fall is None:
        return
    evidence = [became("GPU busy", fall.baseline.value, fall.candidate.value, "%")]
    for side, trace in (("baseline", view.baseline.trace), ("candidate", view.candidate.trace)):
        if trace is not None and trace.starved is not None:
            evidence.append(f"of its idle time, nothing was launched: {100 * trace.starved:.0f} % ({side})")
    yield Cause("host", "The GPU waits more for the host between its kernels.", evidence=tuple(evidence))

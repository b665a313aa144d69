"""What a run on an Apple GPU says of the fields of comparability."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.core.types import MetalState, RunDocument

_SYSTEM = re.compile(r"macOS (\d+(?:\.\d+)*)")
_NOMINAL = ("nominal", "none")  # the thermal states in which nothing is held down


def holds_down(thermal: str) -> bool:
    """Whether a thermal state of this name slows the device down."""
    return thermal.strip().lower() not in _NOMINAL


def metal_values(document: RunDocument) -> dict[str, str | None]:
    """The fields that only Metal and Instruments tell; none of another run."""
    metal, facts = document.metal, document.facts
    if metal is None and document.backend != "mps" and "xctrace" not in document.tools:
        return {}
    system = _SYSTEM.match(facts.get("system", ""))
    told: dict[str, str | None] = {
        "macos.major": system[1].partition(".")[0] if system else None,
        "macos.version": system[1] if system else None,
        "mode.template": facts.get("template"),
    }
    if metal is None:
        return told
    low = {True: "on", False: "off", None: None}[metal.low_power]
    return {
        **told,
        "gpu.low_power": low,
        "mode.induced": metal.induced or facts.get("induced performance state") or "Default",
        "state.performance": _shares(metal.performance, worked=True),
        "state.thermal": _shares(metal.thermal, worked=False),
    }


def _shares(states: Sequence[MetalState], *, worked: bool) -> str | None:
    """`Minimum 97 %, Maximum 3 %`, of the time in which the process worked on the GPU where that is told."""
    times = {one.name: one.seconds for one in states}
    if worked and any(one.busy is not None for one in states):
        times = {one.name: one.busy or 0.0 for one in states}
    total = sum(times.values())
    if total <= 0:
        return None
    parts = sorted(((name, seconds / total) for name, seconds in times.items()), key=lambda part: -part[1])
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in parts if share >= 0.005)

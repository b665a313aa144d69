"""Which instrument a region switches in this process, and what it is that can be switched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from profkit.core.types import Directive
from profkit.runtime.region import HOST


class Switch(Protocol):
    """What turns an instrument on and off; may also have `prepare()`, `iteration(i)` and `forget()`."""

    def enter(self, name: str) -> None:
        """Measure from here."""

    def exit(self, name: str) -> None:
        """Measure no further."""


def switches(directive: Directive | None, note: Callable[[str], None]) -> list[Switch]:
    """What the host of this pass and its directive ask for; what cannot be used is a note, and left out."""
    found: list[Switch] = []
    host = sys.modules.get(HOST)
    if host is not None:
        found.append(cast("Switch", host.switch))
    asked = directive.switch if directive else None
    if directive is None or asked is None:
        return found
    try:
        if asked.kind == "perf-control" and asked.control is not None:
            from profkit.runtime.region.perf_control import PerfControl

            found.append(PerfControl(asked.control, asked.ack, f"{directive.record}.switch"))
        elif asked.kind == "valgrind":
            from profkit.runtime.region.valgrind import ValgrindSwitch

            found.append(ValgrindSwitch())
        elif asked.kind == "cuda":
            from profkit.runtime.region.cuda import CudaSwitch, DeviceWait

            # no instrument is there to be switched while time is measured
            found.append(DeviceWait() if directive.pass_name == "timing" else CudaSwitch())
        elif asked.kind == "signpost":
            from profkit.runtime.region.mps import MpsWait
            from profkit.runtime.region.signpost import Signpost

            found.append(MpsWait() if directive.pass_name == "timing" else Signpost())
        elif asked.kind == "torch-profiler" and asked.output is not None:
            from profkit.runtime.region.torch_profiler import TorchProfiler

            found.append(TorchProfiler(asked.output))
    except Exception as error:
        note(f"the {asked.kind} switch cannot be used: {error}")
    return found


def spans_of(switched: Iterable[Switch]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Spans of the outermost entries where a switch notes them, and how many more entries there were."""
    for switch in switched:
        spans = getattr(switch, "spans", None)
        if spans is not None:
            return spans, getattr(switch, "left_out", 0)
    return (), 0

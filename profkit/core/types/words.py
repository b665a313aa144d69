"""The words of which there is a fixed list."""

from __future__ import annotations

from typing import Literal, TypeAlias

BackendName: TypeAlias = str  # one of `profkit.backends.backend_names()`
Quality = Literal["measured", "simulated", "estimated", "multiplexed", "unavailable"]
# The surer comes first.
QUALITY_ORDER: dict[Quality, int] = {
    "measured": 0,
    "multiplexed": 1,
    "simulated": 2,
    "estimated": 3,
    "unavailable": 4,
}
ScopeKind = Literal["run", "region", "kernel", "function"]
CounterState = Literal["measured", "multiplexed", "not-supported", "not-counted", "hard-zero"]
VerdictWord = Literal["pass", "fail", "not-applicable", "unknown"]
PassName = Literal["timing", "cprofile", "tracemalloc", "trace", "counters", "explain"]
PassState = Literal["finished", "skipped", "failed", "interrupted"]
RunState = Literal["running", "complete", "interrupted", "failed"]
CheckState = Literal["ok", "limited", "missing", "refused"]
Depth = Literal["gate", "standard", "full"]
# What limits a kernel. `issue`: the schedulers are busy; `latency`: nothing is busy, warps wait for each other's or
# their own results; `launch`: too small to fill the device, or shorter than the time it takes to launch it;
# `compute`: some unit of the multiprocessors, where the report does not say which; `xu`: special functions.
Bound = Literal[
    "dram",
    "l2",
    "l1",
    "shared",
    "tensor",
    "fp32",
    "fp64",
    "fp16",
    "integer",
    "xu",
    "compute",
    "issue",
    "latency",
    "launch",
    "unknown",
]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

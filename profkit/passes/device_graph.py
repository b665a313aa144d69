"""What a call would cost in a CUDA graph: the same work without its launches, as torch records it.

Asked only of calls that the host launches more slowly than the device works, and that are known not to wait for the
device: there a graph is the remedy, and recording one is safe. Memory comes from a pool of the graph's own. A recording
that fails, or that computes something else than the call, is no answer and leaves nothing behind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from profkit.passes.device_clock import DeviceClock
from profkit.statistics import median

REPLAYS = 15


def in_a_graph(fn: Callable[[], object], clock: DeviceClock, calls: int) -> float | None:
    """Seconds of one of `calls` calls in a CUDA graph; None where there is no torch, or no such graph."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    try:
        if not torch.cuda.is_initialized():
            return None
        wanted = _steady_result(torch, fn)
        graph, result = _recorded(torch, fn, calls)
        graph.replay()
        clock.wait()
        if wanted is not None and not torch.equal(result, wanted):
            return None
        return median([_replayed(graph, clock) / calls for _ in range(REPLAYS)])
    except Exception:  # whatever cannot be recorded raises something else in every version
        return None
    finally:
        with suppress(Exception):
            clock.wait()


def _steady_result(torch: Any, fn: Callable[[], object]) -> Any:
    """What the call gives, where that is a tensor and the same each time."""
    first = fn()
    if not isinstance(first, torch.Tensor):
        return None
    first = first.clone()
    second: Any = fn()
    return first if isinstance(second, torch.Tensor) and torch.equal(first, second) else None


def _recorded(torch: Any, fn: Callable[[], object], calls: int) -> tuple[Any, Any]:
    """A graph of that many calls, and what the last of them gave."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    result: object = None
    with torch.cuda.stream(stream):
        # other threads may allocate meanwhile; torch.cuda.graph() itself would empty the workload's memory pool
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for _ in range(calls):
                result = fn()
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph, result


def _replayed(graph: Any, clock: DeviceClock) -> float:
    first, last = clock.event(0), clock.event(1)
    clock.wait()
    clock.record(first)
    graph.replay()
    clock.record(last)
    clock.wait()
    return clock.between(first, last)

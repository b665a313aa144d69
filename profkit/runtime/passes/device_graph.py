"""What a call would cost in a CUDA graph: the same work without its launches, as torch records it.

Only where the caller asks for it. A recording that fails (the call waits for the device, or launches on the default
stream) is said, but torch is not quite what it was afterwards: its allocator still believes that a recording is under
way. Its random numbers are set right again where it lets us (without that they fail). Memory of a recording comes from
a pool of its own, and a graph that computes something else than the call is no answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from profkit.core.statistics import median
from profkit.runtime.passes.device_clock import DeviceClock

REPLAYS = 15


class NoGraph(Exception):
    """There is no time in a graph; the sentence says why."""


def in_a_graph(fn: Callable[[], object], clock: DeviceClock, calls: int) -> float:
    """Seconds of one of `calls` calls in a CUDA graph; raises NoGraph."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise NoGraph("a CUDA graph is recorded by torch, which is not loaded")
    try:
        wanted = _steady_result(torch, fn)
        graph, result = _recorded(torch, fn, calls)
        graph.replay()
        clock.wait()
        same = wanted is None or bool(torch.equal(result, wanted))
        seconds = median([_replayed(graph, clock) / calls for _ in range(REPLAYS)])
    except Exception as error:  # whatever cannot be recorded raises something else in every version
        with suppress(Exception):
            clock.wait()
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NoGraph(f"no CUDA graph could be recorded: {said}") from error
    if not same:
        raise NoGraph("recorded as a CUDA graph it computes something else")
    return seconds


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
    randomness = _randomness(torch)
    try:
        with torch.cuda.stream(stream):
            # other threads may allocate meanwhile; torch.cuda.graph() itself would empty the workload's memory pool
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(calls):
                    result = fn()
            finally:
                graph.capture_end()
    except Exception:
        for generator, state in randomness:
            generator.graphsafe_set_state(state)
        raise
    torch.cuda.current_stream().wait_stream(stream)
    return graph, result


def _randomness(torch: Any) -> list[tuple[Any, Any]]:
    """The devices' random number generators with a copy of their state, from torch 2.4 on."""
    generators = getattr(torch.cuda, "default_generators", ())
    return [
        (generator, generator.clone_state()) for generator in generators if hasattr(generator, "clone_state")
    ]


def _replayed(graph: Any, clock: DeviceClock) -> float:
    first, last = clock.event(0), clock.event(1)
    clock.wait()
    clock.record(first)
    graph.replay()
    clock.record(last)
    clock.wait()
    return clock.between(first, last)

"""What a call takes of the memory, and what is free. For workers: torch is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate

import torch

from profkit.kernels.operations.operation import Tensor

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # at 5 its words would be the last of a worker that dies


def free_memory(device: torch.device) -> int | None:
    """Bytes that can still be had; None where nobody tells."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + cached)
    from profkit.hardware.container import available_memory

    return available_memory()


def call_memory(
    call: Callable[[], object],
    inputs: Sequence[Tensor],
    device: torch.device,
    wait: Callable[[], None],
) -> int | None:
    """Bytes of the inputs, and the most that one call has allocated at a time beside them; None where nobody tells.

    As torch's allocator counts them: its statistics on a CUDA device, the events of its profiler on the CPU. What code
    allocates by other means is not in it.
    """
    before = sum(int(t.untyped_storage().nbytes()) for t in inputs)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        held = torch.cuda.memory_allocated(device)
        call()
        wait()
        return before + int(torch.cuda.max_memory_allocated(device)) - int(held)
    most = _most_at_once(call)
    return None if most is None else before + most


def _most_at_once(call: Callable[[], object]) -> int | None:
    with suppress(RuntimeError, AttributeError):  # another profiler is on, or none was built in
        with torch.autograd.profiler.profile(profile_memory=True) as profile:
            call()
        events = [event for event in profile.kineto_results.events() if event.name() == "[memory]"]
        steps = [int(event.nbytes()) for event in sorted(events, key=lambda event: event.start_ns())]
        return max((0, *accumulate(steps)))
    return None

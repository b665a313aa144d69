"""Which constants a kernel runs with: the fastest of a few, timed once for each class of sizes, dtype and device.

With TRITON_CACHE_AUTOTUNING=1 Triton keeps the choice on disk beside the compiled kernels; without, each process tunes.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import triton

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# For each configuration. Triton's own 25 and 100 ms would take longer than the cases of a sweep that they serve.
WARMUP_MS, TIMED_MS = 5, 20


def tuned(configs: Sequence[tuple[Mapping[str, int], int]], key: Sequence[str]) -> Any:
    """A decorator: of `configs` (constants, warps) the fastest for each `key`. In the interpreter it is the first."""
    given = [triton.Config(dict(constants), num_warps=warps) for constants, warps in configs]
    if INTERPRETED:
        return triton.autotune(configs=given[:1], key=list(key))
    return triton.autotune(configs=given, key=list(key), do_bench=_bench)


def size_class(elements: int) -> int:
    """Sizes that are tuned together: within a factor of eight."""
    return elements.bit_length() // 3


def _bench(call: Callable[[], object], quantiles: Sequence[float]) -> Any:
    return triton.testing.do_bench(call, warmup=WARMUP_MS, rep=TIMED_MS, quantiles=quantiles)

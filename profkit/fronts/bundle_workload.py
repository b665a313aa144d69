"""The small program of a bundle: `python bundle_workload.py DEVICE`; plain Python on the CPU, else torch."""

from __future__ import annotations

import sys
from collections.abc import Callable

import profkit


def _work(device: str) -> Callable[[], object]:
    if device == "cpu":
        values = list(range(20_000))
        return lambda: sorted(values, key=lambda value: -value)
    import torch

    factor = torch.rand(1024, 1024, device=device)
    return lambda: torch.relu(factor @ factor)


if __name__ == "__main__":
    profkit.benchmark(_work(sys.argv[1]), name="bundle", budget=2.0)

"""Runs the Triton kernels: cases as JSON lines in, one sentence per case out.

A process of its own, because TRITON_INTERPRET=1 must be set before anything imports Triton.
"""

from __future__ import annotations

import json
import sys

from workload_cases import KINDS

from benchmark.check import compare
from benchmark.engines import TorchEngine
from benchmark.refusal import Refusal


def verdict(name: str, sizes: dict[str, int], dtype: str) -> str:
    """What the check says of this kernel's result."""
    import torch

    workload, engine = KINDS[name](**sizes), TorchEngine(torch, "cpu", dtype)
    inputs = workload.inputs(engine.draw)
    try:
        result = workload.triton(*inputs)()
        if str(result.dtype) != f"torch.{dtype}":
            return f"the result is {result.dtype}"
        return compare(workload, dtype, tuple(map(engine.exact, inputs)), engine.exact(result))
    except Refusal as refusal:
        return f"refused: {refusal}"
    except Exception as error:  # one broken kernel is not to hide the others
        return f"raised: {error!r}".replace("\n", " ")


if __name__ == "__main__":
    for line in sys.stdin:
        print(verdict(*json.loads(line)), flush=True)

"""How much of a copy's bandwidth each implementation of each operation reaches, by triton.testing.do_bench (cold L2).

    python tests/performance/kernel_shares.py                       # on a GPU, 128 x 2048 x 512
    python tests/performance/kernel_shares.py --shape 256,2048,512

Bytes are those that the operation must move; the copy is one of 1 GiB, measured in the same process. Each
implementation is checked against float64 before. do_bench writes 256 MB before each call: what is left of them in the
L2 has to be written back during the call, some 12 us on an H200, unless the call itself leaves as much there in its
place.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from profkit.core.types import GridPoint
from profkit.kernels.operations.check import WrongResult, check_result, reference_result
from profkit.kernels.operations.registry import OPERATIONS, Unavailable, build_call
from profkit.kernels.sweep.bench import make_problem

IMPLEMENTATIONS = ("PyTorch", "Triton", "CUDA")
DTYPES = ("float32", "float16", "bfloat16")
GIB = 1 << 30


def main() -> None:
    """Print a line for each operation and direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", default="128,2048,512", help="batch, sequence, dimension")
    batch, sequence, dimension = (int(part) for part in parser.parse_args().shape.split(","))
    os.environ.setdefault("TRITON_CACHE_AUTOTUNING", "1")
    device = torch.device("cuda", 0)
    source = torch.zeros(GIB // 4, device=device)
    target = torch.empty_like(source)
    copy = 2 * GIB / _seconds(partial(target.copy_, source))
    del source, target
    print(f"{torch.cuda.get_device_name()}, copy {copy / 1e12:.2f} TB/s; {' / '.join(IMPLEMENTATIONS)}")
    for operation in OPERATIONS:
        for direction in ("forward", "backward"):
            cells = []
            for dtype in DTYPES:
                point: Any = GridPoint(operation, batch, sequence, dimension, dtype, direction)
                problem = make_problem(point, device)
                expected = reference_result(problem)
                shares = [_share(name, problem, expected, copy) for name in IMPLEMENTATIONS]
                cells.append(f"{dtype} {' / '.join(shares)}")
            print(f"{operation + ' ' + direction:22}", "   ".join(cells), flush=True)


def _share(name: str, problem: Any, expected: Any, copy: float) -> str:
    try:
        call = build_call(name, problem)
        check_result(problem, call(), expected)
    except Unavailable as missing:
        return f"none ({missing.reason})"
    except WrongResult:
        return "wrong"
    return f"{problem.operation.bytes(problem.point) / _seconds(call) / copy:.0%}"


def _seconds(call: Any) -> float:
    from triton.testing import do_bench

    call()
    return float(min(do_bench(call, warmup=5, rep=20, quantiles=[0.5]) for _ in range(2))) / 1e3


if __name__ == "__main__":
    main()

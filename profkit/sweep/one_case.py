"""One case of a sweep as a program: `python -m profkit.sweep.one_case CASE`, for whichever instrument looks at it.

It makes the inputs that the sweep made, checks the result against float64, and gives the call to `profkit.benchmark`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.types import GridPoint


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one case, or give it to the instrument of the present pass; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m profkit.sweep.one_case",
        description="One case of a sweep, checked against float64 and given to profkit.benchmark.",
        epilog="example:  profkit profile -- python -m profkit.sweep.one_case GELU PyTorch 16x256x64 --device cpu",
    )
    parser.add_argument("operation")
    parser.add_argument("implementation")
    parser.add_argument("shape", help="batch x sequence x dimension: 16x256x64")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--direction", default="forward", choices=("forward", "backward"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--with", dest="files", action="append", default=[], metavar="FILE", type=Path)
    options = parser.parse_args(argv)
    try:
        return _run(options)
    except ProfkitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.fix:
            print(f"fix:   {error.fix}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    from profkit.core.errors import UsageError
    from profkit.kernels.operations.registry import register_files
    from profkit.kernels.sweep.request import SweepOptions, make_grid

    register_files(options.files)
    sizes = options.shape.split("x")
    if len(sizes) != 3:
        raise UsageError(f"{options.shape} is no shape", "16x256x64: batch x sequence x dimension")
    batch, sequence, dimension = sizes
    grid = make_grid(
        SweepOptions(
            options.operation,
            options.implementation,
            batch,
            sequence,
            dimension,
            options.dtype,
            options.direction,
        )
    )
    return _measure(grid.points()[0], grid.implementations[0], options)


def _measure(point: GridPoint, name: str, options: argparse.Namespace) -> int:
    import torch

    from profkit.kernels.operations.check import Incorrect, check_result, reference_result
    from profkit.kernels.operations.registry import Unavailable, build_call
    from profkit.kernels.sweep.bench import make_problem
    from profkit.runtime.passes.benchmark import benchmark

    problem = make_problem(point, torch.device("cuda:0" if options.device == "cuda" else options.device))
    try:
        call = build_call(name, problem)
        share = check_result(problem, call(), reference_result(problem))
    except Unavailable as missing:
        print(
            f"error: {name} cannot be had: {missing}\nfix:   {missing.fix or 'another one'}",
            file=sys.stderr,
        )
        return 3
    except Incorrect as wrong:
        print(f"error: {name}, {point.name}: {wrong}", file=sys.stderr)
        return 4
    print(f"{name}: {point.name}: right, error {share:.2g} of what rounding explains", flush=True)
    benchmark(
        call,
        name=f"{name}: {point.name}",
        flops=problem.operation.flops(point),
        bytes=problem.operation.bytes(point),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Builds kernels of our own as a call would, without running one: what Triton and NVRTC compiled is kept on disk.

For a process that does nothing else: what launches is out of use in it while something is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from profkit.core.types import GridPoint
from profkit.kernels.operations.compile_ahead import Shapes
from profkit.kernels.operations.operation import Problem
from profkit.kernels.operations.registry import OPERATIONS, build


def kernels_ahead(implementation: str, point: GridPoint, device: Any) -> None:
    """Build what `implementation` needs at the point. Raises what building raises.

    Its inputs are allocated on the device, since their addresses decide which kernel it is; nothing is in them.
    """
    import torch

    operation, shapes = OPERATIONS[point.operation], Shapes(point)
    inputs = operation.inputs(point, shapes)
    above = operation.above(point, shapes, inputs) if point.direction == "backward" else None
    made = tuple(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device) for t in inputs)
    problem = Problem(
        point, operation, made, None if above is None else torch.empty_like(above, device=device)
    )
    with nothing_runs():
        build(implementation, problem)()


@contextmanager
def nothing_runs() -> Iterator[None]:
    """Within it Triton's kernels are compiled, all that an autotuner would try; none is launched, nor one of CUDA."""
    import torch

    from profkit.kernels.operations.cuda.module import Kernel

    with _instead(torch, "zeros", torch.empty), _instead(Kernel, "__call__", _ignored):
        try:
            from triton.runtime.autotuner import Autotuner
            from triton.runtime.jit import JITFunction
        except ImportError:
            yield
            return
        run = JITFunction.run

        def compiled(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            del warmup
            return run(self, *args, grid=grid, warmup=True, **kwargs)

        def all_compiled(self: Any, *args: Any, warmup: bool = False, **kwargs: Any) -> Any:
            del warmup
            return self.warmup(*args, **kwargs)

        with _instead(JITFunction, "run", compiled), _instead(Autotuner, "run", all_compiled):
            yield


@contextmanager
def _instead(holder: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


def _ignored(*_: object) -> None:
    return None

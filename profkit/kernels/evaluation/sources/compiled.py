"""What torch.compile makes of PyTorch's own operations: a rival that kernels are timed against where that is asked."""

from __future__ import annotations

from profkit.kernels.evaluation.sources.aten import AtenSource
from profkit.kernels.evaluation.sources.source import Kernel

MOST_SHAPES = 1 << 16  # of one operation that are compiled; torch's own limit is 8


class CompiledSource(AtenSource):
    """torch.compile of a function that calls the one operation; it compiles at the first call of each shape."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[str, Kernel] | None = None

    def load(self, operation: str) -> Kernel:
        """The compiled function, the same one until another operation is asked for. Raises LoadError."""
        if self._last is None or self._last[0] != operation:
            self._last = operation, _compile(super().load(operation))
        return self._last[1]


def _compile(operator: Kernel) -> Kernel:
    import torch
    import torch._dynamo
    import torch._inductor.config

    torch._dynamo.reset()
    torch._dynamo.config.recompile_limit = MOST_SHAPES
    torch._inductor.config.compile_threads = 1  # else processes that wait for more to compile
    compiled: Kernel = torch.compile(
        lambda *args, **kwargs: operator(*args, **kwargs), dynamic=False, fullgraph=True
    )
    return compiled

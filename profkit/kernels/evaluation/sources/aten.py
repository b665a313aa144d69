"""PyTorch's own kernels: what everything else is compared with, and the test of the judge itself."""

from __future__ import annotations

from profkit.kernels.evaluation.sources.names import find_operator, known_overloads
from profkit.kernels.evaluation.sources.source import Kernel, ListedSource, LoadError


class AtenSource(ListedSource):
    """torch.ops.aten: a kernel for every overload."""

    def __init__(self) -> None:
        names = (f"{name}.{each}" for name, overloads in known_overloads().items() for each in overloads)
        super().__init__(dict.fromkeys(names, "torch"))

    def load(self, operation: str) -> Kernel:
        """torch's own object of the overload. Raises LoadError for what PyTorch does not have."""
        if not self.has_kernel(operation):
            raise LoadError(f"PyTorch has no operation called {operation}")
        operator: Kernel = find_operator(operation)
        return operator

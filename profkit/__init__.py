"""profkit profiles one workload on whatever hardware it runs on, and says what is wrong with it.

A workload imports this module, so it must cost next to nothing: names are loaded when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # what type checkers take for true; importing typing would cost a workload 2 ms

__version__ = "0.1.0"

if TYPE_CHECKING:
    from profkit.passes.benchmark import benchmark as benchmark
    from profkit.region import region as region

_LAZY = {"region": "profkit.region", "benchmark": "profkit.passes.benchmark"}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'profkit' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value  # the next look-up is a plain one
    return value

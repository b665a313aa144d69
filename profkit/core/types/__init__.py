"""The frozen types that packages hand each other.

Imports nothing of profkit but its errors. Every type here is plain data: no files, no processes, no clocks.

A workload's process uses few of them, and creating all costs it 50 ms, so modules are loaded until one has
the name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profkit.core.types.account import *
    from profkit.core.types.comparison import *
    from profkit.core.types.gpu import *
    from profkit.core.types.history import *
    from profkit.core.types.hot_spots import *
    from profkit.core.types.kernels import *
    from profkit.core.types.readings import *
    from profkit.core.types.run import *
    from profkit.core.types.timeline import *
    from profkit.core.types.trials import *

# Those that most processes load come first, and none before one that it is made of.
_MODULES = [
    "readings",
    "timeline",
    "gpu",
    "hot_spots",
    "account",
    "trials",
    "run",
    "kernels",
    "comparison",
    "history",
]


def __getattr__(name: str) -> object:
    for module in () if name.startswith("_") else _MODULES:
        # Not importlib's: a workload has no need of it.
        loaded = __import__(f"{__name__}.{module}", fromlist=(name,))
        if hasattr(loaded, name):
            value = globals()[name] = getattr(loaded, name)  # the next look-up is a plain one
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

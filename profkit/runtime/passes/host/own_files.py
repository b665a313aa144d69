"""Which source files belong to what measures, and so to no workload."""

from __future__ import annotations

import os

_HERE = os.path.dirname(os.path.abspath(__file__))
_RUNTIME = os.path.dirname(os.path.dirname(_HERE))
_OWN_FOLDERS = tuple(os.path.join(_RUNTIME, name, "") for name in ("passes", "region"))


def is_own(path: str) -> bool:
    """Whether a source file belongs to what measures, and so to no workload."""
    return path.startswith(_OWN_FOLDERS)

"""Which suites there are, by name or by the file of a user."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.kernels.evaluation.suites.suite import Suite

# A module is imported when its suite is first asked for: all of them import torch.
_SUITES = {
    "smoke": ("profkit.kernels.evaluation.suites.smoke", "Smoke"),
}


def suite_names() -> tuple[str, ...]:
    """Those that come with profkit."""
    return tuple(_SUITES)


def find_suite(name: str, path: Path | None = None) -> Suite:
    """The suite called so, out of the file where it needs one. Raises UsageError where there is none."""
    if name not in _SUITES:
        raise UsageError(f"there is no suite called {name!r}", f"--suite {'|'.join(suite_names())}")
    if path is not None:
        raise UsageError(f"the suite {name} takes no file", f"--suite {name}")
    module, maker = _SUITES[name]
    make: Callable[[], Suite] = getattr(import_module(module), maker)
    return make()

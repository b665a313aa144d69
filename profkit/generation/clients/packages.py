"""The packages of the extra `llm`: loaded when a model is asked, never before."""

from __future__ import annotations

import importlib
from types import ModuleType

from profkit.core.errors import MachineError


def load_package(name: str) -> ModuleType:
    """The package, loaded. Raises MachineError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise MachineError(
            f"{missing} is not installed, and models are asked with it", "pip install 'profkit[llm]'"
        ) from error

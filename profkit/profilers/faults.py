"""What a tool's error text means: asks the tool's own folder, so that no other room knows its words."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from profkit.core.errors import Fault


def explain(tool: str, text: str, returncode: int) -> Fault | None:
    """The fault that `tool` printed as `text` before it ended with `returncode`; None where it is not known."""
    package = f"profkit.profilers.{tool}"
    if find_spec(package) is None or find_spec(f"{package}.faults") is None:
        return None
    found: Fault | None = import_module(f"{package}.faults").explain(text, returncode)
    return found

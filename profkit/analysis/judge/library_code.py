"""Whose code a place on the processor is: the program's own, or that of a library, which its user cannot change."""

from __future__ import annotations

import re
from collections import defaultdict

from profkit.analysis.summaries.host import INTERPRETER, counted_profile, share_of_libraries
from profkit.core.types import RunDocument

PYTHON = "Python"  # the interpreter and its standard library
# Where systems and package managers put libraries.
_INSTALLED = re.compile(
    r"^/(usr/)?lib(32|64)?/|^/System/Library/|[/\\](site|dist)-packages[/\\]|[/\\]lib-dynload[/\\]"
)
_LIBRARY = re.compile(r"\.(so|dylib|dll|pyd)\b")
_MOST = 0.5  # of the misses: with more, the program's own hardly change the rate
# The event of each metric that a simulation counts by function.
_EVENTS = {"branch.miss_rate": "Bcm"}


def owner_of(path: str | None) -> str | None:
    """Return who wrote the code in a file: `Python`, or a library (`libm`); None for the program's own code."""
    name = (path or "").replace("\\", "/").rpartition("/")[2]
    if INTERPRETER.search(name) or re.search(r"[/\\]lib-dynload[/\\]", path or ""):
        return PYTHON
    installed = _INSTALLED.search(path or "") is not None and _LIBRARY.search(name) is not None
    return name.partition(".")[0] if installed else None


def owners_of_misses(document: RunDocument) -> dict[str, str]:
    """Return by metric who wrote the code of most misses of the run, for metrics where that is not the program's own.

    Where misses were not counted by function, the time in the interpreter stands for them.
    """
    counted = counted_profile(document.profiles)
    owners: dict[str, str] = {}
    for metric, event in _EVENTS.items():
        misses: dict[str | None, float] = defaultdict(float)
        for spot in counted.hotspots if counted is not None else ():
            misses[owner_of(spot.library)] += spot.counters.get(event, 0.0)
        whole = sum(misses.values())
        if not whole and share_of_libraries(document, INTERPRETER) > _MOST:
            owners[metric] = PYTHON
        elif whole - misses[None] > _MOST * whole:
            owners[metric] = max(
                (owner for owner in misses if owner is not None), key=lambda owner: misses[owner]
            )
    return owners

"""Where valgrind is."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.programs import find_tool

_ELSEWHERE = ("/usr/local/bin", "/opt/valgrind/bin", "/opt/homebrew/bin")  # not always on a service's PATH


def find_valgrind() -> Path | None:
    """The valgrind to call: `PROFKIT_VALGRIND` where set, else that of PATH, of this environment, or a usual place."""
    return find_tool("valgrind", "PROFKIT_VALGRIND", folders=_ELSEWHERE)

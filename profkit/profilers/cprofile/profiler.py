"""cProfile of Python's standard library, as profkit uses it: files that `pstats` writes are read."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.types import Check
from profkit.profilers.profiler import Format, lazy_function


class CProfile:
    """Python's own profiler. It is no program: `profkit profile` runs it inside of the workload."""

    name = "cprofile"
    formats = (
        Format(
            "pstats",
            name,
            "a cProfile (pstats) file",
            lazy_function("profkit.profilers.cprofile.read.looks_like_cprofile"),
            lazy_function("profkit.profilers.cprofile.read.read_cprofile"),
            as_text="echo stats | python -m pstats {name} > {stem}.txt",
        ),
    )
    recorder = None
    explain = None

    def checks(self) -> Iterable[Check]:
        """It is always there."""
        return ()

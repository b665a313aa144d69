"""A callgrind file with what the instructions of its program were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.core.types import Report
from profkit.profilers.valgrind import callgrind_file


def read_with_mix(path: Path) -> Report:
    """A callgrind file, with its instructions by kind where it has addresses and their object files are here."""
    from profkit.profilers.valgrind.instructions import instruction_mix

    report = callgrind_file.read_callgrind(path)
    mix = instruction_mix(path)
    if mix is None:
        return report
    return replace(
        report,
        counters=(*report.counters, *mix.whole.counters()),
        warnings=(*report.warnings, *mix.notes),
    )

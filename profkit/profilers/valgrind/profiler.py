"""valgrind: a simulation that counts instructions, cache misses and branches."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Format, Recorder, lazy_function


class Valgrind:
    """valgrind's callgrind and cachegrind."""

    name = "valgrind"
    formats = (
        Format(
            "callgrind",
            name,
            "callgrind",
            lazy_function("profkit.profilers.valgrind.read.looks_like_callgrind"),
            lazy_function("profkit.profilers.valgrind.read.read_callgrind_with_mix"),
            lazy_function("profkit.profilers.valgrind.read.scrub_callgrind"),
        ),
        Format(
            "cachegrind",
            name,
            "cachegrind",
            lazy_function("profkit.profilers.valgrind.read.looks_like_cachegrind"),
            lazy_function("profkit.profilers.valgrind.read.read_cachegrind"),
            lazy_function("profkit.profilers.valgrind.read.scrub_callgrind"),
        ),
    )
    recorder = Recorder(
        lazy_function("profkit.profilers.valgrind.record.recording_step"),
        lazy_function("profkit.profilers.valgrind.record.collect_report"),
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What valgrind's error means."""
        from profkit.profilers.valgrind.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it simulates here."""
        from profkit.profilers.valgrind.probe import valgrind_checks

        return valgrind_checks()

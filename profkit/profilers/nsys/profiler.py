"""nsys (Nsight Systems): a trace of the GPU's kernels, copies and API calls."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Conversion, Format, Recorder, lazy_function


def _is_sqlite(head: bytes) -> bool:
    """True for any SQLite file: no other tool whose reports are read writes one. Whose it is, its tables tell."""
    return head.startswith(b"SQLite format 3\x00")


def _is_rep(head: bytes) -> bool:
    """True for a `.nsys-rep`, formerly `.qdrep`; the importer's name is older than the product's."""
    return head.startswith(b"NVIDIA Tegra Profiler Report")


class NsightSystems:
    """nsys, and the forms of its reports; the form with the most in it first."""

    name = "nsys"
    formats = (
        Format(
            "nsys-sqlite",
            name,
            "nsys SQLite",
            _is_sqlite,
            lazy_function("profkit.profilers.nsys.sqlite.read_sqlite"),
            lazy_function("profkit.profilers.nsys.scrub.scrub"),
            time_line=lazy_function("profkit.profilers.nsys.sqlite.time_line"),
        ),
        Format(
            "nsys-rep",
            name,
            ".nsys-rep",
            _is_rep,
            lazy_function("profkit.profilers.nsys.sqlite.read_sqlite"),
            scrub=None,
            scrub_fix="scrub its SQLite export: nsys export --type sqlite --lazy=false {name}",
            conversion=Conversion(
                lazy_function("profkit.profilers.nsys.record.conversion_argv"),
                "converted.sqlite",
                "nsys export --type=sqlite --output={stem}.sqlite {name}",
            ),
        ),
        Format(
            "nsys-stats-csv",
            name,
            "nsys stats",
            lazy_function("profkit.profilers.nsys.stats_tables.looks_like_stats"),
            lazy_function("profkit.profilers.nsys.stats.read_stats"),
            lazy_function("profkit.profilers.scrub.scrub_text"),
        ),
    )
    recorder = Recorder(
        lazy_function("profkit.profilers.nsys.record.recording_step"),
        lazy_function("profkit.profilers.nsys.record.collect_report"),
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What nsys' error means."""
        from profkit.profilers.nsys.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it traces here and writes a report."""
        from profkit.profilers.nsys.probe import nsys_checks

        return nsys_checks()

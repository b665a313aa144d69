"""nsys (Nsight Systems): a trace of the GPU's kernels, copies and API calls."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Conversion, Format, Recorder, later


class NsightSystems:
    """nsys, and the forms of its reports; the form with the most in it first."""

    name = "nsys"
    formats = (
        Format(
            "nsys-sqlite",
            name,
            "nsys SQLite",
            later("profkit.profilers.nsys.sqlite.looks_like"),
            later("profkit.profilers.nsys.sqlite.read_sqlite"),
            later("profkit.profilers.nsys.scrub.scrub"),
        ),
        Format(
            "nsys-rep",
            name,
            ".nsys-rep",
            later("profkit.profilers.nsys.report.looks_like"),
            later("profkit.profilers.nsys.sqlite.read_sqlite"),
            scrub=None,
            scrub_fix="scrub its SQLite export: nsys export --type sqlite --lazy=false {name}",
            conversion=Conversion(
                later("profkit.profilers.nsys.convert.conversion_argv"),
                "converted.sqlite",
                "nsys export --type=sqlite --output={stem}.sqlite {name}",
            ),
        ),
        Format(
            "nsys-stats-csv",
            name,
            "nsys stats",
            later("profkit.profilers.nsys.stats_csv.looks_like"),
            later("profkit.profilers.nsys.stats_csv.read_stats_csv"),
            later("profkit.profilers.scrub.scrub_text"),
        ),
    )
    recorder = Recorder(
        later("profkit.profilers.nsys.recipe.recording_step"), later("profkit.profilers.nsys.recipe.collect")
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What nsys' error means."""
        from profkit.profilers.nsys.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it traces here and writes a report."""
        from profkit.profilers.nsys.probe import nsys_checks

        return nsys_checks()

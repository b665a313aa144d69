"""perf of Linux: counts and samples by the kernel."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Conversion, Format, Recorder, lazy_function

_SCRUB = lazy_function("profkit.profilers.perf.scrub.scrub")


class Perf:
    """perf, and the forms of its output; the form with the most in it first."""

    name = "perf"
    formats = (
        Format(
            "perf-data",
            name,
            "perf.data",
            lazy_function("profkit.profilers.perf.perf_data.is_perf_data"),
            lazy_function("profkit.profilers.perf.script.read_script"),
            scrub=None,
            scrub_fix="perf script -i {name} > perf.txt, then scrub that",
            conversion=Conversion(
                lazy_function("profkit.profilers.perf.record.conversion_argv"),
                "converted.txt",
                "perf script -i {name} > {stem}.txt",
            ),
        ),
        Format(
            "perf-stat-json",
            name,
            "perf stat -j",
            lazy_function("profkit.profilers.perf.stat_text.looks_like_stat_json"),
            lazy_function("profkit.profilers.perf.stat_text.read_stat_json"),
            _SCRUB,
        ),
        Format(
            "perf-json",
            name,
            "perf data convert --to-json",
            lazy_function("profkit.profilers.perf.convert_json.looks_like_convert_json"),
            lazy_function("profkit.profilers.perf.convert_json.read_convert_json"),
            _SCRUB,
        ),
        Format(
            "perf-stat-csv",
            name,
            "perf stat -x",
            lazy_function("profkit.profilers.perf.stat_csv.looks_like_stat_csv"),
            lazy_function("profkit.profilers.perf.stat_csv.read_stat_csv"),
            _SCRUB,
        ),
        Format(
            "perf-stat-text",
            name,
            "perf stat",
            lazy_function("profkit.profilers.perf.stat_text.looks_like_stat_text"),
            lazy_function("profkit.profilers.perf.stat_text.read_stat_text"),
            _SCRUB,
        ),
        Format(
            "perf-report",
            name,
            "perf report --stdio",
            lazy_function("profkit.profilers.perf.report_text.looks_like_report_text"),
            lazy_function("profkit.profilers.perf.report_text.read_report_text"),
            _SCRUB,
        ),
        Format(
            "perf-script",
            name,
            "perf script",
            lazy_function("profkit.profilers.perf.script.looks_like_script"),
            lazy_function("profkit.profilers.perf.script.read_script"),
            _SCRUB,
            has_stacks=True,
        ),
    )
    recorder = Recorder(lazy_function("profkit.profilers.perf.record.recording_step"))

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What perf's error means."""
        from profkit.profilers.perf.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it counts and samples here."""
        from profkit.profilers.perf.checks import perf_checks

        return perf_checks()

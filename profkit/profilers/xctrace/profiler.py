"""xctrace, the command line of Apple's Instruments: traces of the CPU and the GPU of a Mac."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Conversion, Format, Recorder, later

# The tables that most of a report is made of: `report.wanted_schemas` has all.
TABLES = (
    "metal-gpu-intervals",
    "metal-gpu-state-intervals",
    "metal-application-encoders-list",
    "metal-application-command-buffer-submissions",
    "metal-command-buffer-completed",
    "gpu-performance-state-intervals",
    "device-thermal-state-intervals",
    "metal-shader-profiler-intervals",
    "metal-gpu-counter-intervals",
    "gpu-counter-info",
    "gpu-counter-value",
    "time-info",
    "time-profile",
    "counters-profile",
)
_BY_HAND = (
    "mkdir exports; xctrace export --input {name} --toc --output exports/toc.xml; "
    f"for t in {' '.join(TABLES)}; do xctrace export --input {{name}} "
    "--xpath '/trace-toc/run[1]/data/table[@schema=\"'$t'\"]' --output exports/$t.xml; done"
)
_READ = later("profkit.profilers.xctrace.report.read_exports")
_SCRUB_FILE = later("profkit.profilers.xctrace.scrub.scrub_file")


class Xctrace:
    """xctrace: tables and tables of contents as XML, folders of them, and documents, which only xctrace reads."""

    name = "xctrace"
    formats = (
        Format(
            "xctrace-table",
            name,
            "xctrace export",
            later("profkit.profilers.xctrace.kinds.looks_like_table"),
            _READ,
            _SCRUB_FILE,
        ),
        Format(
            "xctrace-toc",
            name,
            "xctrace export --toc",
            later("profkit.profilers.xctrace.kinds.looks_like_toc"),
            _READ,
            _SCRUB_FILE,
        ),
        Format(
            "xctrace-document",
            name,
            "document of Instruments (.trace)",
            None,
            _READ,
            scrub=None,
            scrub_fix="scrub its export: profkit record with a REPORT that does not end in .trace leaves one",
            is_folder=later("profkit.profilers.xctrace.kinds.is_document"),
            conversion=Conversion(
                later("profkit.profilers.xctrace.convert.conversion_argv"), "exports", _BY_HAND
            ),
        ),
        Format(
            "xctrace-folder",
            name,
            "folder of xctrace exports",
            None,
            _READ,
            later("profkit.profilers.xctrace.scrub.scrub_folder"),
            is_folder=later("profkit.profilers.xctrace.kinds.has_exports"),
        ),
    )
    recorder = Recorder(
        later("profkit.profilers.xctrace.recipe.recording_step"),
        later("profkit.profilers.xctrace.recipe.collect"),
        later("profkit.profilers.xctrace.recipe.rescue"),
        later("profkit.profilers.xctrace.recipe.check_target"),
        follows_region=False,
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What an error of xctrace or xcrun means."""
        from profkit.profilers.xctrace.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether Xcode is here and records."""
        from profkit.profilers.xctrace.checks import instruments_checks

        return instruments_checks()

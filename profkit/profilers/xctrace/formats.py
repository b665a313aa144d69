"""What of xctrace's can be read: tables and tables of contents as XML, folders of them, and documents by xctrace."""

from __future__ import annotations

from profkit.profilers.formats import Format, later, no_file

_KINDS = "profkit.profilers.xctrace.kinds"
_REPORT = later("profkit.profilers.xctrace.report", "read_exports")
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

FORMATS = (
    Format("xctrace-table", "xctrace", "xctrace export", later(_KINDS, "looks_like_table"), _REPORT),
    Format("xctrace-toc", "xctrace", "xctrace export --toc", later(_KINDS, "looks_like_toc"), _REPORT),
    Format(
        "xctrace-document",
        "xctrace",
        "document of Instruments (.trace)",
        no_file,
        _REPORT,
        later("profkit.profilers.xctrace.convert", "conversion_argv"),
        "exports",
        _BY_HAND,
        later(_KINDS, "is_document"),
    ),
    Format(
        "xctrace-folder",
        "xctrace",
        "folder of xctrace exports",
        no_file,
        _REPORT,
        holds=later(_KINDS, "has_exports"),
    ),
)

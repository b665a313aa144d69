"""What of nsys' can be read, most telling form first. A reader is imported when its turn comes."""

from __future__ import annotations

from profkit.profilers.formats import Format, later

_SQLITE = "profkit.profilers.nsys.sqlite"
_STATS = "profkit.profilers.nsys.stats_csv"
_REPORT = "profkit.profilers.nsys.report"

FORMATS = (
    Format("nsys-sqlite", "nsys", "nsys SQLite", later(_SQLITE, "looks_like"), later(_SQLITE, "read_sqlite")),
    Format(
        "nsys-rep",
        "nsys",
        ".nsys-rep",
        later(_REPORT, "looks_like"),
        later(_SQLITE, "read_sqlite"),
        later("profkit.profilers.nsys.convert", "conversion_argv"),
        "converted.sqlite",
        "nsys export --type=sqlite --output={stem}.sqlite {name}",
    ),
    Format(
        "nsys-stats-csv",
        "nsys",
        "nsys stats",
        later(_STATS, "looks_like"),
        later(_STATS, "read_stats_csv"),
    ),
)

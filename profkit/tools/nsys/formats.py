"""What of nsys' can be read, most telling form first. A reader is imported when its turn comes."""

from __future__ import annotations

from profkit.tools.formats import Format, later

_SQLITE = "profkit.tools.nsys.sqlite"

FORMATS = (
    Format("nsys-sqlite", "nsys", "nsys SQLite", later(_SQLITE, "looks_like"), later(_SQLITE, "read_sqlite")),
)

"""How a `.nsys-rep` becomes a file that can be read: by nsys itself, wherever one is here."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.nsys.command import export_argv
from profkit.profilers.nsys.find import find_nsys


def conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    """The command that turns `report` into SQLite for `sqlite.read_sqlite`, to be run where nsys is."""
    return export_argv(report, output, nsys=str(find_nsys() or "nsys"))

"""What is raised of an export that is not whole: unlike what is hostile, others beside it may be read without it."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import UnreadableReport


class DamagedExport(UnreadableReport):
    """An export that is cut off, or no well-formed XML. `reason` is that without the name of the file at `path`."""

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message, fix)
        self.path: Path | None = None
        self.reason = message

    def of(self, path: Path, fix: str) -> DamagedExport:
        """The same, with the name of the file before it; `fix` where it has none."""
        told = DamagedExport(f"{path}: {self.message}", self.fix or fix)
        told.path, told.reason = path, self.reason
        return told

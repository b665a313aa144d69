"""Links from a generation's page to the files of its attempts."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from profkit.core.types import Attempt, OperationAttempts
from profkit.reporting.extras import PAGE
from profkit.reporting.view import Span, Text, between, joined


class Linker:
    """Makes links to files below the generation's folder: of those alone that are there."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def span(self, words: str, path: str) -> Span:
        """The words, with the file behind them where it is there."""
        there = self._folder is not None and bool(path) and (self._folder / path).is_file()
        return Span(words, link=path if there else None)

    def kernel(self, attempt: Attempt) -> Text:
        """`relu_attempt_3.py`; `-` where there is none."""
        return self.span(PurePosixPath(attempt.file).name or "-", attempt.file)

    def files(self, operation: OperationAttempts, attempt: Attempt) -> Text:
        """All that an attempt has, by what it is."""
        pages = (
            ("kernel", attempt.file),
            ("answer", f"{operation.folder}/{operation.folder}_attempt_{attempt.number}_answer.md"),
            ("feedback", attempt.feedback),
            ("evaluation", f"{attempt.evaluation}/{PAGE}" if attempt.evaluation else ""),
            ("profile", f"{attempt.profile}/{PAGE}" if attempt.profile else ""),
        )
        linked = [span for name, path in pages if (span := self.span(name, path)).link is not None]
        return joined(*between(" ", linked))

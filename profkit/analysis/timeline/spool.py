"""Columns put aside to be read a second time: in memory while they are few, else in a file that has no name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profkit.analysis.timeline.records import Columns

IN_MEMORY = 8 << 20  # bytes; more goes to the folder for temporary files


class Spool:
    """Blocks of one dtype, given back in the order in which they came."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._blocks: list[tuple[int, int]] = []
        self._dtype: Any = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, block: Columns) -> None:
        """Put `block` aside."""
        if not len(block):
            return
        self._dtype = block.dtype
        self._file.seek(0, 2)
        at = self._file.tell()
        data = block.tobytes()
        self._file.write(data)
        self._blocks.append((at, len(data)))

    def __iter__(self) -> Iterator[Columns]:
        import numpy as np

        for at, size in self._blocks:
            self._file.seek(at)
            yield np.frombuffer(self._file.read(size), dtype=self._dtype)

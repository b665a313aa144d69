"""One table of an export: which columns it has, and its rows, as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from profkit.profilers.xctrace.values import Value

Row = tuple[Value | tuple[Value, ...], ...]


@dataclass(frozen=True)
class Column:
    """One column: `mnemonic` names it, `name` is its heading, `type` the engineering type (the tag of its cells)."""

    mnemonic: str
    name: str
    type: str


@dataclass(frozen=True)
class Table:
    """One table of an export, read as far as its schema.

    `run` and `position` say where it stood in the recording (both count from 1, None where not told); `attributes`
    are those of its entry in the table of contents ("target-pid", "pmc-events"), empty where that is not at hand.
    """

    schema: str
    columns: tuple[Column, ...]
    open_rows: Callable[[Sequence[str]], Iterator[Row]] = field(repr=False, compare=False)
    run: int | None = None
    position: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def has(self, mnemonic: str) -> bool:
        """Whether there is such a column."""
        return any(column.mnemonic == mnemonic for column in self.columns)

    def rows(self, wanted: Sequence[str]) -> Iterator[Row]:
        """The rows as tuples, in the order of `wanted`; to be taken once, before the next table is asked for.

        `wanted` are mnemonics. `label/@fmt` is the text that Instruments shows for the column `label`
        ("1.25 GB/s"); `label/*` is the tuple of the values in it. A column that is not there, and a cell without
        a value, are None. Numbers are whole where the column's type says so (times in ns, ids, sizes in bytes), float
        for percent and decimals, text elsewhere; processes, threads and stacks are objects, equal ones the same.
        Raises UnreadableReport where the export is cut off, damaged or hostile: at the row where that shows.
        """
        return self.open_rows(wanted)

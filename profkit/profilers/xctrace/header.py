"""The begin of a node of an export: where in the recording its table stood, and its schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.table import Column

MOST_COLUMNS = 4096
_PLACE = re.compile(r"/run\[(?:@number=[\"'])?(\d{1,9})[\"']?\].*?/table\[(\d{1,9})\]")
_COLUMN = {"mnemonic": "mnemonic", "name": "name", "engineering-type": "type"}


@dataclass
class Header:
    """A node's head, filled as it is read."""

    xpath: str = ""
    schema: str | None = None
    columns: list[Column] = field(default_factory=list)
    borrowed: bool = False  # the schema is that of the node before: cells must be of its types
    _column: dict[str, str] = field(default_factory=dict)
    _text: list[str] = field(default_factory=list)

    @property
    def place(self) -> tuple[int | None, int | None]:
        """Run and position of the table, from 1; None where the path does not tell."""
        found = _PLACE.search(self.xpath)
        return (int(found[1]), int(found[2])) if found else (None, None)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins inside of the node and outside of its rows."""
        if tag == "schema":
            self.schema = attributes.get("name", "")
        elif tag == "col":
            self._column = {}
        self._text = []

    def text(self, text: str) -> None:
        """Text of the element that is open."""
        self._text.append(text)

    def end(self, tag: str) -> None:
        """An element ends. Raises UnreadableReport for columns without end."""
        if tag in _COLUMN:
            self._column[_COLUMN[tag]] = "".join(self._text).strip()
        elif tag == "col":
            if len(self.columns) >= MOST_COLUMNS:
                raise UnreadableReport(
                    f"not an export of xctrace: a table with more than {MOST_COLUMNS} columns"
                )
            get = self._column.get
            self.columns.append(Column(get("mnemonic", ""), get("name", ""), get("type", "")))
            self._column = {}
        self._text = []

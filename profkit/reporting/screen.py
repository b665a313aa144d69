"""Lines and tables of a terminal, as a string: 80 columns, colour only on a terminal, nothing read as markup."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from profkit.analysis.kernel_names import narrower
from profkit.core.formatting import shorten
from profkit.reporting.plain_text import text_for_others
from profkit.reporting.view import TableColumn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Part = str | tuple[str, str]  # plain, or with a style of rich
WIDTH = 80
# Between a number and its unit, and behind < and >, no line may end. Rich wraps at every kind of blank, also
# at the no-break one, so a private character stands there until the text is done.
_STICKY = re.compile(r"(?<=\d) (?=%|x\b|[KMGTkmµn]?i?(?:B|s|FLOP|Hz)\b)|(?<=[<>=]) (?=\d)")
_GLUE = "\ue000"
# A file with its line: where it is longer than the screen it goes on below from the last slash on, or in the middle of
# a name; the number stays in one piece, and beside its name.
_PLACE = re.compile(r"(?<!\S)\S*[/\\](?=[^\s/\\]*:\d)\S+")
# A table of this many columns that is too wide goes on below, with its first column again; a smaller one is folded.
_BREAKABLE = 4
_NAME = 20  # characters that a name keeps at least
_PROSE = 100  # columns beyond which sentences are tiring to read, however wide the screen is


class Screen:
    """Collects lines. Styles are rich's; text is taken as it is, never as markup."""

    def __init__(self, color: bool | None = None, width: int | None = None) -> None:
        from rich.console import Console  # here: 40 ms that only a rendering pays

        if color is None:
            color = (
                sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
            )
        self._buffer = io.StringIO()
        self.console: Console = Console(
            file=self._buffer,
            force_terminal=color,
            no_color=not color,
            color_system="standard" if color else None,
            width=width or _width(),
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            force_jupyter=False,  # in a notebook it would show each line by itself
        )

    def line(self, *parts: Part, indent: int = 0, hang: int = 0) -> None:
        """Print one paragraph of plain and (text, style) parts, wrapped with a hanging indent."""
        from rich.padding import Padding

        text = _text(parts, self._prose - indent - hang)
        if hang == 0:
            self.console.print(Padding(text, (0, 0, 0, indent)), width=self._prose)
            return
        width = self._prose - indent
        first = text.wrap(self.console, width)[0]
        end = len(first.plain.rstrip())
        first.rstrip()
        self.console.print(Padding(first, (0, 0, 0, indent)))
        rest = text[end:]
        rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
        for wrapped in rest.wrap(self.console, width - hang) if rest.plain else ():
            wrapped.rstrip()
            self.console.print(Padding(wrapped, (0, 0, 0, indent + hang)))

    def typed(self, text: str, style: str = "", indent: int = 0) -> None:
        """Add a command in one piece, however narrow the screen: a terminal wraps it, and copies it as a whole."""
        from rich.text import Text

        self.console.print(Text(" " * indent).append(text_for_others(text), style=style), soft_wrap=True)

    def heading(self, *parts: Part) -> None:
        """Add an empty line and a bold one."""
        self.console.print()
        self.line(*(part if isinstance(part, tuple) else (part, "bold") for part in parts))

    def labelled(self, label: Part, *parts: Part, width: int, indent: int = 2) -> None:
        """Add a label in a column of `width`, and next to it a paragraph that stays in its own column."""
        from rich.padding import Padding
        from rich.table import Table

        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=width, no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")  # rich's default cuts a long word off
        grid.add_row(_text([label]), _text(parts, self._prose - indent - width - 2))
        self.console.print(Padding(grid, (0, 0, 0, indent)), width=self._prose)

    def grid(
        self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Sequence[Part]]], indent: int = 2
    ) -> None:
        """Add a table without a frame; one that is too wide is split into parts, each with the first column."""
        parts = self._parts(columns, rows, indent)
        if len(parts) > 1:  # names make way for numbers
            names = [_plain(row[0]) for row in rows]
            width = max(_NAME, (self.console.width - indent) // (3 if columns[0].kernel else 2))
            shorten_name = narrower if columns[0].kernel else shorten
            short = [name if len(name) <= width else shorten_name(name, width) for name in names]
            if len(set(short)) == len(set(names)):
                changed = zip(rows, names, short, strict=True)
                rows = [row if new == old else [[new], *row[1:]] for row, old, new in changed]
                parts = self._parts(columns, rows, indent)
        for number, part in enumerate(parts):
            if number:
                self.blank()
            self._grid([columns[n] for n in part], [[row[n] for n in part] for row in rows], indent)

    def _parts(
        self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Sequence[Part]]], indent: int
    ) -> list[tuple[int, ...]]:
        """Return which columns stand side by side: all of them, or as many as fit behind the first one."""
        from rich.cells import cell_len

        everything = tuple(range(len(columns)))
        wide = [
            max(cell_len(text) for text in (columns[n].title, *(_plain(row[n]) for row in rows))) + 2
            for n in everything
        ]
        space = self.console.width - indent
        in_one_piece = len(columns) < _BREAKABLE or any(column.wraps for column in columns)
        if in_one_piece or sum(wide) - 2 <= space:
            return [everything]
        parts: list[tuple[int, ...]] = []
        used = 0
        for number in everything[1:]:
            used += wide[number]
            if not parts or used - 2 > space:
                parts.append((0, number))
                used = wide[0] + wide[number]
            else:
                parts[-1] = (*parts[-1], number)
        return parts

    def _grid(
        self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Sequence[Part]]], indent: int
    ) -> None:
        from rich.padding import Padding
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False, pad_edge=False)
        widths = self._widths(columns, rows, indent)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(
                _safe(column.title),
                justify="right" if column.numeric else "left",
                overflow="fold",
                width=width,
            )
        for row in rows:
            table.add_row(*map(_text, row, widths))
        self.console.print(Padding(table, (0, 0, 0, indent)))

    def _widths(
        self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Sequence[Part]]], indent: int
    ) -> list[int]:
        """Return the width of each column: no word is broken (`train.py:1204` stays whole) where that can be.

        The widest columns give way first, down to their longest word; one that `wraps` gives way before all others.
        """
        from rich.cells import cell_len

        texts = [[column.title, *(_plain(row[n]) for row in rows)] for n, column in enumerate(columns)]
        whole = [max(map(cell_len, own)) for own in texts]
        words = [max((cell_len(word) for text in own for word in text.split()), default=0) for own in texts]
        wraps = [column.wraps for column in columns]
        if any(wraps):
            words = [word if wrap else most for word, most, wrap in zip(words, whole, wraps, strict=True)]
        space = self.console.width - indent - 2 * (len(columns) - 1)
        for most in range(max(whole), 0, -1):
            widths = [max(word, min(full, most)) for word, full in zip(words, whole, strict=True)]
            if sum(widths) <= space:
                return widths
        # Not even their longest words fit side by side: they are broken, in the widest columns first.
        most = next(
            cap for cap in range(max(whole), 0, -1) if sum(min(w, cap) for w in whole) <= space or cap == 1
        )
        return [min(full, most) for full in whole]

    @property
    def _prose(self) -> int:
        return min(self.console.width, _PROSE)

    def blank(self) -> None:
        """Add an empty line."""
        self.console.print()

    def text(self) -> str:
        """Return all lines, without blanks at their ends."""
        lines = (line.rstrip() for line in self._buffer.getvalue().replace(_GLUE, " ").split("\n"))
        return "\n".join(lines).strip("\n") + "\n"


def _plain(parts: Sequence[Part]) -> str:
    return text_for_others("".join(part if isinstance(part, str) else part[0] for part in parts))


def _text(parts: Sequence[Part], room: int | None = None) -> Text:
    """Return the parts for rich; a place longer than the given columns is broken at a suitable point."""
    from rich.text import Text

    text = Text()
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        safe = _safe(words)
        text.append(_PLACE.sub(partial(_folded_place, room), safe) if room else safe, style=style)
    return text


def _folded_place(room: int, found: re.Match[str]) -> str:
    """Return a file with its line in lines of at most `room` columns, the last one with the number in it."""
    place = found[0]
    if len(place) <= room:
        return place
    at = max(place.rfind("/"), place.rfind("\\")) + 1
    if len(place) - at > room:  # a name that is longer than the screen
        at = len(place) - room
    return f"{place[:at]}\n{place[at:]}"


def _width() -> int:
    """Return the width of the terminal (COLUMNS, where that is set), 40 to 1000; 80 if there is none."""
    if not (sys.stdout.isatty() or os.environ.get("COLUMNS")):
        return WIDTH
    return min(1000, max(40, shutil.get_terminal_size((WIDTH, 24)).columns))


def _safe(words: str) -> str:
    """Return the words without anything that the terminal would obey, glued where no line may end."""
    return _STICKY.sub(_GLUE, text_for_others(words))

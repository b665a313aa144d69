"""What a result looks like, as plain data: a `View` of blocks. Each kind of result makes one, each format renders any.

A format must know the five basic blocks `Paragraph`, `ItemList`, `FieldList`, `DataTable` and `Section`. Every other
block says in `plain()` what it is in simpler blocks; a format that can do better (colours, drawings, test cases)
handles the type itself.

Texts are typed spans and never markup: code, emphasis, a line to type, a status and a source are fields. So a format
escapes every character that it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

CaseState: TypeAlias = Literal["passed", "failure", "error", "skipped", "unknown"]
Level: TypeAlias = Literal["error", "warning", "notice"]


class Status(Enum):
    """How something stands: its sign, so that colour never carries the meaning alone, its tone on a page, its colour.

    `case` is what it is as a test case, `level` that of an annotation, None where nobody needs to look at it.
    """

    FAIL = ("✗", "fail", "red", "failure", "error")
    REFUSED = ("!", "fail", "red", "error", "error")
    INVALID = ("!", "unknown", "yellow", "error", "warning")
    UNKNOWN = ("?", "unknown", "yellow", "unknown", "warning")
    CHANGED = ("~", "unknown", "yellow", "skipped", None)
    BETTER = ("▲", "pass", "green", "passed", "notice")
    NEW = ("+", "not-applicable", "cyan", "passed", None)
    PASS = ("✓", "pass", "green", "passed", None)
    NONE = ("-", "not-applicable", "dim", "skipped", None)

    def __init__(self, sign: str, tone: str, colour: str, case: CaseState, level: Level | None) -> None:
        self.sign, self.tone, self.colour, self.case, self.level = sign, tone, colour, case, level


class Style(Enum):
    """What a span of text is."""

    PLAIN = "plain"
    STRONG = "strong"
    SOFT = "soft"  # of less weight: a reason below its sentence, a path
    CODE = "code"
    COMMAND = "command"  # a line to type: no format breaks it


@dataclass(frozen=True)
class Footnote:
    """Where a number comes from, in plain texts; None is not known or does not apply."""

    metric: str
    title: str
    meaning: str | None
    quality: str
    tool: str
    counter: str | None = None
    formula: str | None = None
    artifact: str | None = None
    reason: str | None = None
    fix: str | None = None
    doubt: str | None = None


@dataclass(frozen=True)
class Span:
    """A piece of text. `status` gives it a colour, not a sign; `mark` is small behind it: `est`, `doubted`.

    `series` is the number of a colour (from 0): the text is the letter of one of several that are compared.
    """

    text: str
    style: Style = Style.PLAIN
    status: Status | None = None
    source: Footnote | None = None
    link: str | None = None  # a file beside the report, as a relative path, or `#anchor`
    mark: str = ""
    series: int | None = None


Text: TypeAlias = str | Span | tuple[str | Span, ...]


def spans(text: Text) -> tuple[Span, ...]:
    """Return the text as spans, without empty ones."""
    parts = text if isinstance(text, tuple) else (text,)
    made = (Span(part) if isinstance(part, str) else part for part in parts)
    return tuple(span for span in made if span.text)


def plain_text(text: Text) -> str:
    """Return the text alone."""
    return "".join(span.text for span in spans(text))


def joined(*texts: Text) -> tuple[Span, ...]:
    """Join several texts."""
    return tuple(span for text in texts for span in spans(text))


def between(separator: str, parts: Iterable[Text]) -> list[Text]:
    """Return the parts with a separator between each two."""
    return [piece for part in parts for piece in (separator, part)][1:]


def strong(text: str, status: Status | None = None) -> Span:
    """Return emphasised text."""
    return Span(text, Style.STRONG, status)


def soft(text: str) -> Span:
    """Return text of less weight."""
    return Span(text, Style.SOFT)


def code(text: str) -> Span:
    """Return a name as a program writes it."""
    return Span(text, Style.CODE)


def command(text: str) -> Span:
    """Return a line to type."""
    return Span(text, Style.COMMAND)


@dataclass(frozen=True)
class Label:
    """A status with its word: `✗ FAIL`."""

    status: Status
    word: str

    @property
    def span(self) -> Span:
        """Sign and word as one coloured span."""
        return Span(f"{self.status.sign} {self.word}".rstrip(), Style.STRONG, self.status)


class Block:
    """A part of a view."""

    def plain(self) -> Sequence[Block]:
        """Return the same in simpler blocks, for a format that does not know this one; basic blocks have none."""
        return ()


# ---------------------------------------------------------------- basic blocks, which every format knows


@dataclass(frozen=True)
class Paragraph(Block):
    """A sentence or several."""

    text: Text


@dataclass(frozen=True)
class ItemList(Block):
    """A list. A short screen shows the first `brief` items and how many more there are; None: all."""

    items: tuple[Text | Item, ...]
    ordered: bool = False
    brief: int | None = None


@dataclass(frozen=True)
class Item:
    """An item with lines of its own below; on a short screen with `brief`, where that is given."""

    text: Text
    below: tuple[Text, ...] = ()
    brief: tuple[Text, ...] | None = None
    place: Text = ""  # where that is, which stands in `below`, too


@dataclass(frozen=True)
class FieldList(Block):
    """Names and what they are: `Machine  AMD EPYC 9654, 8 cores`."""

    rows: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class TableColumn:
    """A column. `numeric` ones are aligned at the right; `kernel` ones hold C++ names, shortened by their parts.

    `wraps`: its texts go on below in their own column where a screen is too narrow, and the table stays in one piece.
    """

    title: str
    numeric: bool = False
    kernel: bool = False
    meaning: str = ""
    wraps: bool = False


@dataclass(frozen=True)
class DataTable(Block):
    """A table; the first column names the row. A short screen shows the first `brief` rows and counts the others."""

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Text, ...], ...]
    title: str = ""
    note: Text = ""
    brief: int | None = None
    left: int = 0  # rows that are in the JSON document alone
    anchor: str = ""  # begins the ids of its rows, where something of a page leads to them


class Fold(Enum):
    """Who sees the inside of a section."""

    OPEN = "open"  # everybody
    FOLDED = "folded"  # opens at a click; a short screen has its headline alone


@dataclass(frozen=True)
class Section(Block):
    """Blocks below a heading. `headline` says the most important of them in one sentence; `anchor` is for links.

    `repeats`: other blocks of the view say the same, so a format that can show nothing of its blocks leaves it out.
    """

    title: Text
    blocks: tuple[Block, ...]
    headline: Text = ""
    fold: Fold = Fold.OPEN
    anchor: str = ""
    repeats: bool = False


# ---------------------------------------------------------------- blocks that know what they are in basic ones


@dataclass(frozen=True)
class Detail(Block):
    """Blocks that a short screen leaves out, or shows as `brief`; as Markdown they are folded below a `title`."""

    blocks: tuple[Block, ...]
    brief: tuple[Block, ...] = ()
    title: str = ""

    def plain(self) -> Sequence[Block]:
        """Return all of them."""
        return self.blocks


@dataclass(frozen=True)
class PageOnly(Block):
    """Blocks that a page shows here; any other format has what they say at another place of the view."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class NotOnPage(Block):
    """Blocks that stand here in every format but a page, which has them further down, below its pictures."""

    blocks: tuple[Block, ...]

    def plain(self) -> Sequence[Block]:
        """Return all of them."""
        return self.blocks


@dataclass(frozen=True)
class StatusRow:
    """How one or several things stand that share a reason. `below` is what to try, or what else is known of it."""

    status: Status
    word: str
    names: tuple[str, ...]
    reason: Text
    value: Text = ""
    limit: str = ""
    place: str = ""
    below: tuple[Text, ...] = ()

    @property
    def label(self) -> Label:
        """Return the status with its word."""
        return Label(self.status, self.word)


@dataclass(frozen=True)
class Statuses(Block):
    """Verdicts, checks, outcomes: the worst first. `titles` name the columns name, limit, value and place."""

    rows: tuple[StatusRow, ...]
    titles: tuple[str, str, str, str] = ("target", "threshold", "value", "in")
    label: str = "verdict"
    below_title: str = "What to try"  # of what stands below the rows
    below_word: str = "try: "  # before each of these lines, where they have no title

    def plain(self) -> Sequence[Block]:
        """Return a table with the columns that hold anything, and below it what to try."""
        name, limit, value, place = self.titles
        columns: list[tuple[str, Callable[[StatusRow], Text]]] = [
            (self.label, lambda row: row.label.span),
            (place, lambda row: row.place),
            (name, lambda row: joined(*between(", ", map(code, row.names)))),
            (limit, lambda row: row.limit),
            (value, lambda row: row.value),
            ("why", lambda row: row.reason),
        ]
        used = [(title, cell) for title, cell in columns if any(plain_text(cell(row)) for row in self.rows)]
        rows = tuple(tuple(cell(row) for _, cell in used) for row in self.rows)
        table = DataTable(tuple(TableColumn(title) for title, _ in used), rows)
        lines: dict[tuple[str, ...], dict[Text, None]] = {}
        for row in self.rows:
            if row.below:
                lines.setdefault(row.names, {}).update(dict.fromkeys(row.below))
        tries = tuple(Item(", ".join(names), tuple(below)) for names, below in lines.items())
        if not tries:
            return (table,)
        if not self.below_title:
            return table, ItemList(tries)
        return table, Section(self.below_title, (ItemList(tries),), fold=Fold.FOLDED)


@dataclass(frozen=True)
class Commands(Block):
    """Lines to type."""

    lines: tuple[str, ...]

    def plain(self) -> Sequence[Block]:
        """Return a list of them."""
        return (ItemList(tuple(command(line) for line in self.lines)),)


# ---------------------------------------------------------------- the whole


@dataclass(frozen=True)
class View:
    """A result as it is shown. `label` is its verdict; `headline` are the lines below it, the reason first.

    `warning` stands above everything: what follows may not hold, or is not all of it. A short screen has no facts of
    `wide` labels, and a page has those of `below` further down. A page of it is at most `page_bytes` long.
    """

    title: Text
    blocks: tuple[Block, ...]
    label: Label | None = None
    headline: tuple[Text, ...] = ()
    facts: tuple[tuple[str, Text], ...] = ()
    wide: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    command: str = ""  # what was run
    warning: Text = ""
    page_bytes: int | None = None


def walk(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks and all inside of them."""
    for block in blocks:
        yield block
        if isinstance(block, Section | Detail | NotOnPage | PageOnly):
            yield from walk(block.blocks)


def table(
    titles: Sequence[str | TableColumn],
    rows: Sequence[Sequence[Text]],
    *,
    words: int = 1,
    title: str = "",
    note: Text = "",
    brief: int | None = None,
    left: int = 0,
) -> DataTable:
    """Return a table whose first `words` columns hold text and the others numbers, unless given as a column."""
    columns = tuple(
        TableColumn(name, numeric=place >= words) if isinstance(name, str) else name
        for place, name in enumerate(titles)
    )
    return DataTable(columns, tuple(map(tuple, rows)), title, note, brief, left)


def notes(lines: Sequence[Text], title: str = "Notes") -> tuple[Block, ...]:
    """Return a section of remarks; nothing where there are none."""
    return (Section(title, (ItemList(tuple(lines)),)),) if lines else ()

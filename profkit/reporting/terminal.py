"""Any view for the terminal: the title and what it comes to, then block by block. A short form fits two screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from profkit.reporting.charts.step_bar import StepBar
from profkit.reporting.screen import Part, Screen
from profkit.reporting.view import (
    Block,
    Commands,
    DataTable,
    Detail,
    FieldList,
    Fold,
    Item,
    ItemList,
    Paragraph,
    Section,
    Statuses,
    Style,
    Text,
    View,
    plain_text,
    spans,
)

_WEIGHTS = {Style.STRONG: "bold", Style.SOFT: "dim"}
_LABEL = 24  # columns that the names of facts take at most


ALL_BY_OPTION = "--format json has all of them"


def render(
    view: View,
    *,
    details: bool = True,
    color: bool | None = None,
    width: int | None = None,
    rest: str = ALL_BY_OPTION,
) -> str:
    """Return the view as text of at most `width` (80) columns; a line to type is not broken.

    Without `details` tables have their first rows, folded sections their headlines. `color` None: colour where
    standard output is a terminal and NO_COLOR is not set. `rest` says where the other rows of a shortened table are.
    """
    terminal = _Terminal(Screen(color, width), details=details, rest=rest)
    terminal.head(view)
    terminal.blocks(view.blocks)
    return terminal.screen.text()


def _parts(text: Text, weight: str = "") -> list[Part]:
    """Return the text for the screen; a colour needs no sign here, since signs are in the text."""
    parts: list[Part] = []
    for span in spans(text):
        colour = span.status.colour if span.status is not None else ""
        words = f"{span.text} ({span.mark})" if span.mark else span.text
        parts.append((words, " ".join(filter(None, (_WEIGHTS.get(span.style, weight), colour)))))
    return parts


@dataclass
class _Terminal:
    screen: Screen
    details: bool
    rest: str
    indent: int = 0
    _folded: list[Section] = field(default_factory=list)  # of which the short form has the headlines

    def head(self, view: View) -> None:
        """Add the verdict with its reason, if there is one; else the title."""
        headline = view.headline
        if view.warning:
            self.line(view.warning)
        if view.label is not None:
            reason = ["  ", *_parts(headline[0])] if headline else []
            self.screen.line(*_parts(view.label.span), *reason, hang=2)
            self.screen.line(*_parts(view.title, "dim"), hang=2)
            headline = headline[1:]
        else:
            self.screen.line(*_parts(view.title, "bold"), hang=2)
        if view.command:
            self.screen.line((f"$ {view.command}", "dim"), hang=2)
        for line in headline:
            self.line(line)
        facts = view.facts if self.details else tuple(fact for fact in view.facts if fact[0] not in view.wide)
        if facts:
            self.facts(FieldList(facts))
        if view.blocks and not isinstance(view.blocks[0], Section | Detail):
            self.screen.blank()

    def blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self.block(block)
        self._in_short()

    def block(self, block: Block) -> None:
        match block:
            case Section():
                self.section(block)
            case Detail():
                for part in block.blocks if self.details else block.brief:
                    self.block(part)
            case Paragraph():
                self.line(block.text)
            case ItemList():
                self.items(block)
            case FieldList():
                self.facts(block)
            case DataTable():
                self.table(block)
            case Statuses():
                self.statuses(block)
            case Commands():
                for text in block.lines:
                    self.screen.line(text, indent=self.indent, hang=2)
            case StepBar():
                for part in block.lines(self.screen.console.width - self.indent):
                    self.block(part)
            case _:
                for part in block.plain():
                    self.block(part)

    def shows(self, block: Block) -> bool:
        """Return whether anything of the block is on this screen."""
        match block:
            case Section():
                has_headline = bool(block.headline and not block.repeats)
                return has_headline or any(map(self.shows, block.blocks))
            case Detail():
                return any(map(self.shows, block.blocks if self.details else block.brief))
            case Paragraph() | ItemList() | FieldList() | DataTable():
                return True
        return any(map(self.shows, block.plain()))

    def section(self, section: Section) -> None:
        if not self.shows(section):
            return
        if section.fold is Fold.FOLDED and not self.details:
            self._folded += [section] if section.headline else []
            return
        self._in_short()
        if self.indent:
            self.screen.blank()
            self.screen.line((plain_text(section.title), "underline"), indent=self.indent)
        else:
            self.screen.heading(*_parts(section.title, "bold"))
        before, self.indent = self.indent, max(2, self.indent)
        if section.headline:
            self.line(section.headline)
        self.blocks(section.blocks)
        self.indent = before

    def _in_short(self) -> None:
        """Add the headlines of the folded sections that are next to each other."""
        sections, self._folded = self._folded, []
        if sections:
            if not self.indent:
                self.screen.heading("In short")
            facts = FieldList(tuple((plain_text(section.title), section.headline) for section in sections))
            self.facts(facts, indent=0 if self.indent else 2)

    def line(self, text: Text, weight: str = "", *, first: str = "", indent: int = 0, hang: int = 2) -> None:
        """Add a sentence; a command at its end goes below it, in one piece."""
        parts = list(spans(text))
        typed = parts.pop() if parts and parts[-1].style is Style.COMMAND else None
        at = self.indent + indent
        if typed is not None and not parts:
            self.screen.typed(first + typed.text, weight, at)
            return
        self.screen.line(first, *_parts(tuple(parts), weight), indent=at, hang=max(hang, len(first)))
        if typed is not None:
            self.screen.typed(typed.text, weight, at + 2)

    def items(self, items: ItemList) -> None:
        brief_items = items.items if self.details or items.brief is None else items.items[: items.brief]
        for number, item in enumerate(brief_items, 1):
            first = f"{number}. " if items.ordered else "- "
            known = item if isinstance(item, Item) else Item(item)
            self.line(known.text, first=first)
            for text in known.below if self.details or known.brief is None else known.brief:
                self.line(text, "dim", indent=len(first))
        self.count_left(len(items.items) - len(brief_items))

    def count_left(self, left: int) -> None:
        if left > 0:
            self.line(f"and {left} more: {self.rest}")

    def facts(self, facts: FieldList, indent: int = 0) -> None:
        width = min(_LABEL, max((len(name) for name, _ in facts.rows), default=0)) + 1
        for name, text in facts.rows:
            self.screen.labelled((name, "dim"), *_parts(text), width=width, indent=self.indent + indent)

    def table(self, table: DataTable) -> None:
        rows = table.rows if self.details or table.brief is None else table.rows[: table.brief]
        if table.title:
            self.screen.blank()
            self.screen.line((table.title, "underline"), indent=self.indent)
        self.screen.grid(table.columns, [[_parts(cell) for cell in row] for row in rows], self.indent)
        if table.note:
            self.line(table.note, "dim")
        self.count_left(len(table.rows) - len(rows) + table.left)

    def statuses(self, statuses: Statuses) -> None:
        """Add a label and a name in their columns, the reason next to them, and everything else below."""
        width = max((len(row.label.span.text) for row in statuses.rows), default=0)
        for row in statuses.rows:
            place = f"{row.place}: " if row.place else ""
            self.screen.labelled(
                *_parts(row.label.span),
                (", ".join(row.names), "bold"),
                "  " if row.names and (place or row.reason) else "",
                place,
                *_parts(row.reason),
                width=width,
                indent=self.indent,
            )
            for text in row.below:
                self.line(text, "dim", first=statuses.below_word, indent=width + 1)

"""Synthetic exports of xctrace: written as it writes them, for tests that need a table.

`export` makes the XML of one table out of plain cells, with ids and references as xctrace sets them: every element that
is said for the first time gets the next number, every later one that is equal refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

EMPTY = b'<?xml version="1.0"?>\n<trace-query-result>\n</trace-query-result>'  # what nothing matched


@dataclass(frozen=True)
class Spec:
    """One element: tag, text, what is shown for it (None: nothing), other attributes, and the elements in it."""

    tag: str
    text: str = ""
    fmt: str | None = None
    parts: tuple[Spec | None, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()


def number(tag: str, value: float, fmt: str | None = None) -> Spec:
    return Spec(tag, str(value), str(value) if fmt is None else fmt)


def text(tag: str, value: str) -> Spec:
    return Spec(tag, value, value)


def time(ns: int, tag: str = "start-time") -> Spec:
    return Spec(
        tag, str(ns), f"{ns // 60_000_000_000:02}:{ns // 1_000_000_000 % 60:02}.{ns // 1_000_000 % 1000:03}"
    )


def duration(ns: int) -> Spec:
    return Spec("duration", str(ns), f"{ns / 1000:.2f} µs")


def process(name: str, pid: int) -> Spec:
    parts = (number("pid", pid), text("device-session", "TODO"))  # so Instruments itself writes it
    return Spec("process", "", f"{name} ({pid})", parts)


def thread(name: str, tid: int, owner: Spec) -> Spec:
    shown, _, pid = (owner.fmt or "").rpartition(" ")
    return Spec(
        "thread", "", f"{name} {tid:#x} ({shown}, pid: {pid[1:-1]})", (number("tid", tid, hex(tid)), owner)
    )


def label(*parts: Spec | None) -> Spec:
    return Spec("formatted-label", "", " ".join("" if p is None else p.fmt or p.text for p in parts), parts)


class Numbering:
    """Ids as xctrace gives them."""

    def __init__(self) -> None:
        self.known: dict[Spec, int] = {}
        self.last = 0

    def write(self, spec: Spec | None) -> str:
        if spec is None:
            return "<sentinel/>"
        if spec in self.known:
            return f'<{spec.tag} ref="{self.known[spec]}"/>'
        self.last += 1
        self.known[spec] = number = self.last
        shown = "" if spec.fmt is None else f" fmt={_quoted(spec.fmt)}"
        others = "".join(f" {name}={_quoted(value)}" for name, value in spec.attributes)
        inside = escape(spec.text) + "".join(self.write(part) for part in spec.parts)
        end = f">{inside}</{spec.tag}>" if inside or spec.fmt is not None else "/>"
        return f'<{spec.tag} id="{number}"{shown}{others}{end}'


def _quoted(value: str) -> str:
    return '"' + quoteattr(value + "'")[1:-2].replace("&quot;", '"').replace('"', "&quot;") + '"'


def node(
    schema: str | None,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[Spec | None]],
    *,
    numbering: Numbering | None = None,
    run: int = 1,
    position: int = 1,
    indent: str = "",
) -> str:
    """One table; `columns` are mnemonics with their engineering types, `schema` None leaves that out."""
    numbering = numbering or Numbering()
    heads = "".join(
        f"<col><mnemonic>{escape(m)}</mnemonic><name>{escape(m.title())}</name>"
        f"<engineering-type>{escape(t)}</engineering-type></col>"
        for m, t in columns
    )
    begin = f"<node xpath='//trace-toc[1]/run[{run}]/data[1]/table[{position}]'>"
    head = "" if schema is None else f"<schema name={_quoted(schema)}>{heads}</schema>"
    body = "\n".join(
        f"{indent}<row>{indent}" + indent.join(numbering.write(cell) for cell in row) + "</row>"
        for row in rows
    )
    return f"{begin}{head}{body}\n</node>"


def export(*nodes: str) -> bytes:
    """The file that these tables are."""
    return f'<?xml version="1.0"?>\n<trace-query-result>\n{"".join(nodes)}</trace-query-result>\n'.encode()

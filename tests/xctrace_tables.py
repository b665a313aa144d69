"""Synthetic exports of xctrace: written as it writes them, for tests that need a table, and grown to any size.

`export` makes the XML of one table out of plain cells, with ids and references as xctrace sets them: every element that
is said for the first time gets the next number, every later one that is equal refers to it. `grow` repeats the rows of
a recorded table, later and later, until it has a size; `counters` is a dense table of GPU counters by the real schema,
of which no rows could be had.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

EMPTY = b'<?xml version="1.0"?>\n<trace-query-result>\n</trace-query-result>'  # what nothing matched
TIMES = frozenset(("start-time", "sample-time", "event-time"))


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


def specs(path: Path) -> tuple[str, list[tuple[str, str]], list[list[Spec | None]]]:
    """Schema, columns and rows of a recorded table, its references followed."""
    root = ElementTree.parse(path).getroot()
    schema = root.find("node/schema")
    assert schema is not None
    columns = [
        (col.findtext("mnemonic", ""), col.findtext("engineering-type", "")) for col in schema.iter("col")
    ]
    known: dict[str, Spec] = {}

    def spec(element: ElementTree.Element) -> Spec | None:
        if element.tag == "sentinel":
            return None
        if "ref" in element.attrib:
            return known[element.attrib["ref"]]
        parts = tuple(spec(part) for part in element)
        others = tuple((k, v) for k, v in element.attrib.items() if k not in ("id", "fmt"))
        made = Spec(element.tag, element.text or "", element.get("fmt"), parts, others)
        if "id" in element.attrib:
            known[element.attrib["id"]] = made
        return made

    return schema.get("name", ""), columns, [[spec(cell) for cell in row] for row in root.iter("row")]


def grow(source: Path, target: Path, size: int) -> int:
    """Write the rows of a recorded table again and again, each time later, until there are `size` bytes; the rows."""
    schema, columns, rows = specs(source)
    times = [int(c.text) for row in rows for c in row if c is not None and c.tag in TIMES]
    span = max(times) - min(times) + 1_000_000
    numbering = Numbering()
    whole = node(schema, columns, rows, numbering=numbering)
    # From the second time on all is known but the times, so a row is a text with some of them in it.
    again = [[c if c is not None and c.tag in TIMES else numbering.write(c) for c in row] for row in rows]
    count, written = len(rows), 0
    with target.open("w", encoding="utf-8") as file:
        written += file.write('<?xml version="1.0"?>\n<trace-query-result>\n' + whole[: -len("</node>")])
        last, later = numbering.last, 0
        while written < size:
            later += span
            for row in again:
                cells = []
                for cell in row:
                    if isinstance(cell, Spec):
                        last += 1
                        new = time(int(cell.text) + later, cell.tag)
                        cells.append(f'<{new.tag} id="{last}" fmt="{new.fmt}">{new.text}</{new.tag}>')
                    else:
                        cells.append(cell)
                written += file.write(f"<row>{''.join(cells)}</row>\n")
            count += len(again)
        file.write("</node></trace-query-result>\n")
    return count


COUNTER_COLUMNS = (
    ("start", "start-time"),
    ("duration", "duration"),
    ("counter-id", "uint32"),
    ("name", "gpu-counter-name"),
    ("label", "formatted-label"),
    ("value", "fixed-decimal"),
    ("percent-value", "percent"),
    ("color", "uint32"),
    ("gpu", "metal-device-name"),
    ("group-index", "uint32"),
    ("is-percentage", "boolean"),
    ("ring-buffer-index", "uint32"),
)
# Name, and where about half, 90 %, 99 % and all of the samples lie, in percent: most of the time a GPU does little.
COUNTERS = (
    ("ALU Limiter", 0.02, 0.03, 7.3, 93.0),
    ("ALU Utilization", 0.02, 0.03, 6.6, 81.0),
    ("Buffer Read Limiter", 0.0, 0.0, 0.04, 1.0),
    ("Compute Occupancy", 0.02, 0.03, 0.05, 97.0),
    ("F32 Utilization", 0.0, 0.0, 1.4, 77.0),
    ("Fragment Occupancy", 0.0, 0.0, 20.0, 100.0),
    ("GPU Read Bandwidth", 0.02, 0.02, 2.0, 34.0),
    ("GPU Write Bandwidth", 0.05, 0.05, 2.0, 26.0),
    ("LLC Limiter", 0.1, 0.1, 4.6, 45.0),
    ("MMU Limiter", 0.03, 0.03, 2.6, 28.0),
    ("Top Performance Limiter", 0.1, 0.1, 20.0, 100.0),
    ("Total Occupancy", 0.03, 0.03, 32.0, 100.0),
)


def counter_rows(samples: int, *, every: int = 41_666, seed: int = 1) -> Iterator[list[Spec | None]]:
    """So many samples of each counter, one after the other in time, as a table of intervals has them."""
    chance = random.Random(seed)
    for sample in range(samples):
        at = 500_000_000 + sample * every
        for number_of, (name, *marks) in enumerate(COUNTERS):
            draw = chance.random()
            edges = zip((0.0, 0.5, 0.9, 0.99), (0.5, 0.9, 0.99, 1.0), (0.0, *marks[:3]), marks, strict=True)
            share = next(
                a + (b - a) * (draw - low) / (high - low) for low, high, a, b in edges if draw < high
            )
            share = round(share, 3)
            shown = text("string", f"{share:.2f}%")
            yield [
                time(at),
                duration(every - sample % 3),
                number("uint32", number_of),
                text("gpu-counter-name", name),
                label(text("string", name), shown),
                number("fixed-decimal", share),
                number("percent", share, f"{share:.2f}%"),
                number("uint32", number_of),
                text("metal-device-name", "M1"),
                number("uint32", 0),
                number("boolean", 1, "Yes"),
                number("uint32", sample % 8),
            ]


def counters(target: Path, size: int) -> int:
    """Write a dense table of GPU counters of about `size` bytes; the rows. Ids of values are kept for a while only."""
    numbering, count, written = Numbering(), 0, 0
    with target.open("w", encoding="utf-8") as file:
        head = node("metal-gpu-counter-intervals", COUNTER_COLUMNS, ())
        written += file.write('<?xml version="1.0"?>\n<trace-query-result>\n' + head[: -len("\n</node>")])
        for row in counter_rows(1 << 40):
            written += file.write(f"<row>{''.join(map(numbering.write, row))}</row>\n")
            count += 1
            if len(numbering.known) > 300_000:
                numbering.known.clear()
            if written >= size and count % len(COUNTERS) == 0:
                break
        file.write("</node></trace-query-result>\n")
    return count

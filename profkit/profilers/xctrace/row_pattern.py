"""A row of a table as one regular expression: what xctrace writes for columns of these types, and nothing else.

What it does not fit is read element by element instead, so it may be strict: no attributes but `id`, `ref` and `fmt`,
no control characters that XML would change, a cell ends at the first end tag of its own name. It is only held against
text that expat has found to be well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from profkit.profilers.xctrace.cells import DECIMALS, INTEGERS, LISTS, STRUCTURES
from profkit.profilers.xctrace.table import Column

# What is taken of a cell: the number in it, its text with `fmt`, or the whole element.
Kind = Literal["number", "text", "whole"]

_FMT = rb'(?: fmt="[^"<\r\n\t]*")?'
_TAG = re.compile(r"[A-Za-z_][\w.-]*")
ANY = "any"  # the declared type of a column whose cells have various tags


@dataclass(frozen=True)
class RowPattern:
    """`pattern` matches one row; `groups` are, for each wanted column, the places of what was found of it (from 0)."""

    pattern: re.Pattern[bytes]
    groups: Mapping[int, tuple[int, ...]]


def kind_of(column: Column, *, parts: bool) -> Kind:
    """What is to be taken of the cells of a column; `parts`: what is in them is wanted, too."""
    if parts or column.type == ANY or column.type in STRUCTURES:
        return "whole"
    return "number" if column.type in INTEGERS or column.type in DECIMALS or column.type in LISTS else "text"


def row_pattern(columns: Sequence[Column], wanted: Mapping[int, Kind]) -> RowPattern | None:
    """The expression for rows of these columns; None where a type is no name of an element."""
    pieces = [rb"<row>\s*"]
    groups: dict[int, tuple[int, ...]] = {}
    count = 0
    for place, column in enumerate(columns):
        if _TAG.fullmatch(column.type) is None:
            return None
        kind, free = wanted.get(place), column.type == ANY
        tag = b"[A-Za-z_][A-Za-z0-9_.-]*" if free else re.escape(column.type.encode())
        if kind is not None:
            # of a free tag, the tag itself is a group, too: between the element and its id
            last = count + (3 if free else 2)
            groups[place] = (count, count + 1) if kind == "number" else (count, count + 1, last)
        count += (0 if kind is None else len(groups[place])) + free
        pieces.append(rb"(?:" + _cell(tag, kind, free, place) + rb"|<sentinel/>)\s*")
    pieces.append(rb"</row>")
    return RowPattern(re.compile(b"".join(pieces)), groups)


def _cell(tag: bytes, kind: Kind | None, free: bool, place: int) -> bytes:
    """One cell, in groups. Number: id or ref, text; text: id or ref, fmt, ">" and content; whole: ref, element, id."""
    begin, end = tag, tag
    if free:  # any tag, but the same at both ends
        begin, end = b"(?P<t%d>%s)" % (place, tag), b"(?P=t%d)" % place
    inside = rb"[^<]*(?:<(?!/" + end + rb">)[^<]*)*"
    if kind is None:
        return (
            rb"<"
            + begin
            + rb' (?:ref="\d+"/>|id="\d+"'
            + _FMT
            + rb"(?:/>|>"
            + inside
            + rb"</"
            + end
            + rb">))"
        )
    if kind == "number":
        return rb"<" + begin + rb' (?:id|ref)="(\d+)"' + _FMT + rb"(?:/>|>([^<\r]*)</" + end + rb">)"
    if kind == "text":
        fmt = rb'(?: fmt="([^"<\r\n\t]*)")?'
        return rb"<" + begin + rb' (?:id|ref)="(\d+)"' + fmt + rb"(?:/>|(>" + inside + rb")</" + end + rb">)"
    attributes = rb'(?: [A-Za-z_][\w.-]*="[^"<]*")*'
    body = rb"(?:/>|>" + inside + rb"</" + end + rb">)"
    return rb"(?:<" + tag + rb' ref="(\d+)"/>|(<' + begin + rb' id="(\d+)"' + attributes + body + rb"))"

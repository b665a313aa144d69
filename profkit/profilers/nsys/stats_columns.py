"""The tables of `nsys stats` as printed for the eye: columns under a rule of dashes, digits in groups of three."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RULE = re.compile(r"^\s*-{3,}(?:\s+-{3,})+\s*$")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d*)?$")  # 27,216,868.0
_DECIMAL_COMMA = re.compile(r"\d{1,3},\d+$")  # 33,0 % in a locale that groups with points


@dataclass(frozen=True)
class Layout:
    """From where to where each column goes, by the dashes under its header."""

    spans: tuple[tuple[int, int], ...]

    def cells(self, line: str) -> list[str] | None:
        """The cells of a line; None where it is no row of this table. Of the last column there may be more."""
        line = line.rstrip("\r\n")
        edges = [end for _, end in self.spans[:-1]]
        if all(not line[end : end + 1].strip() for end in edges):
            starts = [0, *edges]
            return [line[a:b].strip() for a, b in zip(starts, [*edges, len(line)], strict=True)]
        cells = re.split(r"\s{2,}", line.strip(), maxsplit=len(self.spans) - 1)
        return cells if len(cells) == len(self.spans) else None


def layout(line: str) -> Layout | None:
    """The layout that a rule of dashes tells; None of any other line."""
    if "---" not in line or len(line) > 1 << 16 or _RULE.match(line) is None:
        return None
    return Layout(tuple(match.span() for match in re.finditer("-+", line)))


def has_decimal_comma(share: str) -> bool:
    """Whether a percentage is written as `33,0`: then points are what groups digits."""
    return _DECIMAL_COMMA.match(share) is not None


def ungrouped(cell: str, *, comma: bool) -> str:
    """A number without what groups its digits, and with a decimal point; any other text as it is."""
    if comma and re.fullmatch(r"[\d.]+(?:,\d+)?", cell):
        return cell.replace(".", "").replace(",", ".")
    return cell.replace(",", "") if _GROUPED.match(cell) else cell

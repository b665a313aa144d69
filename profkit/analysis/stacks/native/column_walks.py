"""Loops of C, C++ and Rust that go down the columns of a matrix which lies in memory by rows, as their text says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from profkit.core.types import Construct

MAX_ABOVE = 40  # lines, to the head of the outermost loop
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_HEAD = re.compile(r"\s*(?:\}\s*)?for\s*(?:\(\s*(?:[\w:<>]+\s+)*(?P<c>\w+)\s*=|(?P<rust>\w+)\s+in\b)")
_NAME = re.compile(r"\b\w+\b")
# A name that is given a value where it is declared, in C, C++ and Rust.
_GIVEN = re.compile(r"\s*(?:(?:const|let)\s+)*(?:[\w:<>]+\s+)?(\w+)\s*(?::\s*\w+\s*)?=(?!=)\s*([^;]+);\s*$")
_INDEXED = re.compile(r"([A-Za-z_]\w*)\s*\[")


def column_walks_at(lines: Sequence[str], number: int) -> Iterator[Construct]:
    """Yield each array of line `number` whose index moves by a row in the inner loop and by an element in an outer one.

    >>> text = ["for (int x = 0; x < w; x++)", "  for (int y = 0; y < h; y++)", "    s += a[y * w + x];"]
    >>> list(column_walks_at(text, 3))
    [Construct(kind='column-walk', name='a', how='x y')]
    """
    loops = _loops_around(lines, number - 1)
    if len(loops) < 2:
        return
    named = _named_indices(lines, number - 1, loops[-1])
    arrays = list(_indices(_COMMENT.sub("", lines[number - 1]), named))
    for name, rows, elements in arrays:
        order = [loop for loop in loops if loop in rows | elements]
        inner = [loop for loop in order[1:] if loop in rows]
        if order and order[0] in elements - rows and inner and not set(order[1:]) & elements:
            # With the loops exchanged it is the other array that is walked down its columns.
            turned = any(order[0] in down - along and inner[0] in along - down for _, down, along in arrays)
            kind = (" blocked" if _is_blocked(lines, number - 1, loops) else " turned") if turned else ""
            yield Construct("column-walk", name, f"{order[0]} {inner[0]}{kind}")
            return


def _is_blocked(lines: Sequence[str], at: int, loops: Sequence[str]) -> bool:
    """Return whether a loop around a line begins where an outer one stands, and ends a few steps behind it."""
    heads = (_HEAD.match(line) for line in lines[max(0, at - MAX_ABOVE) : at + 1])
    starts = (
        re.match(r"\s*(\w+)\b", head.string[head.end() :].removeprefix("("))
        for head in heads
        if head is not None and (head["c"] or head["rust"]) in loops
    )
    return any(start is not None and start[1] in loops for start in starts)


def _loops_around(lines: Sequence[str], at: int) -> list[str]:
    """Return the variables of the loops around a line, the outermost first; nesting is inferred from indentation."""
    depth, found = _indentation(lines[at]), []
    own = _HEAD.match(lines[at])
    if own is not None:
        found.append(own["c"] or own["rust"])
    for line in reversed(lines[max(0, at - MAX_ABOVE) : at]):
        if not line.strip() or _indentation(line) >= depth:
            continue
        depth = _indentation(line)
        head = _HEAD.match(line)
        if head is not None:
            found.append(head["c"] or head["rust"])
    return found[::-1]


def _indentation(line: str) -> int:
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())


def _named_indices(lines: Sequence[str], at: int, inner: str) -> dict[str, str]:
    """Return what names are given in the body of the inner loop around a line: `size_t at = row * W + col;`.

    A name that is given something twice there is left out.
    """
    found: dict[str, str] = {}
    twice: set[str] = set()
    for line in reversed(lines[max(0, at - MAX_ABOVE) : at]):
        given = _GIVEN.match(_COMMENT.sub("", line))
        if given is not None:
            twice |= {given[1]} & set(found)
            found[given[1]] = given[2]
        head = _HEAD.match(line)
        if head is not None and inner in (head["c"], head["rust"]):
            break
    return {name: text for name, text in found.items() if name not in twice}


def _indices(line: str, named: Mapping[str, str]) -> Iterator[tuple[str, set[str], set[str]]]:
    """Yield each array of a line, with the names that move its index by rows, and those that move it by elements.

    `named`: what a name in an index stands for.
    """
    for match in _INDEXED.finditer(line):
        inside, end = _bracketed(line, match.end())
        if line[end : end + 1] == "[":  # rows[y][x]
            yield match[1], set(_NAME.findall(inside)), set(_NAME.findall(_bracketed(line, end + 1)[0]))
            continue
        terms = [part for term in _terms(inside) for part in _terms(named.get(term.strip(), term))]
        rows = {name for term in terms if "*" in term for name in _NAME.findall(term)}
        yield match[1], rows, {name for term in terms if "*" not in term for name in _NAME.findall(term)}


def _bracketed(line: str, start: int) -> tuple[str, int]:
    """Return the text from a position to the bracket that ends it, and the position behind that."""
    depth = 1
    for at in range(start, len(line)):
        depth += (line[at] == "[") - (line[at] == "]")
        if depth == 0:
            return line[start:at], at + 1
    return line[start:], len(line)


def _terms(text: str) -> list[str]:
    """Return the terms of a sum that stand outside of all parentheses."""
    depth, terms = 0, [""]
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter in "+-" and depth == 0:
            terms.append("")
        else:
            terms[-1] += letter
    return terms

"""Loops of C++ and Rust that sleep and look again, by their text.

Only clear cases count: nothing but locks, tests and the sleep is in the loop, so that it does no work at
a pace, and its test depends on something other than the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_LINES = 12  # of a loop
_COMMENT = re.compile(r"\s*(//.*|/\*.*\*/)?\s*$")
_SLEEPS = re.compile(r"\b\w*sleep\w*\s*\(")
_WHILE = re.compile(r"\s*(?:\}\s*)?while\b\s*(.+?)\s*\{?\s*;?\s*$")
_ENDLESS = re.compile(r"\s*(?:loop|for\s*\(\s*;\s*;\s*\)|while\s*\(?\s*(?:true|1)\s*\)?)\s*\{?\s*$")
_DO = re.compile(r"\s*do\s*\{?\s*$")
_LEAVES = re.compile(r"\b(break|return)\b")
_LOOKS = re.compile(
    r"\s*(?:[{}\s]+"
    r"|[\w.\->]*\b(?:un)?lock(?:_shared)?\(\);"
    r"|pthread_mutex_(?:un)?lock\(.*\);"
    r"|drop\(\w+\);"
    r"|(?:const\s+)?std::(?:lock_guard|unique_lock|scoped_lock|shared_lock)\b.*;"
    r"|let (?:mut )?\w+ = [\w.&:]+\.(?:lock|read|load|try_lock|try_recv)\([^()]*\)(?:\.\w+\(\))?;"
    r"|\}?\s*(?:else\s*)?if\b[^;{}]*[{)]?"
    r"|(?:\}?\s*if\b[^;{}]*[\s{)])?\s*(?:break|continue|return\b[^;()]*);?\s*\}?"
    r")\s*(?://.*)?$"
)
_OF_TIME = re.compile(r"now\b|clock|elapsed|deadline|\btime\b|timeout|until", re.IGNORECASE)
_COUNTS = re.compile(r"\+\+|--|[+-]=")


def looks_again(lines: Sequence[str], number: int) -> bool:
    """Return whether the sleep in line `number` is in a loop that only sleeps and looks whether something has happened.

    >>> looks_again(["while (queue.full()) {", "    usleep(1000);", "}"], 2)
    True
    >>> looks_again(["while (running) {", "    draw();", "    usleep(16000);", "}"], 3)
    False
    >>> looks_again(["while (clock::now() < next) {", "    usleep(100);", "}"], 2)
    False
    """
    at = number - 1
    if not 0 <= at < len(lines) or not _SLEEPS.search(lines[at]):
        return False
    own = re.match(r"\s*while\s*\((.+?)\)\s*\{?\s*[\w:]*sleep\w*\s*\(.*\);\s*\}?\s*$", lines[at])
    if own is not None:
        return _asks(own[1])
    first = _edge(lines, at, -1)
    if first is None:
        return False
    last = _edge(lines, at, 1)
    inside = lines[first + 1 : (last if last is not None else at) + 1]
    head = lines[first]
    if _ENDLESS.match(head):
        tests = [line_inside for line_inside in inside if re.search(r"\bif\b", line_inside)]
        leaves = any(_LEAVES.search(line_inside) for line_inside in inside)
        return last is not None and leaves and any(_asks(line_inside) for line_inside in tests)
    if _DO.match(head):
        end = _WHILE.match(lines[last]) if last is not None else None
        return end is not None and _asks(end[1])
    test = _WHILE.match(head)
    return last is not None and test is not None and _asks(test[1])


def _edge(lines: Sequence[str], at: int, step: int) -> int | None:
    """Return the line of the loop's head above a line, or that of its end below; None where the loop does
    something else.
    """
    depth = 0
    for number in range(at + step, at + step * (MAX_LINES + 1), step):
        if not 0 <= number < len(lines):
            return None
        line = lines[number]
        if step < 0 and (_ENDLESS.match(line) or _DO.match(line) or (_WHILE.match(line) and "}" not in line)):
            return number
        if step > 0:
            depth += line.count("{") - line.count("}")
            if depth < 0:
                return number
        if not (_COMMENT.match(line) or _LOOKS.match(line)):
            return None
    return None


def _asks(test: str) -> bool:
    """Return whether a loop's test waits for something that another thread does: not for the time alone,
    and it counts nothing.
    """
    parts = re.split(r"&&|\|\|", test)
    return not _COUNTS.search(test) and not _SLEEPS.search(test) and not all(map(_OF_TIME.search, parts))

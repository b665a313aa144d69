"""No regular expression of the package tries exponentially many ways to match: symbols of C++ are long."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import profkit

PACKAGE = Path(profkit.__file__).parent
MATCHERS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
SECONDS = 5.0  # for one text of some hundred characters: ten thousand times what the slowest pattern takes

SYMBOL = "_ZN" + "3c1012function_refIFvPPcPKlllEE11callback_fnIZN2at18" * 8
PARTS = (
    "a", "1", "a1", "<", "(", "()", "a::", "a<b, ", " a", "\t \n", ", ", "a.b_c1$", "x = y, ", "[1, 2] x ", "/a/b-c.d",
    "0x1f ", "a=b;", '"a\\"', "'", "--a ", "%s{}", "1.5e3 %,",
)  # fmt: skip
TEXTS = (SYMBOL + "!", "<" * 60 + ">" * 60 + "!", *(part * (130 // len(part)) + "\0" for part in PARTS))


def patterns() -> Iterator[tuple[str, str | bytes]]:
    """Yield each literal pattern of the package, with its file and line."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if not (
                isinstance(node, ast.Call)
                and isinstance(called, ast.Attribute)
                and isinstance(called.value, ast.Name)
                and called.value.id == "re"
                and called.attr in MATCHERS
                and isinstance(node.args[0], ast.Constant)
            ):
                continue
            pattern = node.args[0].value
            assert isinstance(pattern, (str, bytes))
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}", pattern


class SlowPatternError(Exception):
    """A match took too long."""


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise SlowPatternError


def is_slow(pattern: str | bytes, text: str, seconds: float = SECONDS) -> bool:
    """Return whether a match from the text's beginning does not end in time."""
    compiled: re.Pattern[Any] = re.compile(pattern)
    subject: Any = text.encode() if isinstance(pattern, bytes) else text
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        compiled.fullmatch(subject)
    except SlowPatternError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    return False


@pytest.mark.thorough
def test_no_pattern_needs_exponential_time() -> None:
    found = dict(patterns())
    assert len(found) > 300
    slow = [
        (place, pattern, text[:20])
        for place, pattern in found.items()
        for text in TEXTS
        if is_slow(pattern, text)
    ]
    assert slow == []


def test_a_pattern_that_divides_a_symbol_in_all_ways_is_found() -> None:
    divides = r"_ZN((?:\d+[\w.$]+?)+)17h[0-9a-f]{16}E\b.*"
    assert any(is_slow(divides, text, 0.3) for text in TEXTS)

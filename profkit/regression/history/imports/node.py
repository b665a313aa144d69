"""Somebody's parsed JSON, taken apart with care: each step says where it is, and takes nothing for what it is not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from profkit.core.codec import valid_text
from profkit.core.errors import UnreadableReport

SIZE_LIMIT = 200 << 20  # bytes; raw samples of a thousand benchmarks are some MB
LONGEST_NAME = 4096  # characters


class Node:
    """A value and its place. What is absent, null, NaN or of another type reads as nothing."""

    def __init__(self, data: object, place: str = "") -> None:
        self.data = data
        self.place = place

    def at(self, name: str) -> Node:
        """The field of an object; a node of nothing where there is none."""
        inner = self.data.get(name) if isinstance(self.data, dict) else None
        return Node(inner, f"{self.place}.{name}" if self.place else name)

    def items(self) -> Iterator[Node]:
        """The elements of a list; none where it is no list."""
        for index, inner in enumerate(self.data if isinstance(self.data, list) else ()):
            yield Node(inner, f"{self.place}[{index}]")

    def fields(self) -> Iterator[tuple[str, Node]]:
        """The fields of an object; none where it is no object."""
        if isinstance(self.data, dict):
            for name in self.data:
                yield valid_text(str(name))[:LONGEST_NAME], self.at(name)

    def text(self) -> str | None:
        """A text that is not empty."""
        data = self.data
        return valid_text(data)[:LONGEST_NAME] if isinstance(data, str) and data else None

    def words(self) -> str | None:
        """A text, or a number as text."""
        if isinstance(self.data, bool) or not isinstance(self.data, (int, float)):
            return self.text()
        return str(self.data)[:LONGEST_NAME]

    def number(self) -> float | None:
        """A finite number; also one that is written as text, as nvbench does."""
        data = self.data
        if isinstance(data, bool) or not isinstance(data, (int, float, str)):
            return None
        try:
            value = float(data)
        except (ValueError, OverflowError):
            return None
        return value if math.isfinite(value) else None

    def truth(self) -> bool | None:
        """True or false."""
        return self.data if isinstance(self.data, bool) else None

    def numbers(self) -> tuple[float, ...]:
        """The finite numbers of a list."""
        found = (inner.number() for inner in self.items())
        return tuple(value for value in found if value is not None)


def load(path: Path) -> Node:
    """The JSON at `path`. Raises UnreadableReport for what is none, and for what is larger than any result."""
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise UnreadableReport(f"{path} is larger than any benchmark's result ({SIZE_LIMIT >> 20} MiB)")
        text = path.read_bytes().decode("utf-8-sig")
        return Node(json.loads(text))
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnreadableReport(f"{path} is not UTF-8 text, so no JSON") from error
    except RecursionError as error:
        raise UnreadableReport(f"{path} is nested too deeply to be a benchmark's result") from error
    except ValueError as error:
        raise UnreadableReport(f"{path} is not whole JSON ({error})") from error

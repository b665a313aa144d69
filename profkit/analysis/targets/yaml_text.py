"""YAML as nodes with their lines, so that a fault can be said with the place where it stands.

Only plain data: no tags, no aliases (a few nested ones are a gigabyte when unfolded), a limit on the size.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded

SIZE_LIMIT = 1 << 20  # bytes; the built-in targets take 7 KB
MOST_DEPTH = 20  # theirs are 5 deep


@dataclass(frozen=True)
class YamlValue:
    """A scalar, a list of values or a mapping of values by text, with its line (from 1) in `file`."""

    content: bool | int | float | str | list[YamlValue] | dict[str, YamlValue] | None
    line: int
    file: str

    def refuse(self, message: str, fix: str | None = None) -> NoReturn:
        """Raise UsageError with the place."""
        raise UsageError(f"{self.file}, line {self.line}: {message}", fix)

    def mapping(self, what: str, allowed: Sequence[str] | None = None) -> dict[str, YamlValue]:
        """The content as a mapping with such keys; an empty file or value is an empty one."""
        content = {} if self.content is None else self.content
        if not isinstance(content, dict):
            self.refuse(f"{what} must be a mapping", "key: value")
        for key, item in content.items():
            if allowed is not None and key not in allowed:
                close = difflib.get_close_matches(key, allowed, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                item.refuse(f"{what} has no key {key!r}{hint}", f"one of: {', '.join(allowed)}")
        return content

    def items(self, what: str) -> list[YamlValue]:
        """The content as a list; a single value is a list of one."""
        if self.content is None:
            return []
        if isinstance(self.content, dict):
            self.refuse(f"{what} must be a list", "[...]")
        return self.content if isinstance(self.content, list) else [self]

    def text(self, what: str) -> str:
        """The content as text."""
        if not isinstance(self.content, str):
            self.refuse(f"{what} must be text", 'write it in quotes: "..."')
        return self.content

    def number(self, what: str) -> float:
        """The content as a finite number."""
        value = self.content
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what} must be a number", "a number without quotes, such as 2.5")
        if not abs(value) < 1e300:  # nor is NaN
            self.refuse(f"{what} must be a finite number", "a number such as 2.5")
        return float(value)

    def flag(self, what: str) -> bool:
        """true or false. Raises UsageError for anything else."""
        if not isinstance(self.content, bool):
            self.refuse(f"{what} must be true or false", "true")
        return self.content

    def one_of(self, what: str, words: tuple[str, ...]) -> str:
        """The content as one of `words`."""
        word = self.text(what)
        if word not in words:
            self.refuse(f"{what} is {word!r}, not {' or '.join(words)}", words[0])
        return word


def read_yaml(path: Path) -> YamlValue:
    """The content of a YAML file. Raises UsageError, with the line, for what is no document of plain data."""
    try:
        text = read_bounded(path, SIZE_LIMIT).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: not UTF-8 text", "save it as UTF-8") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, file: str) -> YamlValue:
    """As read_yaml, of a text; `file` is what it is called in messages."""
    import yaml  # here: it costs 10 ms that `profkit --help` need not pay

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:  # before anything recurses: libyaml's own recursion ends in a crash
                raise UsageError(
                    f"{file}, line {_line(event)}: nested too deeply", f"at most {MOST_DEPTH} levels"
                )
            if isinstance(event, yaml.AliasEvent):
                raise UsageError(
                    f"{file}, line {_line(event)}: aliases (*name) are not allowed",
                    "write out what it stands for",
                )
        node = yaml.compose(text, Loader=loader)
        if node is None:
            return YamlValue(None, 1, file)
        return _value(node, file, yaml)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        tabbed = "cannot start any token" in problem and "\t" in text
        fix = "indent with spaces: YAML knows no tabs" if tabbed else "see this line, and the one above it"
        raise UsageError(
            f"{file}{place}: no YAML: {problem}", fix if place else "save it as plain text"
        ) from error


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _value(node: Any, file: str, yaml: Any) -> YamlValue:
    line = _line(node)
    here = YamlValue(None, line, file)
    if isinstance(node, yaml.SequenceNode):
        return YamlValue([_value(item, file, yaml) for item in node.value], line, file)
    if isinstance(node, yaml.MappingNode):
        items: dict[str, YamlValue] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                here.refuse("a key must be text", "key: value")
            if key in items:
                YamlValue(None, _line(key_node), file).refuse(
                    f"{key!r} stands here a second time", "keep one of the two"
                )
            items[key] = _value(value_node, file, yaml)
        return YamlValue(items, line, file)
    try:
        content = yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError):
        here.refuse(f"{node.value[:40]!r} is no plain value", 'as text, in quotes: "..."')
    if content is not None and not isinstance(content, (bool, int, float, str)):
        content = node.value  # a date is text here
    return YamlValue(content, line, file)

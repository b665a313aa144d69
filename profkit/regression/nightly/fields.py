"""The keys of one mapping in the file, each read once and by its type; an unknown key is refused with its line."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from profkit.analysis.targets.yaml_text import YamlValue

_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h)?\s*")
MOST_SECONDS = 7 * 86400.0  # a week: a number beyond it is a slip, and would overflow a wait


class Fields:
    """One mapping of the file. Every method raises UsageError with file, line and what to write instead."""

    def __init__(self, value: YamlValue, what: str, known: tuple[str, ...], base: Path) -> None:
        """`what` names the mapping in messages; relative paths are taken from `base`."""
        self._value, self._what, self._base = value, what, base
        self._content = value.mapping(what)
        for key, item in self._content.items():
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                item.refuse(f"{what} has no key {key!r}{hint}", f"one of: {', '.join(known)}")

    def __contains__(self, key: str) -> bool:
        return key in self._content and self._content[key].content is not None

    def at(self, key: str) -> YamlValue:
        """What stands under `key`; it must be there."""
        if key not in self:
            self._value.refuse(f"{self._what} has no {key}", f"{key}: ...")
        return self._content[key]

    def refuse(self, key: str, message: str, fix: str | None = None) -> NoReturn:
        """Refuse what stands under `key`."""
        self._content.get(key, self._value).refuse(message, fix)

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text that is not blank."""
        if key not in self:
            return default
        content = self._content[key].content
        if isinstance(content, (int, float)) and not isinstance(content, bool):
            self.refuse(key, f"{key} must be text", f'{key}: "{content}"')
        found = self._content[key].text(key)
        if not found.strip():
            self.refuse(key, f"{key} is empty", f"{key}: NAME")
        if "\0" in found:
            self.refuse(key, f"{key} holds a null byte", "take it out")
        return found

    def choice(self, key: str, words: tuple[str, ...], default: str) -> str:
        """One of `words`."""
        if key not in self:
            return default
        found = self._content[key].content
        if found not in words:
            self.refuse(key, f"{key} is {_shown(found)}, not one of {', '.join(words)}", f"{key}: {words[0]}")
        return str(found)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        if key not in self:
            return default
        if not isinstance(self._content[key].content, bool):
            self.refuse(key, f"{key} must be true or false", f"{key}: {str(default).lower()}")
        return bool(self._content[key].content)

    def whole_number(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number from `least` to `most`."""
        if key not in self:
            return default
        found = self._content[key].content
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            self.refuse(
                key,
                f"{key} is {_shown(found)}, not a whole number from {least} to {most}",
                f"{key}: {default}",
            )
        return found

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """A number from `least` to `most`."""
        if key not in self:
            return default
        found = self._content[key].content
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not least <= found <= most:
            self.refuse(
                key, f"{key} is {_shown(found)}, not a number from {least} to {most}", f"{key}: {default}"
            )
        return float(found)

    def seconds(self, key: str, default: float | None) -> float | None:
        """A time: a number of seconds, or `10 min`, `2 h`."""
        if key not in self:
            return default
        found = self._content[key].content
        value = math.nan
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            value = float(found) if abs(found) <= MOST_SECONDS else math.inf
        elif isinstance(found, str) and (match := _DURATION.fullmatch(found)) is not None:
            value = float(match[1]) * _SECONDS[match[2] or ""]
        if not 0 < value <= MOST_SECONDS:
            self.refuse(
                key, f"{key} is {_shown(found)}, not a time between 0 and 7 days", f"{key}: 600  # seconds"
            )
        return value

    def path(self, key: str, *, kind: str | None = None) -> Path | None:
        """A path; with `kind` "file" or "folder" it must be there as such."""
        found = self.text(key)
        if found is None:
            return None
        path = (self._base / Path(found).expanduser()).absolute()
        if kind == "file" and not path.is_file():
            self.refuse(key, f"{key}: there is no file {path}", f"write it, or take the line `{key}:` out")
        if kind == "folder" and not path.is_dir():
            self.refuse(
                key, f"{key}: there is no folder {path}", f"mkdir -p {shlex.quote(str(path))}, or another one"
            )
        return path

    def command(self, key: str) -> tuple[str, ...]:
        """A command: a list of words, or one text that is split as a shell would split it, without a shell."""
        if key not in self:
            return ()
        value = self._content[key]
        if isinstance(value.content, str):
            try:
                words = tuple(shlex.split(value.content))
            except ValueError as error:
                self.refuse(key, f"{key}: {error}", f"{key}: [python, bench.py]")
        else:
            words = tuple(_command_word(item, key) for item in self._list(key))
        if not words or not words[0].strip():
            self.refuse(key, f"{key} is empty", f"{key}: [python, bench.py]")
        if any("\0" in word for word in words):
            self.refuse(key, f"{key} holds a null byte", "take it out")
        return words

    def text_list(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or one text with commas; None where the key is not there."""
        if key not in self:
            return None
        content = self._content[key].content
        if isinstance(content, str):
            return tuple(part.strip() for part in content.split(",") if part.strip())
        return tuple(item.text(f"each of {key}") for item in self._list(key))

    def items(self, key: str) -> list[YamlValue]:
        """A list of anything."""
        return self._list(key) if key in self else []

    def text_mapping(self, key: str) -> Mapping[str, str]:
        """A mapping of texts; numbers are taken as they were written where that is one way only."""
        if key not in self:
            return {}
        found = {}
        for name, item in self._content[key].mapping(key).items():
            if isinstance(item.content, bool) or not isinstance(item.content, (str, int, float)):
                item.refuse(f"{key}: {name} must be text", f'{name}: "1"')
            if not name or "=" in name or "\0" in name + str(item.content):
                item.refuse(f"{key}: {name!r} is no variable with its value", 'NAME: "value"')
            found[name] = str(item.content)
        return found

    def _list(self, key: str) -> list[YamlValue]:
        value = self._content[key]
        if not isinstance(value.content, list):
            self.refuse(key, f"{key} must be a list", f"{key}: [...]")
        return value.content


def _command_word(item: YamlValue, key: str) -> str:
    if isinstance(item.content, bool) or not isinstance(item.content, (str, int, float)):
        item.refuse(f"each word of {key} must be text", f'{key}: [python, bench.py, "--flag"]')
    return str(item.content)


def _shown(value: object) -> str:
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

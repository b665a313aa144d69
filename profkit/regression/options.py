"""The options of a nightly's file by the types of the fields that hold them; what does not fit is refused.

An option is declared once, in its dataclass: `decode` reads a value as the field's type says, or by the parser that its
Annotated type names. A parser takes a value and its key, and raises UsageError.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from profkit.analysis.metrics import metric
from profkit.analysis.targets.yaml_text import YamlValue
from profkit.core.errors import UsageError

_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h)?\s*")
_OF_A_SHELL = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1")  # as words of their own
MOST_SECONDS = 7 * 86400.0  # a week: a number beyond it is a slip, and would overflow a wait


def decode(value: YamlValue, kind: Any, key: str) -> Any:
    """The value as a field of type `kind`. Raises UsageError with the line where it does not fit."""
    parts, origin = get_args(kind), get_origin(kind)
    if hasattr(kind, "__metadata__"):
        return kind.__metadata__[0](value, key)
    if origin is Literal:
        return value.one_of(key, parts)
    if dataclasses.is_dataclass(kind):
        build: Any = kind
        return build(**section(value, kind, key))
    if origin is tuple:
        if not isinstance(value.content, list):
            value.refuse(f"{key} must be a list", f"{key}: [...]")
        return tuple(decode(item, parts[0], key) for item in value.content)
    if type(None) in parts:
        return decode(value, parts[0], key)
    return value.flag(key) if kind is bool else text(value, key)


def _is_option(kind: Any) -> bool:
    """Whether `decode` reads the type; a field of another one is no option."""
    if type(None) in get_args(kind):
        return _is_option(get_args(kind)[0])
    known = hasattr(kind, "__metadata__") or dataclasses.is_dataclass(kind) or kind in (str, bool)
    return known or get_origin(kind) in (Literal, tuple)


def section(
    value: YamlValue, kind: Any, what: str, also: tuple[str, ...] = (), *, whole: bool = True
) -> dict[str, Any]:
    """What a mapping sets of the fields of a dataclass; a key without a value is not set.

    `also`: keys that are read elsewhere. `whole`: fields without a default must be there.
    """
    hints = get_type_hints(kind, include_extras=True)
    fields = {f.name: f for f in dataclasses.fields(kind) if f.name not in also and _is_option(hints[f.name])}
    content = value.mapping(what)
    for key, item in content.items():
        if key not in (*fields, *also):
            close = difflib.get_close_matches(key, (*fields, *also), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            item.refuse(f"{what} has no key {key!r}{hint}", f"one of: {', '.join((*fields, *also))}")
    given = {key: content[key] for key in fields if key in content and content[key].content is not None}
    for name, field in fields.items():
        needed = field.default is field.default_factory is dataclasses.MISSING
        if whole and needed and name not in given:
            value.refuse(f"{what} has no {name}", f"{name}: ...")
    return {key: decode(item, hints[key], key) for key, item in given.items()}


# ---------------------------------------------------------------- parsers


def text(value: YamlValue, key: str) -> str:
    """A text that is not blank."""
    content = value.text(key)
    if not content.strip() or "\0" in content:
        value.refuse(f"{key} is empty, or holds a null byte", f"{key}: NAME")
    return content


def number(least: float, most: float) -> Any:
    """A number from `least` to `most`."""

    def parse(value: YamlValue, key: str) -> float:
        content = value.number(key)
        if not least <= content <= most:
            value.refuse(
                f"{key} is {content:g}, not a number from {least:g} to {most:g}", f"{key}: {least:g}"
            )
        return content

    return parse


def _seconds(value: YamlValue, key: str) -> float:
    """A time: a number of seconds, or `10 min`, `2 h`."""
    content, duration = value.content, math.nan
    match = _DURATION.fullmatch(str(content)) if not isinstance(content, bool) else None
    if match is not None:
        duration = float(match[1]) * _SECONDS[match[2] or ""]
    if not 0 < duration <= MOST_SECONDS:
        value.refuse(f"{key} is no time between 0 and 7 days", f"{key}: 600  # seconds")
    return duration


def _path(value: YamlValue, key: str) -> Path:
    """A path, taken from the folder of the file that names it."""
    return (Path(value.file).parent / Path(text(value, key)).expanduser()).absolute()


def _command(value: YamlValue, key: str) -> tuple[str, ...]:
    """A command: a list of words, or one text that is split as a shell would split it, without a shell."""
    example = f"{key}: [python, bench.py]"
    if isinstance(value.content, list):
        words = [_word(item, f"each word of {key}") for item in value.content]
    else:
        line = text(value, key)
        try:
            words = shlex.split(line)
            found = next((word for word in shlex.split(line, posix=False) if word in _OF_A_SHELL), None)
        except ValueError as error:
            value.refuse(f"{key}: {error}", example)
        if found is not None:
            fix = f"{key}: [sh, -c, {json.dumps(line, ensure_ascii=False)}]"
            value.refuse(f"{key} holds {found}, which is for a shell, and no shell reads it", fix)
    if not words or not words[0].strip():
        value.refuse(f"{key} is empty", example)
    return tuple(words)


def _word(item: YamlValue, what: str) -> str:
    """A text, or a number as it was written."""
    if isinstance(item.content, bool) or not isinstance(item.content, (str, int, float)):
        item.refuse(f"{what} must be text", 'in quotes: "1"')
    if "\0" in str(item.content):
        item.refuse(f"{what} holds a null byte", "take it out")
    return str(item.content)


def _variables(value: YamlValue, key: str) -> dict[str, str]:
    """Environment variables; numbers are taken as they were written."""
    for name, item in value.mapping(key).items():
        if not name or "=" in name or "\0" in name:
            item.refuse(f"{key}: {name!r} is no name of a variable", 'NAME: "value"')
    return {name: _word(item, f"{key}: {name}") for name, item in value.mapping(key).items()}


def metric_name(value: YamlValue, key: str) -> str:
    """The name of a metric that is known."""
    name = text(value, key)
    try:
        return metric(name).name
    except UsageError as error:
        value.refuse(f"{key}: {error.message}", "profkit/analysis/metrics/catalogue.yaml lists all names")


Seconds: TypeAlias = Annotated[float, _seconds]
Place: TypeAlias = Annotated[Path, _path]
Command: TypeAlias = Annotated[tuple[str, ...], _command]
Variables: TypeAlias = Annotated[Mapping[str, str], _variables]
Metric: TypeAlias = Annotated[str, metric_name]

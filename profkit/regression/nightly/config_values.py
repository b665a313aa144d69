"""The values of a nightly's file by the types of the options; what is not understood is refused with its line.

A parser takes a value and its key, and raises UsageError. An option is declared once, in its dataclass: its type says
how it is read (`str`, `bool`, a Literal, another dataclass), or one of those below, which name their parser.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from profkit.analysis.metrics import metric
from profkit.analysis.targets.yaml_text import YamlValue
from profkit.core.errors import UsageError
from profkit.core.types import PassName
from profkit.regression.times import parse_time

Parser: TypeAlias = Callable[[YamlValue, str], Any]

_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h)?\s*")
_OF_A_SHELL = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1")  # as words of their own
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
MOST_SECONDS = 7 * 86400.0  # a week: a number beyond it is a slip, and would overflow a wait


@cache
def parsers_of(kind: type) -> Mapping[str, Parser]:
    """By key the parser of every option that the dataclass declares; a field of another type is no option."""
    hints = get_type_hints(kind, include_extras=True)
    found = ((field.name, _parser_of(hints[field.name])) for field in dataclasses.fields(kind))
    return {name: parser for name, parser in found if parser is not None}


def _parser_of(hint: Any) -> Parser | None:
    if hasattr(hint, "__metadata__"):
        parser: Parser = hint.__metadata__[0]
        return parser
    if get_origin(hint) is Literal:
        return choice(*get_args(hint))
    if dataclasses.is_dataclass(hint):
        kind: Any = hint
        return lambda value, key: kind(**read_section(value, key, parsers_of(kind)))
    if hint in (str, bool):
        return text if hint is str else flag
    parts = get_args(hint)  # of `X | None` that of X
    return _parser_of(parts[0]) if len(parts) == 2 and type(None) in parts else None


def read_section(
    value: YamlValue,
    what: str,
    parsers: Mapping[str, Parser],
    required: tuple[str, ...] = (),
    elsewhere: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What a mapping sets, by key; `what` names the mapping in messages. A key without a value is not set.

    `elsewhere`: keys of other mappings, and how they are written there.
    """
    content = value.mapping(what)
    for key, item in content.items():
        if key not in parsers:
            if key in (elsewhere or {}):
                item.refuse(f"{what} has no key {key!r}: it has another place", (elsewhere or {})[key])
            close = difflib.get_close_matches(key, parsers, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            item.refuse(f"{what} has no key {key!r}{hint}", f"one of: {', '.join(parsers)}")
    given = {key: item for key, item in content.items() if item.content is not None}
    for key in required:
        if key not in given:
            value.refuse(f"{what} has no {key}", f"{key}: ...")
    return {key: parsers[key](item, key) for key, item in given.items()}


def unread(value: YamlValue, _key: str) -> YamlValue:
    """The value itself, which is read later."""
    return value


def text(value: YamlValue, key: str) -> str:
    """A text that is not blank."""
    if isinstance(value.content, (int, float)) and not isinstance(value.content, bool):
        value.refuse(f"{key} must be text", f'{key}: "{value.content}"')
    content = value.text(key)
    if not content.strip():
        value.refuse(f"{key} is empty", f"{key}: NAME")
    if "\0" in content:
        value.refuse(f"{key} holds a null byte", "take it out")
    return content


def choice(*words: str) -> Parser:
    """One of `words`."""

    def parse(value: YamlValue, key: str) -> str:
        if value.content not in words:
            value.refuse(
                f"{key} is {_shown(value.content)}, not one of {', '.join(words)}", f"{key}: {words[0]}"
            )
        return str(value.content)

    return parse


def flag(value: YamlValue, key: str) -> bool:
    """true or false."""
    return value.flag(key)


def number(least: float, most: float, example: float) -> Parser:
    """A number from `least` to `most`; a whole one where `example` is."""
    whole = isinstance(example, int)

    def parse(value: YamlValue, key: str) -> float:
        content = value.content
        fits = isinstance(content, int if whole else (int, float)) and not isinstance(content, bool)
        if not fits or not least <= content <= most:  # type: ignore[operator]  # a number, as `fits` says
            kind = "a whole number" if whole else "a number"
            value.refuse(
                f"{key} is {_shown(content)}, not {kind} from {least} to {most}", f"{key}: {example}"
            )
        return content  # type: ignore[return-value]

    return parse


def seconds(value: YamlValue, key: str) -> float:
    """A time: a number of seconds, or `10 min`, `2 h`."""
    content, duration = value.content, math.nan
    if isinstance(content, (int, float)) and not isinstance(content, bool):
        duration = float(content) if abs(content) <= MOST_SECONDS else math.inf
    elif isinstance(content, str) and (match := _DURATION.fullmatch(content)) is not None:
        duration = float(match[1]) * _SECONDS[match[2] or ""]
    if not 0 < duration <= MOST_SECONDS:
        value.refuse(f"{key} is {_shown(content)}, not a time between 0 and 7 days", f"{key}: 600  # seconds")
    return duration


def date(value: YamlValue, key: str) -> str:
    """A day or a moment, as ISO 8601 in UTC."""
    try:
        return parse_time(str(value.content)).isoformat(timespec="seconds")
    except UsageError:
        value.refuse(f"{key} is {value.content!r}, not a date", f"{key}: 2026-11-20")


def path(value: YamlValue, key: str) -> Path:
    """A path, taken from the folder of the file that names it."""
    return (Path(value.file).parent / Path(text(value, key)).expanduser()).absolute()


def file(value: YamlValue, key: str) -> Path:
    """The path of a file that is there."""
    place = path(value, key)
    if not place.is_file():
        value.refuse(f"{key}: there is no file {place}", f"write it, or take the line `{key}:` out")
    return place


def folder(value: YamlValue, key: str) -> Path:
    """The path of a folder that is there."""
    place = path(value, key)
    if not place.is_dir():
        fix = f"mkdir -p {shlex.quote(str(place))}, or another one"
        value.refuse(f"{key}: there is no folder {place}", fix)
    return place


def revision(value: YamlValue, key: str) -> str:
    """Any name of a commit, and no option of git."""
    name = text(value, key)
    if name.startswith("-"):
        value.refuse(f"{key} is {name!r}, not a commit", f"{key}: v1.2")
    return name


def metric_name(value: YamlValue, key: str) -> str:
    """The name of a metric that is known."""
    name = text(value, key)
    require_metric(value, key, name)
    return name


def metric_names(value: YamlValue, key: str) -> tuple[str, ...]:
    """Such names, each once."""
    names = text_list(value, key)
    for name in names:
        require_metric(value, key, name)
    return tuple(dict.fromkeys(names))


def require_metric(value: YamlValue, key: str, name: str) -> None:
    """Refuse the value where no metric has that name."""
    try:
        metric(name)
    except UsageError as error:
        value.refuse(f"{key}: {error.message}", "profkit/analysis/metrics/catalogue.yaml lists all names")


def pass_names(value: YamlValue, key: str) -> tuple[str, ...]:
    """One pass or more."""
    passes = text_list(value, key)
    for unknown in (name for name in passes if name not in get_args(PassName)):
        value.refuse(f"there is no pass called {unknown!r}", f"passes: [{', '.join(get_args(PassName))}]")
    if not passes:
        value.refuse("passes names none", "passes: [timing]")
    return passes


def backend(value: YamlValue, key: str) -> str:
    """`auto`, or the name of a backend."""
    from profkit.backends import backend_names

    return str(choice("auto", *backend_names())(value, key))


def places(value: YamlValue, key: str) -> str:
    """Where it runs, as `--on` takes it."""
    from profkit.execution.places.kinds import parse_places

    given = text(value, key)
    try:
        parse_places([given])
    except UsageError as fault:
        value.refuse(fault.message, "on: ssh:HOST")
    return given


def checkout(value: YamlValue, key: str) -> tuple[str, ...]:
    """A command that checks a commit out; empty for git's own worktree."""
    words = command(value, key)
    if words == ("worktree",):
        return ()
    if not all(any(field in word for word in words) for field in ("{commit}", "{folder}")):
        value.refuse(
            "the checkout command must say where {commit} and {folder} go",
            "checkout: [git, clone, --revision, '{commit}', /srv/mirror.git, '{folder}']",
        )
    return words


def command(value: YamlValue, key: str) -> tuple[str, ...]:
    """A command: a list of words, or one text that is split as a shell would split it, without a shell."""
    example = f"{key}: [python, bench.py]"
    if isinstance(value.content, str):
        try:
            words = tuple(shlex.split(value.content))
        except ValueError as error:
            value.refuse(f"{key}: {error}", example)
    else:
        words = tuple(
            _scalar_text(item, f"each word of {key} must be text", example) for item in items(value, key)
        )
    if not words or not words[0].strip():
        value.refuse(f"{key} is empty", example)
    if any("\0" in word for word in words):
        value.refuse(f"{key} holds a null byte", "take it out")
    if isinstance(value.content, str):
        _refuse_shell(value, key, value.content)
    return words


def _refuse_shell(value: YamlValue, key: str, line: str) -> None:
    """What only a shell understands would be an argument of the program."""
    words = shlex.split(line, posix=False)  # with their quotes
    found = next((word for word in words if word in _OF_A_SHELL or word.endswith(";")), None)
    if words[0] in ("cd", "export", "source", "."):
        found = words[0]
    if found is not None:
        fix = f"{key}: [sh, -c, {json.dumps(line, ensure_ascii=False)}]"
        value.refuse(f"{key} holds {found}, which is for a shell, and no shell reads it", fix)
    if _ASSIGNMENT.match(words[0]):
        name, _, content = words[0].partition("=")
        value.refuse(
            f"{key} begins with a variable, which is for a shell, and no shell reads it",
            f"env: {{{name}: {json.dumps(content, ensure_ascii=False)}}}",
        )


def text_list(value: YamlValue, key: str) -> tuple[str, ...]:
    """A list of texts, or one text with commas."""
    if isinstance(value.content, str):
        return tuple(part.strip() for part in value.content.split(",") if part.strip())
    return tuple(item.text(f"each of {key}") for item in items(value, key))


def items(value: YamlValue, key: str) -> list[YamlValue]:
    """A list of anything."""
    if not isinstance(value.content, list):
        value.refuse(f"{key} must be a list", f"{key}: [...]")
    return value.content


def variables(value: YamlValue, key: str) -> dict[str, str]:
    """Environment variables; numbers are taken as they were written."""
    texts = {}
    for name, item in value.mapping(key).items():
        texts[name] = _scalar_text(item, f"{key}: {name} must be text", f'{name}: "1"')
        if not name or "=" in name or "\0" in name + texts[name]:
            item.refuse(f"{key}: {name!r} is no variable with its value", 'NAME: "value"')
    return texts


def _scalar_text(item: YamlValue, message: str, fix: str) -> str:
    if isinstance(item.content, bool) or not isinstance(item.content, (str, int, float)):
        item.refuse(message, fix)
    return str(item.content)


def _shown(value: object) -> str:
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


Seconds: TypeAlias = Annotated[float, seconds]
Place: TypeAlias = Annotated[Path, path]
Command: TypeAlias = Annotated[tuple[str, ...], command]
Variables: TypeAlias = Annotated[Mapping[str, str], variables]
Metrics: TypeAlias = Annotated[tuple[str, ...], metric_names]

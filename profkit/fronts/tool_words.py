"""profkit's own sentences for an agent that calls tools: an option of the command line is an argument of its tool.

`--budget 60` is `budget: 60`. A whole line for a shell stays as it is, since an agent may have one.
"""

from __future__ import annotations

import re
from functools import partial

from profkit.profilers.registry import PROFILERS

_NUMBER = r"[\d.]+|SECONDS"
# By option: the argument, and what may be its value; an option without a pattern is a switch.
_ARGUMENTS: dict[str, tuple[str, str | None]] = {
    "--backend": ("backend", r"[a-z]+"),
    "--base": ("base", r"[^\s;,]+"),
    "--budget": ("budget", _NUMBER),
    "--depth": ("depth", "quick|gate|standard|full"),
    "--floor": ("floor", r"[\d.]+ ?%|SHARE"),
    "--force": ("force", None),
    "--metric": ("metric", r"[^\s;,]+"),
    "--sampling": ("budget", r"(?!)"),  # a part of a tool's budget, so its number says nothing here
    "--targets": ("targets", r"[^\s;,]+"),
    "--timeout": ("budget", _NUMBER),  # a tool has one for both
}
# What no tool takes, by option: the line of the shell that it is a part of.
_LINES = {
    "--a": "profkit compare",
    "--b": "profkit compare",
    "--head": "profkit compare",
    "--help": "profkit",
    "--output": "profkit mcp",
}
_FOLDER = "profkit mcp FOLDER"  # below which all runs are written
_OPTION = r"--[a-z][a-z-]*"
_CLAUSE = re.compile(r"(; |: |, or |, | or |\(|`| with (?=--))")
_PROGRAMS = frozenset(
    {*PROFILERS, "chmod", "conda", "docker", "env", "git", "ls", "pip", "profkit", "sudo", "uv"}
)


def as_arguments(text: str) -> str:
    """Return a sentence of profkit's with arguments of tools in place of options of the command line."""
    return "".join(
        part if place % 2 or part.lstrip().partition(" ")[0] in _PROGRAMS else _clause(part)
        for place, part in enumerate(_CLAUSE.split(text))
    )


def _clause(text: str) -> str:
    """Return a part of a sentence that begins with no program."""
    options = re.findall(_OPTION, text)
    if any(option in _LINES for option in options):  # a tool cannot do it: the line of a shell does
        first = next(option for option in options if option in _LINES)
        if first == "--output":
            return re.sub(r"--output \S+", _FOLDER, text)
        at = text.index(options[0])
        return f"{text[:at]}{_LINES[first]} {text[at:]}"
    for option in options:
        name, value = _ARGUMENTS.get(option, (option, None))
        if value is not None:
            text = re.sub(rf"(?<![\w=-]){option}[ =]({value})(?!\w)", partial(_given, name), text)
        said = f"{name}: true" if value is None and name != option else name
        text = re.sub(rf"(?<![\w=-]){option}(?![\w-])", said, text)
    return text


def _given(name: str, found: re.Match[str]) -> str:
    """Return an argument with its value, as JSON has it."""
    number = re.fullmatch(_NUMBER, found[1])
    return f"{name}: {found[1]}" if number else f'{name}: "{found[1]}"'

"""Annotations of GitHub Actions: lines that its runner reads off a step's output and shows beside the run.

The grammar and its escapes are those of the runner itself (actions/toolkit, `packages/core/src/command.ts`): in a
message `%`, carriage return and line feed, in a property `:` and `,` too. The runner shows ten errors, ten warnings and
ten notices of a step, so the worst come first and what is left out is counted in the last one.
"""

from __future__ import annotations

from profkit.reporting.ci_blocks import Annotations
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.view import View, plain_text, walk

MOST = 10  # of each level in a step (GitHub's documentation, "Limits of annotations")


def render(view: View) -> str:
    """A line for each annotation of the view, the worst first; empty where all is well."""
    lines: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for block in walk(view.blocks):
        if isinstance(block, Annotations):
            for level, title, message in block.rows:
                text = "\n".join(dict.fromkeys(map(without_control_characters, message.split("\n"))))
                lines[level].append(_command(level, title, text))
    annotations = []
    for name, commands in lines.items():
        if len(commands) > MOST:
            more = _command(
                name, f"{plain_text(view.title)}: {len(commands) - MOST + 1} more", "see the report"
            )
            commands = [*commands[: MOST - 1], more]
        annotations += commands
    return "".join(line + "\n" for line in annotations)


def _command(level: str, title: str, text: str) -> str:
    """`::error title=...::...` as the runner reads it.

    >>> _command("error", "a: b, 100 %", "first\\nsecond")
    '::error title=a%3A b%2C 100 %25::first%0Asecond'
    """
    named = _escaped(without_control_characters(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

"""Text from outside made harmless (control characters, marks that reorder a line), and notes under a table."""

from __future__ import annotations

import os
import re
import unicodedata
from functools import lru_cache

from profkit.analysis.metrics.catalogue import all_metrics
from profkit.core.formatting import format_percent, format_quantity, format_threshold
from profkit.core.types import Reading, Source, Verdict
from profkit.reporting.facts import fact_text
from profkit.reporting.view import Footnote, Span, Style
from profkit.runtime.passes.shown_command import mask_secrets

# Bidirectional marks (they reorder what is read) and line separators are format characters, not controls.
_DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}

# Selectors of a glyph's variant: nobody sees them, and 240 of them behind each other spell any text.
_SELECTORS = frozenset(map(chr, range(0xE0100, 0xE01F0)))

# What GitHub's runner takes for a command to itself: `::` behind any blanks (actions/runner, ActionCommand.cs), and the
# older `##[` anywhere in a line.
_COMMAND = re.compile(r"(?m)^[^\S\n]*(?=::)|#(?=#\[)")
_JOINER = "\N{WORD JOINER}"  # no width, and no blank to the runner


def without_control_characters(text: str) -> str:
    """Return the text on one line with every control, format and surrogate character replaced by a visible one.

    >>> harmless("a\\x1b[31mb\\nc")
    'a�[31mb c'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


@lru_cache(maxsize=8192)
def text_for_others(text: str) -> str:
    """Return the same for what others may see, as they do logs of CI: what has the form of a secret is masked.

    >>> text_for_others("it said password: hunter2")
    'it said password: [masked]'
    """
    return without_control_characters(mask_secrets(text))


def disarm_commands(text: str) -> str:
    """Return the text as it is; in a step of GitHub Actions with no line in it that the runner would carry out.

    What a workload, a kernel or a file is called is in it, and `::add-mask::` and the like are carried out wherever
    they are printed.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return _COMMAND.sub(lambda match: match[0] + _JOINER, text)


def _visible(character: str) -> str:
    if character in "\n\t\r":
        return " "
    hidden = unicodedata.category(character) in _DANGEROUS or character in _SELECTORS
    return "�" if hidden else character


# The marks of numbers that were not simply measured, so that colour is never the only sign of that.
MARKS = {"simulated": "sim", "estimated": "est", "multiplexed": "mux"}


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, tuple[str, str]]:
    return {metric.name: (metric.title, metric.meaning) for metric in all_metrics()}


def footnote_of(reading: Reading) -> Footnote:
    """Return where a reading comes from, in plain texts; readings that came about alike share one."""
    title, meaning = _catalogue().get(reading.metric, (reading.metric, None))
    quality: str = reading.quality
    if reading.quality == "multiplexed" and reading.share is not None:
        quality = f"multiplexed: counted {format_percent(100 * reading.share)} % of the time"
    return Footnote(
        metric=reading.metric,
        title=title,
        meaning=meaning,
        quality=quality,
        tool=reading.source.tool,
        counter=reading.source.counter,
        formula=reading.source.formula,
        artifact=reading.source.artifact,
        reason=fact_text(reading.reason) or None,
        fix=reading.fix,
        doubt=fact_text(reading.doubt) or None,
    )


def reading_span(reading: Reading, text: str | None = None, style: Style = Style.PLAIN) -> Span:
    """Return the reading's value (or `text`), marked where it was not measured, with its source."""
    value_text = text
    if value_text is None:
        value_text = "not known" if reading.value is None else format_quantity(reading.value, reading.unit)
    marks = [MARKS.get(reading.quality, ""), "doubted" if reading.doubt else ""]
    return Span(value_text, style, source=footnote_of(reading), mark=" ".join(filter(None, marks)))


def threshold_text(verdict: Verdict) -> str:
    """Return `< 5 %`: what the value was held against; `as asked` where the run did not say what it asked for."""
    limit = verdict.threshold
    return format_threshold(limit.operator, limit.value, limit.unit) if limit is not None else "as asked"


def verdict_span(verdict: Verdict) -> Span:
    """Return the value of a verdict that no reading of its scope holds: that of the kernel which decides it."""
    assert verdict.value is not None
    source = Source(
        "profkit", formula="of the kernel that takes most time among those that decide the verdict"
    )
    reading = Reading(verdict.metric, verdict.value, verdict.unit, verdict.quality, verdict.scope, source)
    return reading_span(reading)

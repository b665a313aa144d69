"""How sentences write numbers and names."""

from __future__ import annotations

from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics.catalogue import title_of
from profkit.analysis.summaries.kernels import stalls
from profkit.core.formatting import format_figures, format_percent, joined, plural, signed
from profkit.reporting.sentences.words import METRICS, UNITS

_NAME = 48  # characters of a kernel's name


def count_of(number: float, thing: str, things: str | None = None) -> str:
    """Return `1 case`, `3 cases`."""
    return plural(round(number), thing, things)


def count_text(number: float) -> str:
    """Return a count with its thousands apart; a small one that is not whole gets two decimals."""
    return f"{number:,.0f}" if number == int(number) or number >= 100 else f"{number:,.2f}"


def times_text(number: float) -> str:
    """Return `once`, `1,200 times`."""
    return "once" if number == 1 else f"{count_text(number)} times"


def more_of(number: float, thing: str, things: str) -> str:
    """Return `; 3 more are worse`, or nothing of 0."""
    return f"; {number:.0f} more {thing if round(number) == 1 else things}" if number else ""


def and_more(number: float) -> str:
    """Return ` and 3 more`, or nothing of 0."""
    return f" and {number:.0f} more" if number else ""


def and_more_are(number: float) -> str:
    """Return ` and 3 more are`, or ` is` of 0."""
    return f" and {number:.0f} more are" if number else " is"


def smallest_change(share: float) -> str:
    """Return which change would have been seen, or nothing of 0."""
    return f" (a change of {percent(share)} would have been seen)" if share else ""


def percent(share: float) -> str:
    """Return a share to three figures: `2 %`, `0.125 %`."""
    return f"{100 * share:.3g} %"


def signed_percent(share: float) -> str:
    """Return a share with its sign: `+8.40 %`."""
    return f"{signed(100 * share)} %"


def whole_percent(share: float) -> str:
    """Return a share without decimals: `45 %`."""
    return f"{100 * share:.0f} %"


def share_text(share: float) -> str:
    """Return a share of time, 100 % at most: `45.2 %`."""
    return f"{format_percent(100 * min(1.0, share))} %"


def busy_text(percentage: float) -> str:
    """Return how busy a unit is: `45 %`, `3.2 %`, `less than 0.1 %`."""
    if percentage < 0.05:
        return "less than 0.1 %"
    return f"{percentage:.0f} %" if percentage >= 9.95 else f"{percentage:.1f} %"


def relative_amount(before: float, after: float) -> str:
    """Return `12 % more`, `8.0 % less`, `2.40 times as much`."""
    if before <= 0:
        return "more"
    change = after / before - 1
    if change >= 1:
        return f"{format_figures(after / before)} times as much"
    return f"{format_figures(abs(100 * change), 2)} % {'more' if change >= 0 else 'less'}"


def relative_count(before: float, after: float) -> str:
    """Return `12 % more`, `8.0 % fewer`, `2.40 times as many`."""
    return relative_amount(before, after).replace("as much", "as many").replace(" less", " fewer")


def after_colon(text: str) -> str:
    """Return `: text`, or nothing of an empty text."""
    return f": {text}" if text else ""


def first_line(text: str) -> str:
    """Return the first line of another program's message."""
    return text.partition("\n")[0]


def kernel_name(name: str) -> str:
    """Return a kernel's name without its arguments, short enough for a sentence."""
    return short_name(name, _NAME)


def title(metric: str) -> str:
    """Return what a metric is called in sentences."""
    return METRICS.get(metric) or title_of(metric)


def title_within(metric: str) -> str:
    """Return what a metric is called within a sentence: without its capital, unless that is part of the word."""
    text = title(metric)
    return text if metric in METRICS or not text[1:2].islower() else text[0].lower() + text[1:]


def unit_names(units: str) -> str:
    """Return what the units of a kernel are called: `registers and shared memory` of `registers shared`."""
    return joined([UNITS.get(unit, unit) for unit in units.split()])


def stall_text(stall: str) -> str:
    """Return what a stall reason of a warp means."""
    known = stalls()
    return known[stall].means if stall in known else stall.replace("_", " ")

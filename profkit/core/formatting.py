"""Format numbers for people: three or four significant figures, a fitting prefix, and the unit's symbol.

Imports nothing of profkit. For screens only: values are compared before they are rounded here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((1024.0**4, "Ti"), (1024.0**3, "Gi"), (1024.0**2, "Mi"), (1024.0, "Ki"), (1.0, ""))
_TIMES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def table_cell(text: str) -> str:
    """Make a text safe as a CSV cell, so that no spreadsheet runs it as a formula.

    A leading `=`, `+`, `-` or `@` gets a quote.

    >>> table_cell("=1+1"), table_cell("a=1")
    ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") or text[:1] in ("\t", "\r") else text


def format_quantity(value: float | None, unit: str = "") -> str:
    """Format a value given in its base unit: `4.13 ms`, `15.2 GB/s`, `3.5 MiB`, `9.0 %`; None is a dash."""
    if value is None or not math.isfinite(value):
        return "-"
    if unit == "%":
        return f"{format_percent(value)} %"
    if unit == "s":
        return _format_scaled(value, _TIMES, unit) if value else "0 s"
    # Memory in binary steps, traffic per second in decimal ones
    if unit.split("/")[0] == "B" and unit != "B/s":
        return _format_scaled(value, _BINARY, unit)
    if unit in ("B/s", "/s", "FLOP", "FLOP/s", "Hz", "J"):
        return _format_scaled(value, _DECIMAL, unit)
    if unit in ("", "count") or value >= 1e4:
        suffix = "" if unit in ("", "count") else " " + unit
        return _format_scaled(value, _DECIMAL, "").strip() + suffix
    return f"{format_figures(value)} {unit}".strip()


def format_percent(value: float) -> str:
    """Format a percentage without its sign to one decimal, or more if it is small: 0.02 is not 0.0."""
    size = abs(value)
    if size == 0 or size >= 0.95:
        return f"{value:.1f}"
    if size >= 0.0095:
        return f"{value:.2f}"
    return f"{value:.1g}" if size >= 0.00095 else "<0.001"


def format_figures(value: float, count: int = 3) -> str:
    """Format a value to `count` significant figures, without an exponent if that stays short: 0.412, 41.2, 412."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    digits = count - 1 - math.floor(math.log10(abs(value)))
    if digits > 9 or digits < -12:
        return f"{value:.{count - 1}e}"
    return f"{value:.{max(0, digits)}f}"


def format_threshold(operator: str, value: float, unit: str) -> str:
    """Format a threshold: `< 5 %`, `> 2`, `<= 1 %`."""
    number = f"{value:g}" if abs(value) < 1e6 else format_figures(value)
    return f"{operator} {number}{' ' + unit if unit and unit != 'count' else ''}"


def signed(value: float, count: int = 3) -> str:
    """Format a value with its sign, to `count` significant figures.

    >>> signed(8.4), signed(-0.0123, 2)
    ('+8.40', '-0.012')
    """
    return f"{'+' if value >= 0 else '-'}{format_figures(abs(value), count)}"


def plural(number: int, word: str, many: str | None = None) -> str:
    """Format a number with its noun: `1 pass`, `3 passes`."""
    return f"{number} {word if number == 1 else many or word + 's'}"


def who_goes_on(others: int) -> str:
    """Say how many others continue after one has dropped out: `1 other goes on`, `3 others go on`."""
    return "1 other goes on" if others == 1 else f"{others} others go on"


def joined(words: Sequence[str]) -> str:
    """Join words to a list in prose: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def format_utc_time(started: str) -> str:
    """Format an ISO 8601 time as `2026-11-20 13:36:27 UTC`; return any other text unchanged."""
    try:
        return datetime.fromisoformat(started).astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):
        return started


def format_duration(seconds: float) -> str:
    """Format a duration: `8.2 s`, `82 s`, `4.1 min`, `2.3 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def shorten(text: str, width: int) -> str:
    """Shorten a text to `width` characters by cutting its middle: both ends of a name carry information."""
    if len(text) <= width:
        return text
    if width < 4:
        return text[:width]
    head = (width - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def cut_right(text: str, width: int) -> str:
    """Shorten a text to `width` characters by cutting its end."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _format_scaled(value: float, steps: tuple[tuple[float, str], ...], unit: str) -> str:
    factor, prefix = next((step for step in steps if abs(value) >= step[0] * 0.9995), steps[-1])
    scaled = value / factor
    is_whole = factor == 1 and scaled == int(scaled) and unit != "s"
    return f"{f'{scaled:.0f}' if is_whole else format_figures(scaled)} {prefix}{unit}".strip()


def percent_text(value: float) -> str:
    """Format a percentage for a sentence: `45 %`, `6.3 %`."""
    return f"{format_percent(value)} %" if value < 9.95 else f"{value:.0f} %"

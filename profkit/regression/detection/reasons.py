"""An outcome in one sentence: the value, what it is compared with, and since when."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_figures, format_quantity, plural
from profkit.core.types import Series
from profkit.regression.detection.confirm import ConfirmWord
from profkit.regression.detection.nights import NightResult
from profkit.regression.detection.segments import short_machine


def reason_of(
    result: NightResult,
    series: Series,
    expected: float | None,
    votes: Sequence[str],
    word: ConfirmWord | None,
) -> str:
    """The sentence on the last point of `series`; `word` is that of its re-run."""
    sentence = _sentence(result, series, expected, votes)
    return f"{sentence}; a re-run side by side could not decide it" if word == "ambiguous" else sentence


def _sentence(result: NightResult, series: Series, expected: float | None, votes: Sequence[str]) -> str:
    point, unit = series.points[-1], series.unit
    value = format_quantity(point.value, unit)
    size = _size(point.value, expected, unit)  # "4.1 % above 1.02 ms"
    since = _since(series, result.first)
    limits = (
        f"{format_quantity(result.limits.low, unit)} to {format_quantity(result.limits.high, unit)}"
        if result.limits
        else ""
    )
    nights = plural(result.nights, "night")
    match result.code:
        case "not-valid":
            return point.reason or "its value is no number that could have been measured"
        case "new":
            return (
                f"too short a past on this machine: {plural(result.short, 'more night')} before it is judged"
            )
        case "other-machine":
            before = next((p.machine for p in reversed(series.points) if p.machine != point.machine), "")
            return (
                f"measured on another machine ({short_machine(point.machine)}) than before ({short_machine(before)}): "
                "not held against that past, and the first night of one of its own"
            )
        case "collapse":
            return f"{value}, {size}: too good to be true until it is accepted; was the work done?"
        case "held":
            return f"{value}, within {limits}" if limits else value
        case "seen-before":
            return f"{value}, {size}, as this series is now and then"
        case "suspect":
            return f"{value}, {size}, outside of {limits}: night {result.nights} of {result.nights + result.short}"
        case "autocorrelated":
            return f"{size} for {nights}{since}, but here each night follows the one before: not judged"
        case "same":
            return f"{value} is outside of {limits}, and beside the last good commit it is the same: not the code"
        case "same-night":
            return f"{value}, {size}{since}, confirmed beside the last good commit"
        case "nights":
            return f"{size} for {nights} in a row{since}"
        case "drift":
            return f"{size}, added up in small steps"
        case "change-point":
            return f"{size}{since}, seen afterwards ({', '.join(votes)})"
        case "standing":
            again = f"; outside of its new level too, night {result.nights}" if result.nights else ""
            return f"{size}{since}, neither accepted nor gone{again}"
        case "returning":
            return f"{value}: back where it was before {_day(series, result.first)}"
        case "perhaps-better":
            return f"{value}, {size}: better than {limits} for {nights}"
        case "gone":
            return f"{value}: the regression{since} is gone"
        case "improved":
            return f"{size}{since}"
    return f"{value}, {size}"


def _size(value: float, expected: float | None, unit: str) -> str:
    if expected is None:
        return "of what is not known"
    away = "above" if value >= expected else "below"
    far = (
        f"{format_figures(100 * abs(value / expected - 1), 2)} %"
        if expected
        else format_quantity(abs(value), unit)
    )
    return f"{far} {away} {format_quantity(expected, unit)}"


def _day(series: Series, index: int | None) -> str:
    return series.points[index].started[:10] if index is not None else "that"


def _since(series: Series, index: int | None) -> str:
    if index is None:
        return ""
    commit = series.points[index].commit
    return f" since {_day(series, index)}" + (f" ({commit[:12]})" if commit else "")

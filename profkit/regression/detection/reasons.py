"""An outcome in one sentence: the value, what it is compared with, and since when."""

from __future__ import annotations

from profkit.core.formatting import format_figures, format_quantity, plural
from profkit.core.types import Series
from profkit.regression.detection.machine_series import NightResult
from profkit.regression.detection.segments import short_machine
from profkit.regression.paired.decide import ConfirmWord


def reason_of(
    result: NightResult,
    series: Series,
    expected: float | None,
    word: ConfirmWord | None,
) -> str:
    """The sentence on the last point of `series`; `word` is that of its re-run."""
    sentence = _sentence(result, series, expected)
    return (
        f"{sentence}; a re-run beside the last good commit did not decide"
        if word == "ambiguous"
        else sentence
    )


def _sentence(result: NightResult, series: Series, expected: float | None) -> str:
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
            return point.reason or "its value is not a finite number"
        case "new":
            return f"too few nights on this machine: judged after {plural(result.short, 'more night')}"
        case "other-machine":
            before = next((p.machine for p in reversed(series.points) if p.machine != point.machine), "")
            return (
                f"the first night on another machine ({short_machine(point.machine)}, before {short_machine(before)}): "
                "its values are not compared with those of the other"
            )
        case "collapse":
            return f"{value}, {size}: too fast to be believed until it is accepted; was the work done?"
        case "held":
            return f"{value}, within {limits}" if limits else value
        case "seen-before":
            return f"{value}, {size}, which this series has shown before"
        case "suspect":
            return f"{value}, {size}, outside of {limits}: night {result.nights} of {result.nights + result.short}"
        case "same":
            same = "the last good commit has the same value tonight: the machine changed, not the code"
            return f"{value} is outside of {limits}, but {same}"
        case "same-night":
            return f"{value}, {size}{since}, confirmed by a re-run beside the last good commit"
        case "nights":
            return f"{size} for {nights} in a row{since}"
        case "drift":
            return f"{size}, in many small steps"
        case "change-point":
            return f"{size}{since}, found afterwards by the change detector"
        case "standing":
            again = f"; worse again, night {result.nights}" if result.nights else ""
            return f"{size}{since}, still there, and not accepted{again}"
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
        return "with nothing to compare it with"
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

"""Targets from YAML: the defaults of a backend, and a user's file that overrides them or adds to them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import cast, get_args

from profkit.analysis.metrics import all_metrics, metric, nearest
from profkit.analysis.targets.limits import LIMITERS
from profkit.analysis.targets.target import OPERATORS, Advice, Condition, Gain, Roof, Target
from profkit.analysis.targets.yaml_text import Value, read_yaml
from profkit.core.types import Bound, Quality, ScopeKind

_TOP = ("targets", "workloads")
_TARGET = (
    "metric",
    *OPERATORS,
    "unit",
    "scopes",
    "says",
    "applies",
    "excused",
    "doubted",
    "tolerated",
    "moot",
    "guard",
    "gain",
    "always",
    "advice",
    "missed",
    "unknown",
    "timed",
    "credible",
)
_CONDITION = (
    "metric",
    "times",
    "over",
    "at_least",
    "at_most",
    "roof",
    "of_run",
    "where",
    "busiest",
    "known",
    "without",
    "limiter",
    "stall",
    "otherwise",
    "unless",
    "fix",
)
_ADVICE = ("text", "when", "quality")
_SCOPES = ("run", "region", "function", "kernel")
_QUALITIES = ("measured", "simulated", "estimated", "multiplexed")
_SHORT = re.compile(r"\s*(<=|>=|<|>)\s*([-+.\deE]+)\s*(.*?)\s*")


def load_targets(
    defaults: Path | None, override: Path | None = None, workload: str | None = None
) -> tuple[Target, ...]:
    """The targets of the file `defaults`, then those of the user's file, then those of its section for `workload`.

    A user's target overrides the default of the same name (or, under a metric's name, all on that metric);
    other names add one; `off` removes one. Raises UsageError with file and line for what does not fit.
    """
    targets = dict(_default_targets(defaults)) if defaults is not None else {}
    if override is not None:
        top = read_yaml(override)
        sections = _keys(top, "the file", _TOP)
        _overlay(targets, sections.get("targets"))
        workloads = sections["workloads"].mapping("workloads") if "workloads" in sections else {}
        for name, section in workloads.items():
            chosen = targets if name == workload else dict(targets)  # the others are still checked
            _overlay(chosen, section)
    return tuple(targets.values())


@lru_cache(maxsize=4)
def _default_targets(path: Path) -> Mapping[str, Target]:
    targets: dict[str, Target] = {}
    _overlay(targets, _keys(read_yaml(path), "the file", _TOP).get("targets"))
    return targets


def _overlay(targets: dict[str, Target], section: Value | None) -> None:
    """Put the section's targets over those that are there."""
    if section is None:
        return
    for name, value in section.mapping("a section of targets").items():
        known = [t for t in targets.values() if t.name == name] or [
            t for t in targets.values() if t.metric == name
        ]
        if value.content is False or value.content == "off":
            if not known:
                value.refuse(f"there is no target {name!r} to turn off{_hint(name, targets)}")
            for target in known:
                del targets[target.name]
        elif known:
            for target in known:
                targets[target.name] = _changed(target, value)
        else:
            targets[name] = _new(name, value, targets)


def _new(name: str, value: Value, targets: Mapping[str, Target]) -> Target:
    keys = _short(value) or _keys(value, f"target {name!r}", _TARGET)
    about = _metric(keys["metric"], "metric") if "metric" in keys else name
    if "metric" not in keys and name not in _names():
        value.refuse(f"there is no target and no metric called {name!r}{_hint(name, targets)}")
    info = metric(about)
    if not any(key in keys for key in OPERATORS):
        value.refuse(f"target {name!r} needs a threshold: {', '.join(OPERATORS)}")
    blank = Target(name, about, "<", None, info.unit, says=f"{info.title} is {{value}}")
    return _changed(blank, value)


def _changed(target: Target, value: Value) -> Target:
    """The target with what `value` says."""
    keys = _short(value) or _keys(value, f"target {target.name!r}", _TARGET)
    if "metric" in keys:
        about = _metric(keys["metric"], "metric")
        target = replace(target, metric=about, unit=metric(about).unit)
    given = [key for key in OPERATORS if key in keys]
    if len(given) > 1:
        keys[given[1]].refuse(f"target {target.name!r} has two thresholds: {given[0]} and {given[1]}")
    for key in given:
        asked = keys[key].content == "asked"
        number = None if asked else keys[key].number(key)
        target = replace(target, operator=OPERATORS[key], threshold=number)
    if "unit" in keys and (unit := keys["unit"].text("unit")) != target.unit:
        keys["unit"].refuse(f"{target.metric} is in {target.unit or 'no unit'}, not in {unit}")
    if "scopes" in keys:
        words = [item.one_of("scopes", _SCOPES) for item in keys["scopes"].items("scopes")]
        target = replace(target, scopes=cast("tuple[ScopeKind, ...]", tuple(words)))
    if "says" in keys:
        target = replace(target, says=keys["says"].text("says"))
    for name in ("applies", "excused", "doubted", "tolerated", "moot", "guard"):
        if name in keys:
            conditions = tuple(_condition(item) for item in keys[name].items(name))
            target = replace(target, **{name: conditions})  # type: ignore[arg-type]
    if "gain" in keys:
        target = replace(target, gain=cast("Gain", keys["gain"].one_of("gain", get_args(Gain))))
    if "always" in keys:
        target = replace(target, always=keys["always"].flag("always"))
    if "advice" in keys:
        target = replace(target, advice=tuple(_advice(item) for item in keys["advice"].items("advice")))
    if "missed" in keys:
        missed = keys["missed"].one_of("missed", ("fail", "unknown"))
        target = replace(target, missed="fail" if missed == "fail" else "unknown")
    if "unknown" in keys:
        target = replace(target, unknown=keys["unknown"].text("unknown"))
    if "timed" in keys:
        target = replace(target, timed=keys["timed"].flag("timed"))
    if "credible" in keys:
        target = replace(target, credible=keys["credible"].number("credible"))
    return target


def _short(value: Value) -> dict[str, Value] | None:
    """`"< 8 %"` as the mapping that it stands for; None where it is not of that form."""
    if not isinstance(value.content, str):
        return None
    found = _SHORT.fullmatch(value.content)
    if found is None:
        value.refuse(f"{value.content[:40]!r} is no threshold", 'write it like "< 5 %", or off')
    operator = next(key for key, sign in OPERATORS.items() if sign == found[1])
    try:
        number = Value(float(found[2]), value.line, value.file)
    except ValueError:
        value.refuse(f"{found[2]!r} is no number")
    unit = {"unit": Value(found[3], value.line, value.file)} if found[3] else {}
    return {operator: number, **unit}


def _condition(value: Value) -> Condition:
    keys = _keys(value, "a condition", _CONDITION)
    roof = keys["roof"].one_of("roof", ("memory", "compute")) if "roof" in keys else None
    subjects = [key for key in ("metric", "roof", "limiter", "stall") if key in keys]
    if len(subjects) > 1 or (not subjects and "where" not in keys):
        value.refuse("a condition is on a metric, on a roof, on a limiter, on a stall, or on where")
    if "busiest" in keys and "where" not in keys:
        value.refuse("busiest needs where: the classes of which it is asked")
    if "metric" in keys and not ({"at_least", "at_most"} & set(keys)):
        value.refuse("a condition on a metric needs at_least or at_most")
    return Condition(
        metric=_metric(keys["metric"], "metric") if "metric" in keys else None,
        times=_metric(keys["times"], "times") if "times" in keys else None,
        over=_metric(keys["over"], "over") if "over" in keys else None,
        at_least=keys["at_least"].number("at_least") if "at_least" in keys else None,
        at_most=keys["at_most"].number("at_most") if "at_most" in keys else None,
        roof=cast("Roof | None", roof),
        of_run=keys["of_run"].flag("of_run") if "of_run" in keys else False,
        where=_bounds(keys["where"], "where") if "where" in keys else (),
        busiest=_bounds(keys["busiest"], "busiest") if "busiest" in keys else (),
        known=keys["known"].flag("known") if "known" in keys else False,
        without=_metric(keys["without"], "without") if "without" in keys else None,
        limiter=keys["limiter"].one_of("limiter", LIMITERS) if "limiter" in keys else None,
        stall=keys["stall"].text("stall") if "stall" in keys else None,
        otherwise=keys["otherwise"].text("otherwise")
        if "otherwise" in keys
        else "its condition does not hold",
        unless=_condition(keys["unless"]) if "unless" in keys else None,
        fix=keys["fix"].text("fix") if "fix" in keys else "",
    )


def _bounds(value: Value, what: str) -> tuple[Bound, ...]:
    return tuple(cast("Bound", item.one_of(what, get_args(Bound))) for item in value.items(what))


def _advice(value: Value) -> Advice:
    if isinstance(value.content, str):
        return Advice(value.content)
    keys = _keys(value, "advice", _ADVICE)
    if "text" not in keys:
        value.refuse("advice needs its text")
    return Advice(
        keys["text"].text("text"),
        _condition(keys["when"]) if "when" in keys else None,
        cast("Quality", keys["quality"].one_of("quality", _QUALITIES)) if "quality" in keys else None,
    )


def _keys(value: Value, what: str, allowed: tuple[str, ...]) -> dict[str, Value]:
    found = value.mapping(what)
    for key, item in found.items():
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(allowed)}"
            item.refuse(f"{what} has no {key!r}; {hint}")
    return found


def _metric(value: Value, what: str) -> str:
    name = value.text(what)
    if name not in _names():
        guess = nearest(name)
        value.refuse(f"there is no metric called {name!r}" + (f"; did you mean {guess}?" if guess else ""))
    return name


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(info.name for info in all_metrics())


def _hint(name: str, targets: Mapping[str, Target]) -> str:
    close = difflib.get_close_matches(name, [*targets, *_names()], n=1)
    guess = close[0] if close else nearest(name)
    return f"; did you mean {guess}?" if guess else ""

"""Targets from YAML: the defaults of a backend, and a user's file that overrides them or adds to them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from profkit.analysis.metrics import all_metrics, metric, nearest_metric
from profkit.analysis.targets.target import OPERATORS, Advice, Condition, Target
from profkit.analysis.targets.yaml_text import YamlValue, read_yaml

_TOP = ("targets", "workloads")
# of a target: its name, its metric, and what OPERATORS stand for
_OWN = ("name", "metric", "operator", "threshold")
_TARGET = ("metric", *OPERATORS, *(field.name for field in fields(Target) if field.name not in _OWN))
_CONDITION = tuple(field.name for field in fields(Condition))
_ADVICE = tuple(field.name for field in fields(Advice))
_OF_METRICS = ("metric", "times", "over", "without")  # their values are names of metrics
_hints = lru_cache(get_type_hints)  # each costs more than what it is used for
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
        sections = _checked_keys(top, "the file", _TOP)
        _apply_section(targets, sections.get("targets"))
        workloads = sections["workloads"].mapping("workloads") if "workloads" in sections else {}
        for name, section in workloads.items():
            chosen = targets if name == workload else dict(targets)  # the others are still checked
            _apply_section(chosen, section)
    return tuple(targets.values())


@lru_cache(maxsize=4)
def _default_targets(path: Path) -> Mapping[str, Target]:
    targets: dict[str, Target] = {}
    _apply_section(targets, _checked_keys(read_yaml(path), "the file", _TOP).get("targets"))
    return targets


def _apply_section(targets: dict[str, Target], section: YamlValue | None) -> None:
    """Put the section's targets over those that are there."""
    if section is None:
        return
    for name, value in section.mapping("a section of targets").items():
        known = [targets[name]] if name in targets else []
        if not known and name in _metric_names():
            known = [target for target in targets.values() if target.metric == name]
        if value.content is False or value.content == "off":
            if not known:
                value.refuse(f"there is no target {name!r} to turn off{_nearest_hint(name, targets)}")
            for target in known:
                del targets[target.name]
        elif known:
            for target in known:
                targets[target.name] = _change_target(target, value)
        else:
            targets[name] = _new_target(name, value, targets)


def _new_target(name: str, value: YamlValue, targets: Mapping[str, Target]) -> Target:
    keys = _short_form(value) or _checked_keys(value, f"target {name!r}", _TARGET)
    about = _metric_name(keys["metric"], "metric") if "metric" in keys else name
    if "metric" not in keys and name not in _metric_names():
        value.refuse(f"there is no target and no metric called {name!r}{_nearest_hint(name, targets)}")
    info = metric(about)
    if not any(key in keys for key in OPERATORS):
        value.refuse(f"target {name!r} needs a threshold: {', '.join(OPERATORS)}")
    blank = Target(name, about, "<", None, info.unit, says=f"{info.title} is {{value}}")
    return _change_target(blank, value)


def _change_target(target: Target, value: YamlValue) -> Target:
    """The target with what `value` says."""
    keys = _short_form(value) or _checked_keys(value, f"target {target.name!r}", _TARGET)
    if "metric" in keys:
        about = _metric_name(keys["metric"], "metric")
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
    hints, done = _hints(Target), (*OPERATORS, "metric", "unit")
    return replace(target, **{n: _decode(v, hints[n], n) for n, v in keys.items() if n not in done})


def _decode(value: YamlValue, kind: Any, name: str) -> Any:
    """The value as a field of that type. Raises UsageError with the line where it does not fit."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return value.one_of(name, parts)
    if get_origin(kind) is tuple:
        return tuple(_decode(item, parts[0], name) for item in value.items(name))
    if type(None) in parts:
        return _decode(value, parts[0], name)
    if kind is Condition:
        return _condition(value)
    if kind is Advice:
        return _advice(value)
    if kind is bool:
        return value.flag(name)
    if kind is float:
        return value.number(name)
    return _metric_name(value, name) if name in _OF_METRICS else value.text(name)


def _short_form(value: YamlValue) -> dict[str, YamlValue] | None:
    """`"< 8 %"` as the mapping that it stands for; None where it is not of that form."""
    if not isinstance(value.content, str):
        return None
    parts = _SHORT.fullmatch(value.content)
    if parts is None:
        value.refuse(f"{value.content[:40]!r} is no threshold", 'write it like "< 5 %", or off')
    operator = next(key for key, sign in OPERATORS.items() if sign == parts[1])
    try:
        number = YamlValue(float(parts[2]), value.line, value.file)
    except ValueError:
        value.refuse(f"{parts[2]!r} is no number")
    unit = {"unit": YamlValue(parts[3], value.line, value.file)} if parts[3] else {}
    return {operator: number, **unit}


def _condition(value: YamlValue) -> Condition:
    keys = _checked_keys(value, "a condition", _CONDITION)
    subjects = [key for key in ("metric", "roof", "limiter", "stall") if key in keys]
    if len(subjects) > 1 or (not subjects and "where" not in keys):
        value.refuse("a condition is on a metric, on a roof, on a limiter, on a stall, or on where")
    if "busiest" in keys and "where" not in keys:
        value.refuse("busiest needs where: the classes of which it is asked")
    if "metric" in keys and not ({"at_least", "at_most"} & set(keys)):
        value.refuse("a condition on a metric needs at_least or at_most")
    hints = _hints(Condition)
    values = {name: _decode(item, hints[name], name) for name, item in keys.items()}
    return Condition(**{"otherwise": "its condition does not hold", **values})


def _advice(value: YamlValue) -> Advice:
    if isinstance(value.content, str):
        return Advice(value.content)
    keys = _checked_keys(value, "advice", _ADVICE)
    if "text" not in keys:
        value.refuse("advice needs its text")
    hints = _hints(Advice)
    return Advice(**{name: _decode(item, hints[name], name) for name, item in keys.items()})


def _checked_keys(value: YamlValue, what: str, allowed: tuple[str, ...]) -> dict[str, YamlValue]:
    items = value.mapping(what)
    for key, item in items.items():
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(allowed)}"
            item.refuse(f"{what} has no {key!r}; {hint}")
    return items


def _metric_name(value: YamlValue, what: str) -> str:
    name = value.text(what)
    if name not in _metric_names():
        guess = nearest_metric(name)
        value.refuse(f"there is no metric called {name!r}" + (f"; did you mean {guess}?" if guess else ""))
    return name


@lru_cache(maxsize=1)
def _metric_names() -> frozenset[str]:
    return frozenset(info.name for info in all_metrics())


def _nearest_hint(name: str, targets: Mapping[str, Target]) -> str:
    close = difflib.get_close_matches(name, [*targets, *_metric_names()], n=1)
    guess = close[0] if close else nearest_metric(name)
    return f"; did you mean {guess}?" if guess else ""

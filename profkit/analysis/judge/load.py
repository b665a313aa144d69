"""Targets from YAML: the defaults of a backend, and a user's file that overrides them or adds to them.

A user's file is read as nodes with line numbers, so that an error names its place. Only plain data is allowed: no tags,
no aliases (a few nested ones expand to a gigabyte), and a limited size.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, get_args

from profkit.analysis.judge.target import OPERATORS, Advice, Target
from profkit.analysis.judge.target_checks import CheckStep, Condition, TargetCheck
from profkit.analysis.metrics.catalogue import all_metrics, metric, nearest_metric
from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.tables import load_yaml
from profkit.core.types import ScopeKind

_TOP = ("targets", "workloads")
_OF_USER = ("metric", *OPERATORS, "scopes")
_SHORT = re.compile(r"\s*(<=|>=|<|>)\s*([-+.\deE]+)\s*(.*?)\s*")


def load_targets(
    defaults: Path | None, override: Path | None = None, workload: str | None = None
) -> tuple[Target, ...]:
    """Return the targets of the file `defaults`, of the user's file, and of its section for `workload`, in this order.

    A user's target overrides the default of the same name (or, under a metric's name, all on that metric);
    other names add one; `off` removes one. Raises UsageError with file and line for what does not fit.
    """
    targets = dict(_default_targets(defaults)) if defaults is not None else {}
    if override is not None:
        top = read_yaml(override)
        sections = top.mapping("the file", _TOP)
        _apply_section(targets, sections.get("targets"))
        workloads = sections["workloads"].mapping("workloads") if "workloads" in sections else {}
        for name, section in workloads.items():
            chosen = targets if name == workload else dict(targets)  # other sections are only checked
            _apply_section(chosen, section)
    return tuple(targets.values())


# ---------------------------------------------------------------- those of a backend


@lru_cache(maxsize=4)
def _default_targets(path: Path) -> Mapping[str, Target]:
    """Return the targets of one of profkit's own files. Raises TypeError or ValueError if it is not valid."""
    rows = load_yaml(path)
    shared = {name: _check(row) for name, row in rows.get("checks", {}).items()}
    return {name: _default_target(name, dict(row), shared) for name, row in rows["targets"].items()}


def _default_target(name: str, row: dict[str, Any], shared: Mapping[str, TargetCheck]) -> Target:
    [sign] = OPERATORS.keys() & row.keys()
    limit = row.pop(sign)
    row["advice"] = tuple(map(_advice, row.get("advice", ())))
    row["scopes"] = tuple(row.get("scopes", ("run", "region")))
    row["checks"] = _checks(row.get("checks", ()), shared)
    threshold = None if limit == "asked" else float(limit)
    return Target(name, operator=OPERATORS[sign], threshold=threshold, unit=metric(row["metric"]).unit, **row)


def _checks(
    rows: Sequence[str | Mapping[str, Any]], shared: Mapping[str, TargetCheck]
) -> tuple[CheckStep, ...]:
    """Return the checks in their order; if the list does not name them, `known` and `threshold` come last."""
    steps: list[CheckStep] = []
    for row in rows:
        if row in ("known", "threshold"):
            steps.append("known" if row == "known" else "threshold")
        else:
            steps.append(shared[row] if isinstance(row, str) else _check(row))
    if "threshold" not in steps:
        steps.append("threshold")
    if "known" not in steps:
        steps.insert(steps.index("threshold"), "known")
    return tuple(steps)


def _check(row: Mapping[str, Any]) -> TargetCheck:
    values = dict(row)
    negated = "unless" in values
    condition = _condition(values.pop("unless" if negated else "when"))
    return TargetCheck(condition, negated=negated, **values)


def _condition(row: Mapping[str, Any]) -> Condition:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    if "is" in values:
        operator, limit = str(values.pop("is")).split()
        values["test"] = (operator, float(limit))
    return Condition(**values)


def _advice(row: str | Mapping[str, Any]) -> Advice:
    if isinstance(row, str):
        return Advice(row)
    return Advice(row["text"], _condition(row["when"]) if "when" in row else None, row.get("quality"))


# ---------------------------------------------------------------- those of a user


def _apply_section(targets: dict[str, Target], section: YamlValue | None) -> None:
    """Override the targets by those of the section."""
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
    keys = _short_form(value) or value.mapping(f"target {name!r}", _OF_USER)
    about = metric_name(keys["metric"], "metric") if "metric" in keys else name
    if "metric" not in keys and name not in _metric_names():
        value.refuse(f"there is no target and no metric called {name!r}{_nearest_hint(name, targets)}")
    if not any(key in keys for key in OPERATORS):
        value.refuse(f"target {name!r} needs a threshold: {', '.join(OPERATORS)}")
    return _change_target(Target(name, about, "<", None, metric(about).unit), value)


def _change_target(target: Target, value: YamlValue) -> Target:
    """Return the target, changed by the fields of `value`."""
    keys = _short_form(value) or value.mapping(f"target {target.name!r}", _OF_USER)
    if "metric" in keys:
        about = metric_name(keys["metric"], "metric")
        target = replace(target, metric=about, unit=metric(about).unit)
    given = [key for key in OPERATORS if key in keys]
    if len(given) > 1:
        keys[given[1]].refuse(f"target {target.name!r} has two thresholds: {given[0]} and {given[1]}")
    for key in given:
        target = replace(target, operator=OPERATORS[key], threshold=keys[key].number(key))
    if "unit" in keys and (unit := keys["unit"].text("unit")) != target.unit:
        keys["unit"].refuse(f"{target.metric} is in {target.unit or 'no unit'}, not in {unit}")
    if "scopes" in keys:
        kinds: Any = (item.one_of("scopes", get_args(ScopeKind)) for item in keys["scopes"].items("scopes"))
        target = replace(target, scopes=tuple(kinds))
    return target


def _short_form(value: YamlValue) -> dict[str, YamlValue] | None:
    """Return the short form `"< 8 %"` as a mapping; None for any other text."""
    if not isinstance(value.content, str):
        return None
    parts = _SHORT.fullmatch(value.content)
    if parts is None:
        value.refuse(f"{value.content[:40]!r} is not a threshold", 'write it like "< 5 %", or off')
    operator = next(key for key, sign in OPERATORS.items() if sign == parts[1])
    try:
        number = YamlValue(float(parts[2]), value.line, value.file)
    except ValueError:
        value.refuse(f"{parts[2]!r} is not a number")
    unit = {"unit": YamlValue(parts[3], value.line, value.file)} if parts[3] else {}
    return {operator: number, **unit}


def metric_name(value: YamlValue, what: str) -> str:
    """Return the name of a metric that is known."""
    try:
        return metric(value.text(what)).name
    except UsageError as error:
        value.refuse(f"{what}: {error.message}", "profkit/analysis/metrics/catalogue.yaml lists all names")


@lru_cache(maxsize=1)
def _metric_names() -> frozenset[str]:
    return frozenset(info.name for info in all_metrics())


def _nearest_hint(name: str, targets: Mapping[str, Target]) -> str:
    close = difflib.get_close_matches(name, [*targets, *_metric_names()], n=1)
    guess = close[0] if close else nearest_metric(name)
    return f"; did you mean {guess}?" if guess else ""


SIZE_LIMIT = 1 << 20  # bytes; the built-in targets take 7 KB
MAX_DEPTH = 20  # the built-in targets are nested 5 deep


@dataclass(frozen=True)
class YamlValue:
    """A scalar, a list of values or a mapping of values by text, with its line (from 1) in `file`."""

    content: bool | int | float | str | list[YamlValue] | dict[str, YamlValue] | None
    line: int
    file: str

    def refuse(self, message: str, fix: str | None = None) -> NoReturn:
        """Raise UsageError with the place."""
        raise UsageError(f"{self.file}, line {self.line}: {message}", fix)

    def mapping(self, what: str, allowed: Sequence[str] | None = None) -> dict[str, YamlValue]:
        """Return the content as a mapping with such keys; an empty file or value is an empty one."""
        content = {} if self.content is None else self.content
        if not isinstance(content, dict):
            self.refuse(f"{what} must be a mapping", "key: value")
        for key, item in content.items():
            if allowed is not None and key not in allowed:
                close = difflib.get_close_matches(key, allowed, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                item.refuse(f"{what} has no key {key!r}{hint}", f"one of: {', '.join(allowed)}")
        return content

    def items(self, what: str) -> list[YamlValue]:
        """Return the content as a list; a single value is a list of one."""
        if self.content is None:
            return []
        if isinstance(self.content, dict):
            self.refuse(f"{what} must be a list", "[...]")
        return self.content if isinstance(self.content, list) else [self]

    def text(self, what: str) -> str:
        """Return the content as text."""
        if not isinstance(self.content, str):
            self.refuse(f"{what} must be text", 'write it in quotes: "..."')
        return self.content

    def number(self, what: str) -> float:
        """Return the content as a finite number."""
        value = self.content
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what} must be a number", "a number without quotes, such as 2.5")
        if not abs(value) < 1e300:  # nor is NaN
            self.refuse(f"{what} must be a finite number", "a number such as 2.5")
        return float(value)

    def flag(self, what: str) -> bool:
        """Return the content as true or false. Raises UsageError for anything else."""
        if not isinstance(self.content, bool):
            self.refuse(f"{what} must be true or false", "true")
        return self.content

    def one_of(self, what: str, words: tuple[str, ...]) -> str:
        """Return the content as one of `words`."""
        word = self.text(what)
        if word not in words:
            self.refuse(f"{what} is {word!r}, not {' or '.join(words)}", words[0])
        return word


def read_yaml(path: Path) -> YamlValue:
    """Return the content of a YAML file. Raises UsageError, with the line, if it is not a document of plain data."""
    try:
        text = read_bounded(path, SIZE_LIMIT).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: not UTF-8 text", "save it as UTF-8") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, file: str) -> YamlValue:
    """Parse a text as `read_yaml` does a file; `file` is its name in messages."""
    import yaml  # here, since it takes 10 ms that `profkit --help` does not need

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:  # before anything recurses: libyaml crashes when it recurses too deeply
                raise UsageError(
                    f"{file}, line {_line(event)}: nested too deeply", f"at most {MAX_DEPTH} levels"
                )
            if isinstance(event, yaml.AliasEvent):
                raise UsageError(
                    f"{file}, line {_line(event)}: aliases (*name) are not allowed",
                    "write out what it stands for",
                )
        node = yaml.compose(text, Loader=loader)
        if node is None:
            return YamlValue(None, 1, file)
        return _value(node, file, yaml)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        tabbed = "cannot start any token" in problem and "\t" in text
        fix = "indent with spaces: YAML knows no tabs" if tabbed else "see this line, and the one above it"
        raise UsageError(
            f"{file}{place}: no YAML: {problem}", fix if place else "save it as plain text"
        ) from error


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _value(node: Any, file: str, yaml: Any) -> YamlValue:
    line = _line(node)
    here = YamlValue(None, line, file)
    if isinstance(node, yaml.SequenceNode):
        return YamlValue([_value(item, file, yaml) for item in node.value], line, file)
    if isinstance(node, yaml.MappingNode):
        items: dict[str, YamlValue] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                here.refuse("a key must be text", "key: value")
            if key in items:
                YamlValue(None, _line(key_node), file).refuse(
                    f"{key!r} stands here a second time", "keep one of the two"
                )
            items[key] = _value(value_node, file, yaml)
        return YamlValue(items, line, file)
    try:
        content = yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError):
        here.refuse(f"{node.value[:40]!r} is not a plain value", 'as text, in quotes: "..."')
    if content is not None and not isinstance(content, (bool, int, float, str)):
        content = node.value  # a date is text here
    return YamlValue(content, line, file)

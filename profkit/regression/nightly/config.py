"""Read a nightly's YAML file strictly: anything unknown is refused with its line, and what to write instead."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from profkit.analysis.judge.load import YamlValue, metric_name, read_yaml
from profkit.core.errors import UsageError
from profkit.core.run_folder import clean_name
from profkit.regression.detection.rules import NightRule, rule_for
from profkit.regression.paired.checkout import CheckoutSpec
from profkit.regression.profile_process import Metric, Place, ProfileRequest, Seconds, section

# What every workload must measure where the file names no gates of its own; what else decides then, is measured or
# not, by the rules of the metrics (`regression/detection/rules.yaml`).
DEFAULT_GATES = ("time.median",)
# Watched beside it: the passes measure these anyway, and a watched metric fails no night.
DEFAULT_WATCHES = (
    "memory.rss_peak",
    "memory.python_peak",
    "memory.device_peak",
    "instructions",
    "launch.count",
)
PAIRS_SECONDS = 60.0  # for the pairs of one workload where the file says nothing


def _read_floors(value: YamlValue, key: str) -> dict[str, dict[str, Any]]:
    """Read a percentage by metric, or a mapping of what to set on top of its rule."""
    floors = {}
    for name, item in value.mapping(key).items():
        floor = {"relative": item.content}
        if isinstance(item.content, dict):
            floor = {part: inner.content for part, inner in item.content.items()}
        elif not isinstance(item.content, str):  # 2 could be meant as 2 % or as 200 %
            item.refuse(f"the floor of {name} is {item.content!r}, not a percentage", f"{name}: 2 %")
        if "gates" in floor:
            item.refuse("what decides the night stands under gates", "gates: [time.median]")
        try:
            rule_for(metric_name(replace(item, content=name), key), floor)
        except UsageError as fault:
            item.refuse(fault.message, fault.fix or f"{name}: 2 %")
        floors[name] = floor
    return floors


# By metric what is set on top of its rule (`regression.rule_for`): relative, absolute, nights, ...
Floors: TypeAlias = Annotated[Mapping[str, Mapping[str, Any]], _read_floors]


@dataclass(frozen=True)
class WorkloadSpec(ProfileRequest):
    """One workload of the nightly."""

    gates: tuple[Metric, ...] | None = None  # None: as the rules say; time.median must be there
    watches: tuple[Metric, ...] = DEFAULT_WATCHES
    floors: Floors = field(default_factory=dict)
    was: str | None = None  # its name before: the nights under that name are its past

    @property
    def declared(self) -> tuple[str, ...]:
        """Return the metrics that must be measured."""
        return DEFAULT_GATES if self.gates is None else self.gates

    def rule(self, metric: str) -> NightRule:
        """Return the rule that decides `metric`."""
        own: dict[str, Any] = dict(self.floors.get(metric, {}))
        if self.gates is not None:
            own |= {"gates": metric in self.gates, "exact": False}
        return rule_for(metric, own)

    def wants(self, metric: str) -> bool:
        """Return whether `metric` can fail the night, or is shown."""
        rule = self.rule(metric)
        return rule.gates or rule.exact or metric in self.watches


@dataclass(frozen=True)
class PairsSpec(CheckoutSpec):
    """The pairs of each workload: `budget` seconds for all of them, `sampling` seconds in one process.

    Without a budget 60 s, and longer where four pairs need that.
    """

    budget: Seconds | None = None
    sampling: Seconds = 2.0


@dataclass(frozen=True)
class NightConfig:
    """The whole file. Paths are absolute: relative ones were taken from the file's folder."""

    path: Path
    workloads: tuple[WorkloadSpec, ...]
    name: str
    history: Place
    output: Place
    budget: Seconds | None = None  # for the night, pairs included
    # always: each workload beside the last good commit; never: its past alone decides
    paired: Literal["always", "never"] = "always"
    # The commit that each night is held against; None: that of the last good night.
    baseline: str | None = None
    pairs: PairsSpec = PairsSpec()
    retired: tuple[str, ...] = ()  # workloads that are gone on purpose, though they had regressed


VERSION = 1
EXAMPLE = Path(__file__).with_name("example.yaml")


def read_config(file: Path) -> NightConfig:
    """Read the nightly's file. Raises UsageError with file, line and fix for anything that does not fit."""
    if file.is_dir():
        raise UsageError(
            f"{file} is a folder, not a configuration",
            f"profkit nightly {shlex.quote(str(file))}/nightly.yaml",
        )
    if not file.exists():
        raise UsageError(
            f"there is no configuration {file}",
            f"profkit nightly --example > {shlex.quote(str(file))}  # then edit it",
        )
    whole = read_yaml(file)
    content = whole.mapping("the configuration")
    version = content.get("version")
    if version is None or version.content != VERSION or version.content is True:
        (version or whole).refuse(f"the configuration is not of version {VERSION}", f"version: {VERSION}")
    base = file.absolute().parent
    top = section(whole, NightConfig, "the configuration", ("version", "defaults", "workloads"), whole=False)
    usual = section(
        content.get("defaults", replace(whole, content=None)),
        WorkloadSpec,
        "defaults",
        ("name", "command"),
        whole=False,
    )
    workloads = _read_workloads(content.get("workloads", whole), {"cwd": base, **usual})
    output = top.setdefault("output", base / "reports")
    top.setdefault("history", output / "history.sqlite")
    top.setdefault("name", file.stem)
    return NightConfig(file.absolute(), workloads, **top)


def _read_workloads(value: YamlValue, usual: Mapping[str, Any]) -> tuple[WorkloadSpec, ...]:
    """Read each workload over the defaults; its variables and floors are added to those of the defaults."""
    if not isinstance(value.content, list) or not value.content:
        value.refuse("workloads must be a list of at least one", "workloads: [{name: ..., ...}]")
    specs: dict[str, WorkloadSpec] = {}  # by the folder of its runs
    for item in value.content:
        own = section(item, WorkloadSpec, "a workload")
        beside = {key: {**usual.get(key, {}), **own.get(key, {})} for key in ("env", "floors")}
        spec = WorkloadSpec(**{**usual, **own, **beside})
        if (earlier := specs.get(clean_name(spec.name))) is not None:
            message = f"workloads {earlier.name!r} and {spec.name!r} would write their runs into one folder"
            item.refuse(message, f"name: {spec.name}-2")
        specs[clean_name(spec.name)] = spec
    return tuple(specs.values())

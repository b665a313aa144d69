"""A nightly's YAML file, read strictly: what is not understood is refused with its line, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Literal, NoReturn, get_args

from profkit.analysis.metrics import metric
from profkit.analysis.targets.yaml_text import YamlValue, read_yaml
from profkit.backends import backend_names
from profkit.core.errors import UsageError
from profkit.core.run_folder import clean_name
from profkit.core.types import AcceptedChange, Depth, PassName, Scope
from profkit.execution.places.parse import parse_places
from profkit.regression.detection.rules import NightRule, rule_for
from profkit.regression.nightly.config_values import (
    Parser,
    choice,
    command,
    date,
    flag,
    items,
    number,
    path,
    read_section,
    seconds,
    text,
    text_list,
    unparsed,
    variables,
)
from profkit.regression.paired.checkout import CheckoutSpec
from profkit.regression.profile_process import ProfileRequest
from profkit.reporting.forges.step import Annotate

# always: each workload beside the last good commit; suspects: only where its past makes it a candidate regression;
# never: its past alone decides
Paired = Literal["always", "suspects", "never"]

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


@dataclass(frozen=True)
class WorkloadSpec(ProfileRequest):
    """One workload of the night. Its command is empty only where runs are given and nothing is profiled."""

    gates: tuple[str, ...] | None = None  # None: as the rules say; time.median must be there
    watches: tuple[str, ...] = DEFAULT_WATCHES
    # By metric what is set on top of its rule (`regression.rule_for`): relative, absolute, nights, ...
    floors: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)

    @property
    def declared(self) -> tuple[str, ...]:
        """The metrics that must be there."""
        return DEFAULT_GATES if self.gates is None else self.gates

    def rule(self, metric: str, scope: Scope) -> NightRule:
        """What decides `metric`."""
        own: dict[str, float | str | bool] = dict(self.floors.get(metric, {}))
        if self.gates is not None:
            own["gates"] = metric in self.gates
            own["exact"] = False
        return rule_for(metric, {metric: own}, scope)


# For the pairs of one workload where the file says nothing; of suspects a few must be decided, however long that takes.
PAIRS_SECONDS, SUSPECT_SECONDS = 60.0, 900.0
SUSPECT_PAIRS = 20


@dataclass(frozen=True)
class PairsSpec(CheckoutSpec):
    """The pairs of one workload: `sampling` seconds in one process, `rounds` at most, `budget` seconds for all of them.

    None: as many and as long as `paired` says, and longer where four pairs need that.
    """

    budget: float | None = None
    rounds: int | None = None
    sampling: float = 2.0


@dataclass(frozen=True)
class Anchor:
    """The old state that small steps are added up against; both None: the beginning of the segment."""

    commit: str | None = None
    date: str | None = None  # ISO 8601


@dataclass(frozen=True)
class NotifySpec:
    """Files for others beside the night's own. The step summary is appended to, as GitHub's runner wants it."""

    junit: Path | None = None
    summary: Path | None = None  # default: $GITHUB_STEP_SUMMARY, where that is set
    annotations: Annotate = "auto"  # auto: where GITHUB_ACTIONS is set


@dataclass(frozen=True)
class NightConfig:
    """The whole file. Paths are absolute: relative ones were taken from the file's folder."""

    path: Path
    name: str
    history: Path
    output: Path
    workloads: tuple[WorkloadSpec, ...]
    budget: float | None = None  # seconds for the night, confirmations included
    paired: Paired = "always"
    # the commit that each night is held against; None: that of the last good night
    baseline: str | None = None
    pairs: PairsSpec = PairsSpec()
    anchor: Anchor = Anchor()
    accepted: tuple[AcceptedChange, ...] = ()
    notify: NotifySpec = NotifySpec()


VERSION = 1
EXAMPLE = Path(__file__).with_name("example.yaml")


def read_config(file: Path, *, profiling: bool = True) -> NightConfig:
    """The nightly's file. Raises UsageError with file, line and fix for whatever is not as it should be.

    With `profiling` every workload needs its command, and the folders it names must be there.
    """
    if file.is_dir():
        raise UsageError(f"{file} is a folder, not a configuration", f"profkit nightly {file}/nightly.yaml")
    if not file.exists():
        raise UsageError(
            f"there is no configuration {file}", f"profkit nightly --example > {file}  # then edit it"
        )
    whole = read_yaml(file)
    _check_version(whole)
    base = file.absolute().parent
    workload_parsers = _workload_parsers(base, profiling=profiling)
    elsewhere = {key: f"defaults: {{{key}: ...}}" for key in workload_parsers}
    elsewhere |= {
        key: f"pairs: {{{key}: ...}}" for key in ("setup", "checkout", "setup_timeout", "sampling", "rounds")
    }
    elsewhere |= {"confirm": "pairs: {setup: ...}"}
    top_parsers = _top_parsers(base, workload_parsers)
    top = read_section(whole, "the configuration", top_parsers, ("workloads",), elsewhere)
    usual = _with_section(WorkloadSpec("", cwd=base), top.pop("defaults", {}))
    workloads = _read_workloads(top.pop("workloads"), usual, workload_parsers, profiling=profiling)
    names = tuple(workload.name for workload in workloads)
    output = top.pop("output", base / "reports")
    config = NightConfig(
        path=file.absolute(),
        name=top.pop("name", file.stem),
        history=top.pop("history", output / "history.sqlite"),
        output=output,
        workloads=workloads,
        accepted=tuple(_read_accepted(item, names) for item in top.pop("accepted", ())),
        **{key: value for key, value in top.items() if key not in ("version", "notify")},
    )
    notify = _read_notify(top["notify"], config) if "notify" in top else NotifySpec()
    return replace(config, notify=notify)


def _top_parsers(base: Path, workload_parsers: Mapping[str, Parser]) -> dict[str, Parser]:
    return {
        "version": unparsed,
        "name": text,
        "history": path(base),
        "output": path(base),
        "budget": seconds,
        "defaults": lambda value, key: read_section(value, key, workload_parsers),
        "workloads": unparsed,
        "paired": choice(*get_args(Paired)),
        "baseline": _read_baseline,
        "pairs": _read_pairs,
        "anchor": _read_anchor,
        "accepted": items,
        "notify": unparsed,
    }


def _workload_parsers(base: Path, *, profiling: bool) -> dict[str, Parser]:
    """What a workload, or the defaults of all, may set."""
    return {
        "backend": choice("auto", *backend_names()),
        "depth": choice(*get_args(Depth)),
        "passes": _read_passes,
        "targets": path(base, "file" if profiling else None),
        "env": variables,
        "cwd": path(base, "folder" if profiling else None),
        "timeout": seconds,
        "budget": seconds,
        "timing": seconds,
        "precision": number(0.0001, 0.5, 0.01),
        "cold": flag,
        "on": _read_places,
        "on_python": text,
        "gates": _read_metrics,
        "watches": _read_metrics,
        "floors": _read_floors,
    }


def _read_places(value: YamlValue, key: str) -> str:
    places = text(value, key)
    try:
        parse_places([places])
    except UsageError as fault:
        value.refuse(fault.message, "on: ssh:HOST")
    return places


def _with_section(usual: WorkloadSpec, section: Mapping[str, Any]) -> WorkloadSpec:
    """The workload with what a section sets; its variables and floors stand beside those that are usual."""
    env = {**usual.env, **section.get("env", {})}
    floors = {**usual.floors, **section.get("floors", {})}
    return replace(usual, **{**section, "env": env, "floors": floors})


def _check_version(whole: YamlValue) -> None:
    version = whole.mapping("the configuration").get("version")
    if version is None or version.content is None:
        whole.refuse("the configuration does not say its version", f"version: {VERSION}")
    if version.content != VERSION or isinstance(version.content, bool):
        newer = isinstance(version.content, int) and version.content > VERSION
        version.refuse(
            f"version is {version.content!r}, and this profkit reads {VERSION}",
            "upgrade profkit" if newer else f"version: {VERSION}",
        )


def _read_workloads(
    value: YamlValue, usual: WorkloadSpec, parsers: Mapping[str, Parser], *, profiling: bool
) -> tuple[WorkloadSpec, ...]:
    if not isinstance(value.content, list) or not value.content:
        value.refuse("workloads must be a list of at least one", "workloads: [{name: ..., ...}]")
    specs: dict[str, WorkloadSpec] = {}  # by the folder of its runs
    for item in value.content:
        section = read_section(item, "a workload", {"name": text, "command": command, **parsers})
        if "name" not in section:
            item.refuse("a workload has no name", "name: gated_mlp")
        spec = _with_section(usual, section)
        name = spec.name
        folder = clean_name(name)
        if folder in specs:
            earlier = specs[folder].name
            shared = f"workloads {earlier!r} and {name!r} would write their runs into one folder"
            message = f"there are two workloads called {name!r}" if name == earlier else shared
            _refuse_key(item, "name", message, f"name: {name}-2")
        if profiling and not spec.command:
            item.refuse(f"workload {name!r} has no command", "command: [python, bench.py]")
        if profiling and (verb := _verb_of_kernels(spec.command)) is not None:
            kind = {"sweep": "a sweep", "evaluate": "an evaluation"}[verb]
            _refuse_key(
                item,
                "command",
                f"workload {name!r} is {kind}, which is a run by itself and is not profiled as a workload",
                f"profkit {verb} ..., then: profkit compare BASELINE CANDIDATE, or profkit history add RUN",
            )
        specs[folder] = spec
    return tuple(specs.values())


def _refuse_key(item: YamlValue, key: str, message: str, fix: str) -> NoReturn:
    item.mapping(key)[key].refuse(message, fix)


def _verb_of_kernels(command: Sequence[str]) -> str | None:
    """`sweep` of `profkit sweep ...` and `python -m profkit sweep ...`, whatever the program's path; or `evaluate`."""
    words = [PurePath(word).name for word in command[:4]]
    verbs = (verb for program, verb in pairwise(words) if program == "profkit")
    return next((verb for verb in verbs if verb in ("sweep", "evaluate")), None)


def _read_passes(value: YamlValue, key: str) -> tuple[str, ...]:
    passes = text_list(value, key)
    for unknown in (name for name in passes if name not in get_args(PassName)):
        value.refuse(f"there is no pass called {unknown!r}", f"passes: [{', '.join(get_args(PassName))}]")
    if not passes:
        value.refuse("passes names none", "passes: [timing]")
    return passes


def _read_metrics(value: YamlValue, key: str) -> tuple[str, ...]:
    names = text_list(value, key)
    for name in names:
        _require_metric(value, key, name)
    return tuple(dict.fromkeys(names))


def _read_metric(value: YamlValue, key: str) -> str:
    name = text(value, key)
    _require_metric(value, key, name)
    return name


def _require_metric(value: YamlValue, key: str, name: str) -> None:
    try:
        metric(name)
    except UsageError as error:
        value.refuse(f"{key}: {error.message}", "docs/metrics.md lists all names")


def _read_floors(value: YamlValue, key: str) -> Mapping[str, Mapping[str, float | str]]:
    floors: dict[str, Mapping[str, float | str]] = {}
    for name, item in value.mapping(key).items():
        _require_metric(item, key, name)
        if isinstance(item.content, dict):
            floor = {part: _floor_value(inner, part) for part, inner in item.content.items()}
        elif isinstance(item.content, str):
            floor = {"relative": item.content}
        else:  # 2 could be meant as 2 % or as 200 %
            item.refuse(f"the floor of {name} is {item.content!r}, not a percentage", f"{name}: 2 %")
        try:
            rule_for(name, {name: floor})
        except UsageError as fault:
            item.refuse(fault.message, fault.fix or f"{name}: 2 %")
        floors[name] = floor
    return floors


def _floor_value(value: YamlValue, key: str) -> float | str:
    """A floor's number or text. `gates` is refused: it has a place of its own."""
    content = value.content
    if key == "gates":
        value.refuse("what decides the night stands under gates", "gates: [time.median]")
    if isinstance(content, bool) or not isinstance(content, (int, float, str)):
        value.refuse(f"{key} must be a number or a text", f"{key}: 2 %")
    return content


def _read_pairs(value: YamlValue, key: str) -> PairsSpec:
    parsers: dict[str, Parser] = {
        "budget": seconds,
        "rounds": number(4, 200, SUSPECT_PAIRS),
        "sampling": seconds,
        "checkout": _read_checkout,
        "setup": command,
        "setup_timeout": seconds,
    }
    return PairsSpec(**read_section(value, key, parsers))


def _read_baseline(value: YamlValue, key: str) -> str:
    name = text(value, key)
    if name.startswith("-") or not name.strip():
        value.refuse(f"{key} is {name!r}, not a commit", f"{key}: v1.2")
    return name


def _read_checkout(value: YamlValue, key: str) -> tuple[str, ...]:
    words = command(value, key)
    if words == ("worktree",):
        return ()
    if not all(any(field in word for word in words) for field in ("{commit}", "{folder}")):
        value.refuse(
            "the checkout command must say where {commit} and {folder} go",
            "checkout: [git, clone, --revision, '{commit}', /srv/mirror.git, '{folder}']",
        )
    return words


def _read_anchor(value: YamlValue, key: str) -> Anchor:
    section = read_section(value, key, {"commit": _read_commit, "date": date})
    if len(section) != 1:
        value.refuse("anchor is a commit or a date", "anchor: {commit: 1a2b3c4d}")
    return Anchor(**section)


def _read_commit(value: YamlValue, key: str) -> str:
    """The beginning of a commit's hash. YAML takes 1234567 and 1e10000 for numbers: those want quotes."""
    content = value.content
    if not isinstance(content, str) or re.fullmatch(r"[0-9a-fA-F]{7,64}", content) is None:
        value.refuse(
            f"{key} is {content!r}, not a commit of 7 characters or more",
            f'{key}: "1a2b3c4d"  # in quotes',
        )
    return content.lower()


def _read_accepted(item: YamlValue, names: Sequence[str]) -> AcceptedChange:
    parsers: dict[str, Parser] = {
        "workload": text,
        "metric": _read_metric,
        "since": date,
        "word": text,
        "by": text,
    }
    section = read_section(item, "an accepted change", parsers, ("workload", "since"))
    if section["workload"] not in names:
        fix = f"one of: {', '.join(names[:20])}"
        _refuse_key(item, "workload", f"there is no workload called {section['workload']!r}", fix)
    if "word" not in section:
        item.refuse("an accepted change needs a word: why it is the new normal", "word: now checks its input")
    return AcceptedChange(**section)


def _read_notify(value: YamlValue, config: NightConfig) -> NotifySpec:
    """Where to tell of the night; never onto the nightly's file or the history, which hold more than a notice."""
    file = path(config.path.parent)
    parsers: dict[str, Parser] = {"junit": file, "summary": file, "annotations": choice(*get_args(Annotate))}
    spec = NotifySpec(**read_section(value, "notify", parsers))
    own_files = {config.path.resolve(), config.history.resolve()}
    for key, place in (("junit", spec.junit), ("summary", spec.summary)):
        if place is not None and place.resolve() in own_files:
            _refuse_key(value, key, f"{key} would be written over {place}", f"{key}: another.file")
    return spec

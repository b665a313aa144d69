"""A nightly's YAML file, read strictly: what is not understood is refused with its line, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from profkit.analysis.targets.yaml_text import YamlValue, read_yaml
from profkit.core.errors import UsageError
from profkit.core.run_folder import clean_name
from profkit.core.types import AcceptedChange, Scope
from profkit.regression.detection.rules import NightRule, rule_for
from profkit.regression.nightly.config_values import (
    Metrics,
    Parser,
    Place,
    Seconds,
    date,
    items,
    metric_name,
    number,
    parsers_of,
    read_section,
    require_metric,
    revision,
    text,
    unread,
)
from profkit.regression.paired.checkout import CheckoutSpec
from profkit.regression.profile_process import ProfileRequest
from profkit.reporting.forges import Annotate

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


def _read_floors(value: YamlValue, key: str) -> dict[str, dict[str, float | str]]:
    floors = {}
    for name, item in value.mapping(key).items():
        require_metric(item, key, name)
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


# By metric what is set on top of its rule (`regression.rule_for`): relative, absolute, nights, ...
Floors: TypeAlias = Annotated[Mapping[str, Mapping[str, float | str]], _read_floors]


@dataclass(frozen=True)
class WorkloadSpec(ProfileRequest):
    """One workload of the night."""

    gates: Metrics | None = None  # None: as the rules say; time.median must be there
    watches: Metrics = DEFAULT_WATCHES
    floors: Floors = field(default_factory=dict)

    @property
    def declared(self) -> tuple[str, ...]:
        """The metrics that must be there."""
        return DEFAULT_GATES if self.gates is None else self.gates

    def rule(self, metric: str, scope: Scope) -> NightRule:
        """What decides `metric`."""
        own: dict[str, float | str | bool] = dict(self.floors.get(metric, {}))
        if self.gates is not None:
            own |= {"gates": metric in self.gates, "exact": False}
        return rule_for(metric, {metric: own}, scope)


# For the pairs of one workload where the file says nothing; of suspects a few must be decided, however long that takes.
PAIRS_SECONDS, SUSPECT_SECONDS = 60.0, 900.0
SUSPECT_PAIRS = 20


@dataclass(frozen=True)
class PairsSpec(CheckoutSpec):
    """The pairs of one workload: `sampling` seconds in one process, `rounds` at most, `budget` seconds for all of them.

    None: as many and as long as `paired` says, and longer where four pairs need that.
    """

    budget: Seconds | None = None
    rounds: Annotated[int | None, number(4, 200, SUSPECT_PAIRS)] = None
    sampling: Seconds = 2.0


@dataclass(frozen=True)
class NotifySpec:
    """Files for others beside the night's own. The step summary is appended to, as GitHub's runner wants it."""

    junit: Place | None = None
    summary: Place | None = None  # default: $GITHUB_STEP_SUMMARY, where that is set
    annotations: Annotate = "auto"  # auto: where GITHUB_ACTIONS is set


@dataclass(frozen=True)
class NightConfig:
    """The whole file. Paths are absolute: relative ones were taken from the file's folder."""

    path: Path
    workloads: tuple[WorkloadSpec, ...]
    name: str
    history: Place
    output: Place
    budget: Seconds | None = None  # for the night, confirmations included
    paired: Paired = "always"
    # the commit that each night is held against; None: that of the last good night
    baseline: Annotated[str | None, revision] = None
    pairs: PairsSpec = PairsSpec()
    accepted: tuple[AcceptedChange, ...] = ()
    notify: NotifySpec = NotifySpec()


VERSION = 1
EXAMPLE = Path(__file__).with_name("example.yaml")


def read_config(file: Path) -> NightConfig:
    """The nightly's file. Raises UsageError with file, line and fix for whatever is not as it should be."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder, not a configuration", f"profkit nightly {file}/nightly.yaml")
    if not file.exists():
        raise UsageError(
            f"there is no configuration {file}", f"profkit nightly --example > {file}  # then edit it"
        )
    whole = read_yaml(file)
    top = _read_top(whole)
    base = file.absolute().parent
    usual = _with_section(WorkloadSpec("", cwd=base), top.pop("defaults", {}))
    workloads = _read_workloads(top.pop("workloads"), usual)
    names = [workload.name for workload in workloads]
    accepted = tuple(_read_accepted(item, names) for item in top.pop("accepted", ()))
    output = top.pop("output", base / "reports")
    usually = {"name": file.stem, "history": output / "history.sqlite"}
    config = NightConfig(file.absolute(), workloads, output=output, accepted=accepted, **{**usually, **top})
    _check_notices(whole, config)
    return config


def _read_top(whole: YamlValue) -> dict[str, Any]:
    """What the file sets, by key; its workloads and accepted changes are not read yet."""
    _check_version(whole)
    of_all = {key: read for key, read in parsers_of(WorkloadSpec).items() if key not in ("name", "command")}
    parsers: dict[str, Parser] = {
        "version": unread,
        **parsers_of(NightConfig),
        "defaults": lambda value, key: read_section(value, key, of_all),
        "workloads": unread,
        "accepted": items,
    }
    elsewhere = {key: f"pairs: {{{key}: ...}}" for key in parsers_of(PairsSpec)}
    elsewhere |= {key: f"defaults: {{{key}: ...}}" for key in of_all}
    top = read_section(whole, "the configuration", parsers, ("workloads",), elsewhere)
    del top["version"]
    return top


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


def _read_workloads(value: YamlValue, usual: WorkloadSpec) -> tuple[WorkloadSpec, ...]:
    if not isinstance(value.content, list) or not value.content:
        value.refuse("workloads must be a list of at least one", "workloads: [{name: ..., ...}]")
    specs: dict[str, WorkloadSpec] = {}  # by the folder of its runs
    for item in value.content:
        spec = _with_section(usual, read_section(item, "a workload", parsers_of(WorkloadSpec)))
        name = spec.name
        if not name:
            item.refuse("a workload has no name", "name: gated_mlp")
        if (earlier := specs.get(clean_name(name))) is not None:
            shared = f"workloads {earlier.name!r} and {name!r} would write their runs into one folder"
            message = f"there are two workloads called {name!r}" if name == earlier.name else shared
            _refuse_key(item, "name", message, f"name: {name}-2")
        if not spec.command:
            item.refuse(f"workload {name!r} has no command", "command: [python, bench.py]")
        if (verb := _verb_of_kernels(spec.command)) is not None:
            kind = {"sweep": "a sweep", "evaluate": "an evaluation"}[verb]
            _refuse_key(
                item,
                "command",
                f"workload {name!r} is {kind}, which is a run by itself and is not profiled as a workload",
                f"profkit {verb} ..., then: profkit compare BASELINE CANDIDATE, or profkit history add RUN",
            )
        specs[clean_name(name)] = spec
    return tuple(specs.values())


def _refuse_key(item: YamlValue, key: str, message: str, fix: str) -> NoReturn:
    item.mapping(key)[key].refuse(message, fix)


def _verb_of_kernels(command: Sequence[str]) -> str | None:
    """`sweep` of `profkit sweep ...` and `python -m profkit sweep ...`, whatever the program's path; or `evaluate`."""
    words = [PurePath(word).name for word in command[:4]]
    verbs = (verb for program, verb in pairwise(words) if program == "profkit")
    return next((verb for verb in verbs if verb in ("sweep", "evaluate")), None)


def _read_accepted(item: YamlValue, names: Sequence[str]) -> AcceptedChange:
    parsers: dict[str, Parser] = {
        "workload": text,
        "metric": metric_name,
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


def _check_notices(whole: YamlValue, config: NightConfig) -> None:
    """Refuse a notice that would be written onto the nightly's file or the history, which hold more than that."""
    own_files = {config.path.resolve(), config.history.resolve()}
    for key, place in (("junit", config.notify.junit), ("summary", config.notify.summary)):
        if place is not None and place.resolve() in own_files:
            notify = whole.mapping("the configuration")["notify"]
            _refuse_key(notify, key, f"{key} would be written over {place}", f"{key}: another.file")

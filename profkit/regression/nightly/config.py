"""A nightly's YAML file, read strictly: what is not understood is refused with its line, and what to write instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Literal, NoReturn, cast, get_args

from profkit.analysis.metrics import metric
from profkit.analysis.targets.yaml_text import YamlValue, read_yaml
from profkit.backends import backend_names
from profkit.core.errors import UsageError
from profkit.core.types import AcceptedChange, Depth, PassName, Scope
from profkit.regression.detection.rules import NightRule, rule_for
from profkit.regression.nightly.fields import Fields

Annotate = Literal["auto", "always", "never"]

# What every workload must measure where the file names no gates of its own; what else decides then, is measured or
# not, by the rules of the metrics (`regression/detection/rules.yaml`).
DEFAULT_GATES = ("time.median",)
# Of a sweep the cases, thousands of single looks, gate nothing; what they are over all shapes does.
CASES, SHAPES_MEAN = "time.median", "time.geometric_mean"
# Watched beside it: the passes measure these anyway, and a watched metric fails no night.
DEFAULT_WATCHES = (
    "memory.rss_peak",
    "memory.python_peak",
    "memory.device_peak",
    "instructions",
    "launch.count",
)


@dataclass(frozen=True)
class WorkloadSpec:
    """One workload of the night. `timeout` is for one process, `budget` for all of its profile, in seconds."""

    name: str
    command: tuple[str, ...] = ()  # empty only where runs are given and nothing is profiled
    backend: str = "auto"
    depth: Depth = "gate"
    passes: tuple[str, ...] | None = None
    targets: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = Path()
    timeout: float | None = None
    budget: float = 600.0
    timing: float | None = None  # seconds of sampling in one process, as `profile --budget` takes it
    precision: float = 0.01
    cold: bool = False
    gates: tuple[str, ...] | None = None  # None: as the rules say, and `DECLARED` must be there
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
            # Of a sweep the time is that over all shapes.
            own["gates"] = metric in self.gates or (metric == SHAPES_MEAN and CASES in self.gates)
        return rule_for(metric, {metric: own}, scope)


@dataclass(frozen=True)
class ConfirmSpec:
    """The re-run of candidate and last good in the same night. `rounds` at most; seconds for setup and for all."""

    enabled: bool = True
    checkout: tuple[str, ...] = ()  # empty: a git worktree; else a command with {commit} and {folder}
    setup: tuple[str, ...] = ()  # run in the checkout before its first round
    setup_timeout: float = 600.0
    rounds: int = 20
    budget: float = 900.0


@dataclass(frozen=True)
class CalibrateSpec:
    """How many workloads are run against themselves each night (in turn), and what that may take."""

    workloads: int = 1
    rounds: int = 6
    budget: float = 300.0


@dataclass(frozen=True)
class Anchor:
    """The old state that small steps are added up against; both None: the beginning of the epoch."""

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
    confirm: ConfirmSpec = ConfirmSpec()
    calibrate: CalibrateSpec = CalibrateSpec()
    anchor: Anchor = Anchor()
    accepted: tuple[AcceptedChange, ...] = ()
    notify: NotifySpec = NotifySpec()


VERSION = 1
EXAMPLE = Path(__file__).with_name("example.yaml")
_TOP = (
    "version", "name", "history", "output", "budget", "defaults", "workloads", "confirm", "calibrate",
    "anchor", "accepted", "notify",
)  # fmt: skip
_SHARED = (
    "backend", "depth", "passes", "targets", "env", "cwd", "timeout", "budget", "timing", "precision",
    "cold", "gates", "watches", "floors",
)  # fmt: skip
_CONFIRM = ("enabled", "checkout", "setup", "setup_timeout", "rounds", "budget")


def read_config(path: Path, *, profiling: bool = True) -> NightConfig:
    """The file at `path`. Raises UsageError with file, line and fix for whatever is not as it should be.

    With `profiling` every workload needs its command, and the folders it names must be there.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a configuration", f"profkit nightly {path}/nightly.yaml")
    if not path.exists():
        raise UsageError(
            f"there is no configuration {path}", f"profkit nightly --example > {path}  # then edit it"
        )
    whole = read_yaml(path)
    base = path.absolute().parent
    top = Fields(whole, "the configuration", _TOP, base)
    _check_version(top, whole)
    shared = Fields(top.at("defaults"), "defaults", _SHARED, base) if "defaults" in top else None
    usual = _read_workload(shared, WorkloadSpec("", cwd=base), profiling=profiling) if shared else None
    workloads = _read_workloads(top, usual or WorkloadSpec("", cwd=base), base, profiling=profiling)
    names = tuple(w.name for w in workloads)
    output = top.path("output") or base / "reports"
    history = top.path("history") or output / "history.sqlite"
    return NightConfig(
        path=path.absolute(),
        name=top.text("name") or path.stem,
        history=history,
        output=output,
        workloads=workloads,
        budget=top.seconds("budget", None),
        confirm=_read_confirm(top, base),
        calibrate=_read_calibrate(top, base),
        anchor=_read_anchor(top, base),
        accepted=tuple(_read_accepted(item, names, base) for item in top.items("accepted")),
        notify=_read_notify(top, base, (path.absolute(), history)),
    )


def _check_version(top: Fields, whole: YamlValue) -> None:
    if "version" not in top:
        whole.refuse("the configuration does not say its version", f"version: {VERSION}")
    found = top.at("version").content
    if found != VERSION or isinstance(found, bool):
        newer = isinstance(found, int) and found > VERSION
        top.refuse(
            "version",
            f"version is {found!r}, and this profkit reads {VERSION}",
            "upgrade profkit" if newer else f"version: {VERSION}",
        )


def _read_workloads(
    top: Fields, usual: WorkloadSpec, base: Path, *, profiling: bool
) -> tuple[WorkloadSpec, ...]:
    items = top.at("workloads").content
    if not isinstance(items, list) or not items:
        top.refuse("workloads", "workloads must be a list of at least one", "workloads: [{name: ..., ...}]")
    found: dict[str, WorkloadSpec] = {}
    for item in items:
        fields = Fields(item, "a workload", ("name", "command", *_SHARED), base)
        name = fields.text("name")
        if name is None:
            item.refuse("a workload has no name", "name: gated_mlp")
        if name in found:
            fields.refuse("name", f"there are two workloads called {name!r}", f"name: {name}-2")
        command = fields.command("command")
        if profiling and not command:
            item.refuse(f"workload {name!r} has no command", "command: [python, bench.py]")
        if profiling and _is_sweep(command):
            fields.refuse(
                "command",
                f"workload {name!r} is a sweep, which is a run by itself and is not profiled as a workload",
                f"profkit sweep --name {shlex.quote(name)} --output sweeps, then the nightly: --runs sweeps",
            )
        found[name] = replace(_read_workload(fields, usual, profiling=profiling), name=name, command=command)
    return tuple(found.values())


def _is_sweep(command: Sequence[str]) -> bool:
    """`profkit sweep ...` or `python -m profkit sweep ...`, whatever the path of the program."""
    words = [PurePath(word).name for word in command[:4]]
    return any(pair == ("profkit", "sweep") for pair in pairwise(words))


def _read_workload(fields: Fields, usual: WorkloadSpec, *, profiling: bool) -> WorkloadSpec:
    """What a workload, or the defaults of all, sets on top of what is usual."""
    passes = fields.text_list("passes")
    if passes is not None:
        for unknown in (p for p in passes if p not in get_args(PassName)):
            fields.refuse(
                "passes", f"there is no pass called {unknown!r}", f"passes: [{', '.join(get_args(PassName))}]"
            )
        if not passes:
            fields.refuse("passes", "passes names none", "passes: [timing]")
    kind = "file" if profiling else None
    gates, watches = _read_metrics(fields, "gates"), _read_metrics(fields, "watches")
    return replace(
        usual,
        backend=fields.choice("backend", ("auto", *backend_names()), usual.backend),
        depth=cast(Depth, fields.choice("depth", get_args(Depth), usual.depth)),
        passes=passes if passes is not None else usual.passes,
        targets=fields.path("targets", kind=kind) or usual.targets,
        env={**usual.env, **fields.text_mapping("env")},
        cwd=fields.path("cwd", kind="folder" if profiling else None) or usual.cwd,
        timeout=fields.seconds("timeout", usual.timeout),
        budget=fields.seconds("budget", usual.budget) or usual.budget,
        timing=fields.seconds("timing", usual.timing),
        precision=fields.number("precision", usual.precision, 0.0001, 0.5),
        cold=fields.flag("cold", usual.cold),
        gates=gates if gates is not None else usual.gates,
        watches=watches if watches is not None else usual.watches,
        floors={**usual.floors, **_read_floors(fields)},
    )


def _read_metrics(fields: Fields, key: str) -> tuple[str, ...] | None:
    found = fields.text_list(key)
    for name in found or ():
        _require_metric(fields, key, name)
    return tuple(dict.fromkeys(found)) if found is not None else None


def _require_metric(fields: Fields, key: str, name: str) -> None:
    try:
        metric(name)
    except UsageError as error:
        fields.refuse(key, f"{key}: {error.message}", "docs/metrics.md lists all names")


def _read_floors(fields: Fields) -> Mapping[str, Mapping[str, float | str]]:
    if "floors" not in fields:
        return {}
    found: dict[str, Mapping[str, float | str]] = {}
    for name, item in fields.at("floors").mapping("floors").items():
        _require_metric(fields, "floors", name)
        if isinstance(item.content, dict):
            given = {key: _floor_value(value, key) for key, value in item.content.items()}
        else:
            given = {
                "relative": item.content if isinstance(item.content, str) else _refuse_bare_number(item, name)
            }
        try:
            rule_for(name, {name: given})
        except UsageError as fault:
            item.refuse(fault.message, fault.fix or f"{name}: 2 %")
        found[name] = given
    return found


def _floor_value(value: YamlValue, key: str) -> float | str:
    """A floor's number or text. `gates` is refused: it has a place of its own."""
    content = value.content
    if key == "gates":
        value.refuse("what decides the night stands under gates", "gates: [time.median]")
    if isinstance(content, bool) or not isinstance(content, (int, float, str)):
        value.refuse(f"{key} must be a number or a text", f"{key}: 2 %")
    return content


def _refuse_bare_number(item: YamlValue, name: str) -> NoReturn:
    """A bare number is refused: 2 could be meant as 2 % or as 200 %."""
    item.refuse(f"the floor of {name} is {item.content!r}, not a percentage", f"{name}: 2 %")


def _read_confirm(top: Fields, base: Path) -> ConfirmSpec:
    if "confirm" not in top:
        return ConfirmSpec()
    value, usual = top.at("confirm"), ConfirmSpec()
    if isinstance(value.content, bool):
        return replace(usual, enabled=value.content)
    fields = Fields(value, "confirm", _CONFIRM, base)
    checkout = fields.command("checkout")
    if checkout == ("worktree",):
        checkout = ()
    if checkout and not {"{commit}", "{folder}"} <= {m for w in checkout for m in re.findall(r"\{\w+\}", w)}:
        fields.refuse(
            "checkout",
            "the checkout command must say where {commit} and {folder} go",
            "checkout: [git, clone, --revision, '{commit}', /srv/mirror.git, '{folder}']",
        )
    return ConfirmSpec(
        enabled=fields.flag("enabled", usual.enabled),
        checkout=checkout,
        setup=fields.command("setup"),
        setup_timeout=fields.seconds("setup_timeout", usual.setup_timeout) or usual.setup_timeout,
        rounds=fields.whole_number("rounds", usual.rounds, 4, 200),
        budget=fields.seconds("budget", usual.budget) or usual.budget,
    )


def _read_calibrate(top: Fields, base: Path) -> CalibrateSpec:
    if "calibrate" not in top:
        return CalibrateSpec()
    value, usual = top.at("calibrate"), CalibrateSpec()
    if isinstance(value.content, bool):
        return usual if value.content else replace(usual, workloads=0)
    fields = Fields(value, "calibrate", ("workloads", "rounds", "budget"), base)
    return CalibrateSpec(
        workloads=fields.whole_number("workloads", usual.workloads, 0, 1000),
        rounds=fields.whole_number("rounds", usual.rounds, 4, 200),
        budget=fields.seconds("budget", usual.budget) or usual.budget,
    )


def _read_anchor(top: Fields, base: Path) -> Anchor:
    if "anchor" not in top:
        return Anchor()
    fields = Fields(top.at("anchor"), "anchor", ("commit", "date"), base)
    if ("commit" in fields) == ("date" in fields):
        top.refuse("anchor", "anchor is a commit or a date", "anchor: {commit: 1a2b3c4d}")
    if "date" in fields:
        return Anchor(date=_read_date(fields, "date"))
    return Anchor(commit=_read_commit(fields, "commit"))


def _read_commit(fields: Fields, key: str) -> str:
    """The beginning of a commit's hash. YAML takes 1234567 and 1e10000 for numbers: those want quotes."""
    found = fields.at(key).content
    if not isinstance(found, str) or re.fullmatch(r"[0-9a-fA-F]{7,64}", found) is None:
        fields.refuse(
            key,
            f"{key} is {found!r}, not a commit of 7 characters or more",
            f'{key}: "1a2b3c4d"  # in quotes',
        )
    return found.lower()


def _read_date(fields: Fields, key: str) -> str:
    """A day or a moment, as ISO 8601 in UTC."""
    found = fields.at(key).content
    try:
        when = datetime.fromisoformat(str(found).strip().replace("Z", "+00:00"))
        when = when if when.tzinfo is not None else when.replace(tzinfo=timezone.utc)
        return when.astimezone(timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        fields.refuse(key, f"{key} is {found!r}, not a date", f"{key}: 2026-11-20")


def _read_accepted(item: YamlValue, names: Sequence[str], base: Path) -> AcceptedChange:
    fields = Fields(item, "an accepted change", ("workload", "metric", "since", "word", "by"), base)
    workload = str(fields.at("workload").text("workload"))
    if workload not in names:
        fields.refuse(
            "workload", f"there is no workload called {workload!r}", f"one of: {', '.join(names[:20])}"
        )
    name = fields.text("metric")
    if name is not None:
        _require_metric(fields, "metric", name)
    if "word" not in fields:
        item.refuse("an accepted change needs a word: why it is the new normal", "word: now checks its input")
    return AcceptedChange(
        workload=workload,
        since=_read_date(fields, "since"),
        word=fields.text("word") or "",
        metric=name,
        by=fields.text("by"),
    )


def _read_notify(top: Fields, base: Path, ours: tuple[Path, ...]) -> NotifySpec:
    """Where to tell of the night; never onto `ours`, which hold more than a notice."""
    if "notify" not in top:
        return NotifySpec()
    fields = Fields(top.at("notify"), "notify", ("junit", "summary", "annotations"), base)
    for key in ("junit", "summary"):
        named = fields.path(key)
        if named is not None and named.resolve() in {each.resolve() for each in ours}:
            fields.refuse(key, f"{key} would be written over {named}", f"{key}: another.file")
    return NotifySpec(
        junit=fields.path("junit"),
        summary=fields.path("summary"),
        annotations=cast(Annotate, fields.choice("annotations", get_args(Annotate), "auto")),
    )

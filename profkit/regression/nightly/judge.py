"""Judge tonight's run of one workload against its past: each metric, then the worst of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.analysis.judge.load import read_yaml
from profkit.analysis.metrics.catalogue import all_metrics
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.run_folder import read_run
from profkit.core.types import (
    AcceptedChange,
    Entry,
    Fact,
    MetricOutcome,
    Series,
    Verdict,
    WorkloadOutcome,
)
from profkit.core.types.history import MISSED_TARGET, OUTCOME_ORDER, PAIRED
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.session import NightSession, WorkloadState
from profkit.regression.profile_process import Ending

# Codes of endings that are not called as their ending.
_CODES: dict[Ending, str] = {"done": "measured", "machine": "cannot-measure", "absent": "not-measured"}
SCOPES = ("run", "region")  # a kernel's own values explain; there are hundreds of them


@dataclass
class WorkloadPast:
    """The history of one workload, up to and including tonight's run `entry`."""

    spec: WorkloadSpec
    entry: Entry
    series: tuple[Series, ...]
    accepted: tuple[AcceptedChange, ...]
    entries: tuple[Entry, ...]


def past_of(history: History, spec: WorkloadSpec, run: str | None) -> WorkloadPast | None:
    """Return the history of a workload up to the run of this id; None if it has no such run."""
    if run is None:
        return None
    runs = history.entries(HistoryFilter(spec.name))
    entry = next((entry for entry in runs if entry.id == run), None)
    if entry is None:
        return None
    entries = tuple(e for e in runs[: runs.index(entry) + 1] if e.backend == entry.backend)
    until_now = (_series_until(series, entry.id) for series in _read_series(history, spec, entry))
    series = tuple(cut for cut in until_now if cut is not None)
    return WorkloadPast(spec, entry, series, history.accepted(spec.name), entries)


def judge_workload(
    spec: WorkloadSpec,
    done: WorkloadState,
    entry: Entry | None,
    outcomes: Sequence[MetricOutcome],
    folder: Path,
) -> WorkloadOutcome:
    """Judge a workload as a whole: by what kept it from being measured, else its worst gate, else its targets."""
    bare = WorkloadOutcome(
        name=spec.name,
        backend=entry.backend if entry is not None else spec.backend,
        outcome="missing",
        code=_CODES.get(done.ending, done.ending),
        reason=done.reason,
        run=done.run,
        seconds=done.seconds,
        fix=done.fix,
        ending=done.ending,
        log=done.log,
    )
    if done.ending != "done" or entry is None:
        return bare
    bare = replace(bare, reason=entry.reason)
    if not entry.valid and not any(m.gates and m.outcome != "invalid" for m in outcomes):
        return replace(bare, outcome="invalid", code="not-valid")
    measured = {metric.metric for metric in outcomes}
    missing = (name for name in spec.declared if name not in measured)  # never green
    everything = [*outcomes, *(MetricOutcome(name, "missing", "not-measured") for name in missing)]
    metrics = sorted(everything, key=lambda metric: (not metric.gates, OUTCOME_ORDER.index(metric.outcome)))
    if not metrics or not metrics[0].gates:
        return replace(bare, code="nothing-gates", metrics=tuple(metrics))
    first, verdicts = metrics[0], _own_verdicts(spec, done, folder)
    whole = replace(bare, outcome=first.outcome, code=first.code, metrics=tuple(metrics), verdicts=verdicts)
    if first.outcome != "regressed" and any(v.verdict == "fail" for v in verdicts):
        return replace(whole, outcome="regressed", code=MISSED_TARGET)
    return whole


def _own_verdicts(spec: WorkloadSpec, done: WorkloadState, folder: Path) -> tuple[Verdict, ...]:
    """Return the verdicts on the workload's own targets; the defaults of a backend gate no night."""
    if spec.targets is None or done.run is None:
        return ()
    try:
        document = read_run(folder / done.run)
        top = read_yaml(spec.targets).mapping("the file")
    except ProfkitError:
        return ()
    names = set(top["targets"].mapping("targets")) if "targets" in top else set()
    if "workloads" in top and (own := top["workloads"].mapping("workloads").get(spec.name)) is not None:
        names |= set(own.mapping(spec.name))
    chosen = [v for v in document.verdicts if v.target in names or v.metric in names]
    return tuple(v for v in chosen if v.scope.kind != "kernel")


def _read_series(history: History, spec: WorkloadSpec, entry: Entry) -> list[Series]:
    """Read the series that gate or are watched, of the run and its regions.

    They are read by name, since a history may hold hundreds more.
    """
    rules = [spec.rule(info.name) for info in all_metrics()]
    gating = [rule.metric for rule in rules if rule.gates or rule.exact]
    return [
        series
        for name in dict.fromkeys((*spec.declared, *gating, *spec.watches))
        for series in history.series(HistoryFilter(spec.name, entry.backend, name))
        if series.key.scope.kind in SCOPES and spec.wants(series.key.metric)
    ]


def _series_until(series: Series, entry: str) -> Series | None:
    """Return the series up to the point of this run; None if it has none."""
    for index in range(len(series.points) - 1, -1, -1):
        if series.points[index].entry == entry:
            return replace(series, points=series.points[: index + 1])
    return None


NIGHTS_LOOKED_AT = 60


def vanished(session: NightSession) -> list[WorkloadOutcome]:
    """Return the workloads that the file no longer declares and that had regressed when last measured.

    They are never green.
    """
    config = session.config
    answered = {name for spec in config.workloads for name in (spec.name, spec.was)} | set(config.retired)
    regressed = []
    for _, workload in _former(session):
        if workload["name"] not in answered:
            answered.add(workload["name"])
            if workload["outcome"] == "regressed":
                regressed.append(_vanished(workload))
    return regressed


def with_steps(session: NightSession, workload: WorkloadOutcome) -> WorkloadOutcome:
    """Add to each regressed metric how much further it has slowed down since the night before."""
    if workload.outcome != "regressed":
        return workload
    before = next(
        ((night, metric) for night, metric in _former(session) if metric["name"] == workload.name), None
    )
    if before is None or not before[0].get("commit"):
        return workload
    commit, metrics = before[0]["commit"], before[1]["metrics"]
    return replace(
        workload, metrics=tuple(_with_step(metric, metrics, commit) for metric in workload.metrics)
    )


def _with_step(metric: MetricOutcome, known: list[dict[str, Any]], commit: str) -> MetricOutcome:
    change = metric.change
    if metric.outcome != "regressed" or metric.code != PAIRED or change is None:
        return metric
    with suppress(KeyError, TypeError, StopIteration):
        key = metric.metric, metric.scope.name
        former = next(m for m in known if (m["metric"], m.get("scope", {}).get("name")) == key)
        was = former["change"]
        same_base = former["outcome"] == "regressed" and former["good_commit"] == metric.good_commit
        if same_base and change.low and change.ratio and change.low > was["high"] * (1 + change.floor):
            return replace(metric, step=change.ratio / was["ratio"] - 1, step_since=commit)
    return metric


def _former(session: NightSession) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each earlier night, the latest first, with each of its workloads; what cannot be read is skipped."""
    nights = [path for path in session.folder.parent.glob("*/night.json") if path.parent != session.folder]
    for path in sorted(nights, key=lambda path: path.stat().st_mtime, reverse=True)[:NIGHTS_LOOKED_AT]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            night = json.loads(read_bounded(path).decode())
            for workload in night["workloads"]:
                if {"name", "outcome", "code", "backend"} <= workload.keys():
                    yield night, {"metrics": [], "reason": None, **workload}


def _vanished(workload: Mapping[str, Any]) -> WorkloadOutcome:
    changes = [
        metric.get("change") or {} for metric in workload["metrics"] if metric["outcome"] == "regressed"
    ]
    share = next((change["ratio"] - 1 for change in changes if change.get("ratio")), 0.0)
    if workload["code"] == "vanished" and workload["reason"]:
        share = workload["reason"]["numbers"]["share"]
    name, reason = workload["name"], Fact.of("workload vanished", share=share)
    fix = f"retired: [{name}], or under the workload that it is now: {{was: {name}}}"
    return WorkloadOutcome(
        name, workload["backend"], "regressed", "vanished", reason, fix=fix, ending="absent"
    )

"""What tonight's run of one workload means beside its past: each metric decided, the worst on top; what stays red."""

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
    """The history of one workload, up to tonight's run `entry` and with it."""

    spec: WorkloadSpec
    entry: Entry
    series: tuple[Series, ...]
    accepted: tuple[AcceptedChange, ...]
    entries: tuple[Entry, ...]


def past_of(history: History, spec: WorkloadSpec, run: str | None) -> WorkloadPast | None:
    """The history of a workload up to the run of this id; None where it has no such run."""
    if run is None:
        return None
    known = history.entries(HistoryFilter(spec.name))
    entry = next((entry for entry in known if entry.id == run), None)
    if entry is None:
        return None
    entries = tuple(e for e in known[: known.index(entry) + 1] if e.backend == entry.backend)
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
    """The workload as a whole: what kept it from being measured, else the worst of what gates, else its targets."""
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
    measured = {one.metric for one in outcomes}
    missing = (name for name in spec.declared if name not in measured)  # never green
    everything = [*outcomes, *(MetricOutcome(name, "missing", "not-measured") for name in missing)]
    metrics = sorted(everything, key=lambda one: (not one.gates, OUTCOME_ORDER.index(one.outcome)))
    if not metrics or not metrics[0].gates:
        return replace(bare, code="nothing-gates", metrics=tuple(metrics))
    first, verdicts = metrics[0], _own_verdicts(spec, done, folder)
    whole = replace(bare, outcome=first.outcome, code=first.code, metrics=tuple(metrics), verdicts=verdicts)
    if first.outcome != "regressed" and any(v.verdict == "fail" for v in verdicts):
        return replace(whole, outcome="regressed", code=MISSED_TARGET)
    return whole


def _own_verdicts(spec: WorkloadSpec, done: WorkloadState, folder: Path) -> tuple[Verdict, ...]:
    """The verdicts on what the workload's own file of targets names; the defaults of a backend gate no night."""
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
    """What gates or is watched, of the run and its regions; read by name, since a history may hold hundreds more."""
    rules = [spec.rule(info.name) for info in all_metrics()]
    gating = [rule.metric for rule in rules if rule.gates or rule.exact]
    return [
        series
        for name in dict.fromkeys((*spec.declared, *gating, *spec.watches))
        for series in history.series(HistoryFilter(spec.name, entry.backend, name))
        if series.key.scope.kind in SCOPES and spec.wants(series.key.metric)
    ]


def _series_until(series: Series, entry: str) -> Series | None:
    """The series up to the point of this run; None where it has none."""
    for index in range(len(series.points) - 1, -1, -1):
        if series.points[index].entry == entry:
            return replace(series, points=series.points[: index + 1])
    return None


NIGHTS_LOOKED_AT = 60


def vanished(session: NightSession) -> list[WorkloadOutcome]:
    """Workloads that had regressed when they were measured last, and that the file declares no more: never green."""
    config = session.config
    answered = {name for spec in config.workloads for name in (spec.name, spec.was)} | set(config.retired)
    found = []
    for _, one in _former(session):
        if one["name"] not in answered:
            answered.add(one["name"])
            if one["outcome"] == "regressed":
                found.append(_vanished(one))
    return found


def with_steps(session: NightSession, workload: WorkloadOutcome) -> WorkloadOutcome:
    """The workload with what a metric that had regressed already has lost on top of that since the night before."""
    if workload.outcome != "regressed":
        return workload
    before = next(((night, one) for night, one in _former(session) if one["name"] == workload.name), None)
    if before is None or not before[0].get("commit"):
        return workload
    commit, known = before[0]["commit"], before[1]["metrics"]
    return replace(workload, metrics=tuple(_with_step(one, known, commit) for one in workload.metrics))


def _with_step(metric: MetricOutcome, known: list[dict[str, Any]], commit: str) -> MetricOutcome:
    change = metric.change
    if metric.outcome != "regressed" or metric.code != PAIRED or change is None:
        return metric
    with suppress(KeyError, TypeError, StopIteration):
        key = metric.metric, metric.scope.name
        one = next(m for m in known if (m["metric"], m.get("scope", {}).get("name")) == key)
        was = one["change"]
        same_base = one["outcome"] == "regressed" and one["good_commit"] == metric.good_commit
        if same_base and change.low and change.ratio and change.low > was["high"] * (1 + change.floor):
            return replace(metric, step=change.ratio / was["ratio"] - 1, step_since=commit)
    return metric


def _former(session: NightSession) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each night before this one, the latest first, with each of its workloads; what cannot be read is passed over."""
    nights = [path for path in session.folder.parent.glob("*/night.json") if path.parent != session.folder]
    for path in sorted(nights, key=lambda path: path.stat().st_mtime, reverse=True)[:NIGHTS_LOOKED_AT]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            night = json.loads(read_bounded(path).decode())
            for one in night["workloads"]:
                if {"name", "outcome", "code", "backend"} <= one.keys():
                    yield night, {"metrics": [], "reason": None, **one}


def _vanished(one: Mapping[str, Any]) -> WorkloadOutcome:
    changes = [metric.get("change") or {} for metric in one["metrics"] if metric["outcome"] == "regressed"]
    share = next((change["ratio"] - 1 for change in changes if change.get("ratio")), 0.0)
    if one["code"] == "vanished" and one["reason"]:
        share = one["reason"]["numbers"]["share"]
    name, reason = one["name"], Fact.of("workload vanished", share=share)
    fix = f"retired: [{name}], or under the workload that it is now: {{was: {name}}}"
    return WorkloadOutcome(name, one["backend"], "regressed", "vanished", reason, fix=fix, ending="absent")

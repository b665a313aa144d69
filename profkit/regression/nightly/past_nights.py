"""What former nights say of tonight's: workloads that have gone while they were worse, and steps on top of a step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from profkit.core.files.regular import read_bounded_text
from profkit.core.types import MetricOutcome, WorkloadOutcome
from profkit.core.types.history import PAIRED
from profkit.regression.nightly.session import NightSession

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
            night = json.loads(read_bounded_text(path))
            for one in night["workloads"]:
                if {"name", "outcome", "code", "backend"} <= one.keys():
                    yield night, {"metrics": [], "message": "", **one}


def _vanished(one: Mapping[str, Any]) -> WorkloadOutcome:
    changes = [metric.get("change") or {} for metric in one["metrics"] if metric["outcome"] == "regressed"]
    ratio = next((change["ratio"] for change in changes if change.get("ratio")), None)
    size = f"{100 * (ratio - 1):+.1f} %" if ratio is not None else ""
    message = one["message"] if one["code"] == "vanished" else size
    name = one["name"]
    fix = f"retired: [{name}], or under the workload that it is now: {{was: {name}}}"
    return WorkloadOutcome(name, one["backend"], "regressed", "vanished", message, fix=fix, ending="absent")

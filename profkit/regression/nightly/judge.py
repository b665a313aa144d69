"""What tonight's run of one workload means, compared with its own past: every metric decided, the worst on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.analysis.metrics import all_metrics
from profkit.analysis.targets.yaml_text import read_yaml
from profkit.core.errors import ProfkitError
from profkit.core.run_folder import read_run
from profkit.core.types import (
    AcceptedChange,
    Entry,
    MetricOutcome,
    Series,
    Verdict,
    WorkloadOutcome,
)
from profkit.core.types.history import MISSED_TARGET, OUTCOME_ORDER
from profkit.regression.detection.nights import decide
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.session import WorkloadState
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

    def decide_metrics(self) -> list[MetricOutcome]:
        """Every metric decided by its past."""
        return [decide(series, self.spec.rule(series.key.metric), self.accepted) for series in self.series]


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
        message=done.message,
        run=done.run,
        seconds=done.seconds,
        fix=done.fix,
        ending=done.ending,
        log=done.log,
    )
    if done.ending != "done" or entry is None:
        return bare
    bare = replace(bare, message=entry.reason or "")
    if not entry.valid and not any(m.gates and m.outcome != "invalid" for m in outcomes):
        return replace(bare, outcome="invalid", code="not-valid")
    metrics = sorted([*outcomes, *_missing_gates(spec, outcomes)], key=_by_weight)
    if not metrics or not metrics[0].gates:
        return replace(bare, code="nothing-gates", metrics=tuple(metrics))
    first, verdicts = metrics[0], _own_verdicts(spec, done, folder)
    whole = replace(bare, outcome=first.outcome, code=first.code, metrics=tuple(metrics), verdicts=verdicts)
    if first.outcome != "regressed" and any(v.verdict == "fail" for v in verdicts):
        return replace(whole, outcome="regressed", code=MISSED_TARGET)
    return whole


def _by_weight(metric: MetricOutcome) -> tuple[bool, int]:
    return not metric.gates, OUTCOME_ORDER.index(metric.outcome)


def _missing_gates(spec: WorkloadSpec, outcomes: Sequence[MetricOutcome]) -> list[MetricOutcome]:
    """What was declared and is not there: never green."""
    measured = {m.metric for m in outcomes}
    return [MetricOutcome(name, "missing", "not-measured") for name in spec.declared if name not in measured]


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

"""Each workload beside the last good commit, in turn: what decides a night, from the first one on.

What a noisy hour disturbs, it disturbs in both. So the decision needs no past: the history is context, drift and plots.
The last good commit is the newest one whose night was decided and did not regress. A regression, and what could not be
decided, is held against the commit before it night by night, and so stands until it is gone or accepted.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from profkit.backends import backend_named
from profkit.core.errors import OptionFix, ProfkitError
from profkit.core.files.safe_folder import make_parents
from profkit.core.inference import Interval, decide
from profkit.core.run_folder import clean_name
from profkit.core.statistics import median
from profkit.core.types import (
    RUN,
    Change,
    Entry,
    MetricOutcome,
    NightPairs,
    Outcome,
    PassName,
    Scope,
    Uncounted,
    Value,
)
from profkit.core.types.history import EXACTLY, FIRST, GOOD, NOT_COMPARED, PAIRED, SAME_CODE, SAME_FILES
from profkit.regression import profile_process
from profkit.regression.detection.rules import NightRule
from profkit.regression.history import History, HistoryFilter, entry_of
from profkit.regression.history.rows import COUNTED, microseconds
from profkit.regression.nightly.config import (
    PAIRS_SECONDS,
    NightConfig,
    WorkloadSpec,
)
from profkit.regression.nightly.judge import WorkloadPast
from profkit.regression.nightly.session import EXACT_FOLDER, PAIRS_FOLDER, NightSession
from profkit.regression.paired.checkout import (
    DEEPER,
    NoCheckout,
    Version,
    git_line,
    is_dirty,
    no_repository,
    repository_of,
    resolve_commit,
    version_of,
)
from profkit.regression.paired.compare_versions import what_would_decide as decided_by
from profkit.regression.paired.interleave import (
    FIRST_ROUNDS,
    MEMORY,
    TIME,
    PairedOptions,
    PairedRuns,
    change_between,
)
from profkit.regression.paired.one_run import SPARE, RunOptions, warm_up

TONIGHT = "HEAD"
PARENT = "~1"  # of the first night's commit: what that was held against, where nobody names a commit

MetricScope = tuple[str, Scope]


# ---------------------------------------------------------------- the base


def base_of(config: NightConfig, history: History, spec: WorkloadSpec, tonight: Entry) -> NightPairs:
    """The commit to hold tonight's run against, or why there is none.

    The one that the file pins (`baseline`), else that of the last good night since the last accepted change, else the
    one before the first night's: on a first night HEAD~1, and the same again until a night is good.
    """
    if spec.on is not None:
        return NightPairs(code="elsewhere")
    root = repository_of(spec.cwd)
    if root is None:
        fault = no_repository(spec.cwd, "git init, or paired: never")
        fix = fault.fix or "install git, or paired: never"
        return NightPairs(code="no-repository", message=fault.message, fix=fix)
    names = [config.baseline] if config.baseline else _good_commits(history, spec, tonight)
    name = next((name for name in names if resolve_commit(root, name)), names[0])
    bare = name.removesuffix(PARENT)
    commit, here, first = resolve_commit(root, name), resolve_commit(root, TONIGHT), name.endswith(PARENT)
    if commit is not None:
        if commit != here or is_dirty(root):
            return NightPairs(commit, first=first)
        return NightPairs(commit, "accepted-tonight" if name == TONIGHT else SAME_CODE, same=True)
    shallow = git_line(root, "rev-parse", "--is-shallow-repository") == "true"
    if here is None or (first and not shallow and resolve_commit(root, bare)):
        return NightPairs(code="no-parent", first=True)
    fetch = DEEPER.partition("  #")[0] if shallow else f"git fetch origin {bare}"
    accept = f"profkit history accept {shlex.quote(spec.name)} --because 'rewritten'"
    fix = f"{fetch}  # in CI fetch-depth: 0; or, where it is gone for good, {accept}"
    return NightPairs(
        code="lost-commit", message=name[:12] if len(bare) == 40 else name, fix=fix, failed=True
    )


def _good_commits(history: History, spec: WorkloadSpec, tonight: Entry) -> list[str]:
    """The commits of good nights before tonight and since the last accepted change, the newest first.

    Or what stands for them. Several, since the newest one may be gone after a forced push.
    """
    accepted = [microseconds(c.since) for c in history.accepted(spec.name) if c.metric in (None, TIME)]
    since = max((moment for moment in accepted if moment <= microseconds(tonight.started)), default=-inf)
    young = [
        entry
        for name in filter(None, (spec.was, spec.name))
        for entry in history.entries(HistoryFilter(name, until=tonight.started))
        if entry.commit and not entry.dirty and microseconds(entry.started) >= since
    ]
    good = [e.commit for e in reversed(young) if e.commit and e.valid and e.outcome in GOOD]
    if good:
        return list(dict.fromkeys(good))
    oldest = (young[0].commit if young else None) or TONIGHT
    # What was accepted is the new normal, though its own night had failed.
    return [oldest if since > -inf else f"{oldest}{PARENT}"]


# ---------------------------------------------------------------- in turn


def pair_workload(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> NightPairs:
    """Tonight's checkout and the base in turn; never raises for what prevents it."""
    config, base = session.config, base_of(session.config, session.history, spec, tonight)
    if base.base is None or base.same:
        return base
    if session.left <= 0:
        return replace(base, code="budget-spent", fix="budget: SECONDS", failed=True)
    if (known := session.no_checkout.get((spec.cwd, base.base))) is not None:
        return replace(known, failed=not base.first, first=base.first)  # the same setup fails again
    options = pair_options(session, spec)
    folder = session.folder / PAIRS_FOLDER / clean_name(spec.name)
    exact: tuple[Change, ...] = ()
    told: tuple[Uncounted, ...] = ()
    try:
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(
                    version_of(
                        name, spec.command, spec.cwd, config.pairs, folder, session.progress.tick, spec.env
                    )
                )
                for name in (base.base, None)
            )
            began = time.monotonic()
            if warm_up(first, second, options.run, folder, session.progress) is not None:
                return replace(base, code=SAME_FILES, same=True)
            options = _with_room(session, spec, options, time.monotonic() - began)
            result = PairedRuns(first, second, options, folder, session.progress).run()
            if result.interrupted:
                raise KeyboardInterrupt
            exact, told = ExactCounts(session, spec, tonight, first, second).compare()
            exact += tuple(_instructions(result.changes, spec, exact))
            told += tuple(_not_measured(session, spec, tonight, exact))
    except NoCheckout as fault:
        fix = _keep_log(session, spec, fault.log) or fault.fix
        none = replace(base, code="failed", message=fault.message, fix=fix, failed=not base.first)
        session.no_checkout[spec.cwd, base.base] = none
        return none
    except ProfkitError as fault:
        message, fix = fault.message.splitlines()[0], _key_for(fault.fix)
        return replace(base, code="failed", message=message, fix=fix, failed=not base.first)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(session.folder / EXACT_FOLDER, ignore_errors=True)
        with contextlib.suppress(OSError):  # of another workload something is still there
            folder.parent.rmdir()
    done = NightPairs(
        base.base,
        changes=result.changes,
        exact=exact,
        pairing=result.pairing,
        notes=result.notes,
        uncounted=told,
    )
    if result.pairing.pairs >= FIRST_ROUNDS:
        return done
    needed = math.ceil(SPARE * FIRST_ROUNDS * result.pairing.seconds / max(1, result.pairing.pairs))
    return replace(done, code="few-pairs", fix=f"pairs: {{budget: {needed}}}", failed=True)


def pair_options(session: NightSession, spec: WorkloadSpec) -> PairedOptions:
    """How this night runs pairs of a workload."""
    pairs = session.config.pairs
    budget = min(pairs.budget or PAIRS_SECONDS, session.left)
    sampling = min(spec.timing or pairs.sampling, pairs.sampling)
    run = RunOptions(sampling=sampling, precision=spec.precision, timeout=spec.timeout)
    memory = spec.rule(MEMORY, Scope())
    return PairedOptions(budget, spec.rule(TIME, Scope()).relative, run=run, memory=memory, counts="always")


def _not_measured(
    session: NightSession, spec: WorkloadSpec, tonight: Entry, exact: Sequence[Change]
) -> Iterator[Uncounted]:
    """Metrics that are watched, decide by one count, and were not counted tonight, with the pass that counts them."""
    known = {value.key.metric for value in session.history.entry(tonight.id).values}
    known |= {change.metric for change in exact}
    for metric in spec.watches:
        of_a_device = metric == "memory.device_peak" and not backend_named(tonight.backend).has_device
        if metric in EXACT and metric not in known and not of_a_device:
            yield Uncounted("absent", metric, EXACT[metric])


def _instructions(changes: Sequence[Change], spec: WorkloadSpec, exact: Sequence[Change]) -> Iterator[Change]:
    """The change of the instructions that were counted beside the pairs, by the night's own floor."""
    for change in changes:
        if change.metric in EXACT and all(one.metric != change.metric for one in exact):
            old, new = (
                [v for group in side.groups for v in group] for side in (change.baseline, change.candidate)
            )
            yield _exact_change(
                (old, new), change.metric, spec.rule(change.metric, change.scope), change.unit
            )


def _with_room(
    session: NightSession, spec: WorkloadSpec, options: PairedOptions, seconds: float
) -> PairedOptions:
    """The options with room for four pairs, each of `seconds`, where the file says no budget of pairs."""
    if session.config.pairs.budget is not None:
        return options
    needed = min(SPARE * FIRST_ROUNDS * seconds, spec.budget, session.left)
    return replace(options, budget=max(options.budget, needed))


def _keep_log(session: NightSession, spec: WorkloadSpec, log: Path | None) -> str | None:
    """What a failed checkout or setup printed, kept beside the workload's runs; the line that shows it."""
    if log is None:
        return None
    kept = session.folder / "runs" / clean_name(spec.name) / log.name
    try:
        make_parents(kept.parent)
        os.replace(log, kept)
    except OSError:
        return None
    return shlex.join(["cat", str(kept)])


def _key_for(fix: str | None) -> str | None:
    """What mends it in the nightly's file, where the fix names an option of `profkit compare`."""
    option = fix.option if isinstance(fix, OptionFix) else ""
    keys = {"--setup": "pairs: {setup: [...]}", "--timeout": "timeout: SECONDS"}
    return keys.get(option, fix)


# ---------------------------------------------------------------- what it decides


def with_pairs(
    outcomes: Sequence[MetricOutcome], pairs: NightPairs | None, past: WorkloadPast
) -> list[MetricOutcome]:
    """The outcomes, with those of times as the pairs decided them; the others as the past decides.

    Of a run that is not valid (throttled) only what the pairs decided counts, and what the file names as a gate. What
    gates only where its count is exact is left out where it is not, unless it is watched.
    """
    counted = {(change.metric, change.scope) for change in pairs.exact} if pairs is not None else set()
    outcomes = [one for one in outcomes if (one.metric, one.scope) in counted or _by_its_past(one, past)]
    if pairs is None:
        return outcomes
    if pairs.same:
        return [_of_same_code(outcome, pairs) for outcome in outcomes]
    prevented = pairs.failed or bool(pairs.first and pairs.code)
    times = () if prevented else (c for c in pairs.changes if c.metric in (TIME, MEMORY))
    changes: Mapping[MetricScope, Change] = {(c.metric, c.scope): c for c in (*times, *pairs.exact)}
    decided = []
    known = {(one.metric, one.scope) for one in outcomes}
    # What was counted beside the pairs alone has no past.
    alone = [
        MetricOutcome(m, "new", "new", scope=s) for m, s in changes if (m, s) not in known and m in EXACT
    ]
    for outcome in (*outcomes, *alone):
        change = changes.get((outcome.metric, outcome.scope))
        if change is not None:
            decided.append(_decided(outcome, change, pairs, past))
        elif prevented:
            decided.append(_not_compared(outcome, pairs))
        elif not past.entry.valid and outcome.metric not in past.spec.declared:
            decided.append(replace(outcome, gates=False))
        else:
            decided.append(outcome)
    return decided


def _by_its_past(outcome: MetricOutcome, past: WorkloadPast) -> bool:
    rule = past.spec.rule(outcome.metric, outcome.scope)
    return rule.gates or outcome.metric in past.spec.watches or not rule.exact


def _of_same_code(outcome: MetricOutcome, pairs: NightPairs) -> MetricOutcome:
    """The commit of the last good night cannot have regressed: the machine did, or what is installed there."""
    if outcome.metric not in (TIME, *EXACT):
        return outcome
    worse = outcome.outcome in ("regressed", "ambiguous")
    same = replace(outcome, outcome="pass", code=SAME_CODE, good_commit=pairs.base)
    return replace(same, by_past=outcome.code) if worse else replace(same, detectable=None)


def _not_compared(outcome: MetricOutcome, pairs: NightPairs) -> MetricOutcome:
    """What has no past either is not decided, unless no night was good yet: then there is nothing to be worse than."""
    if outcome.metric != TIME or outcome.outcome != "new":
        return outcome
    if pairs.first:
        return replace(outcome, code=FIRST)
    return replace(outcome, outcome="ambiguous", code=NOT_COMPARED)


def _decided(outcome: MetricOutcome, change: Change, pairs: NightPairs, past: WorkloadPast) -> MetricOutcome:
    word, first, nights = _outcome_of(change), past.entry, 0
    if word == "regressed":
        first, nights = _began(past)
    rule = past.spec.rule(outcome.metric, outcome.scope)
    return replace(
        outcome,
        outcome=word,
        gates=rule.gates or rule.exact,
        code=PAIRED if outcome.metric in (TIME, MEMORY) else EXACTLY,
        by_past=outcome.code if word == "pass" and outcome.outcome == "regressed" else "",
        value=change.candidate.value,
        expected=change.baseline.value,
        detectable=change.detectable,
        change=change,
        since=first.started if word in ("regressed", "ambiguous") else None,
        commit=first.commit if word in ("regressed", "ambiguous", "improved") else None,
        good_commit=pairs.base,
        nights=nights,
    )


def _began(past: WorkloadPast) -> tuple[Entry, int]:
    """The first of the nights in a row, tonight's the last, that regressed; how many."""
    first, nights = past.entry, 1
    for entry in reversed(past.entries[:-1]):
        if entry.outcome == "regressed":
            first, nights = entry, nights + 1
        elif entry.valid:
            break
    return first, nights


def _outcome_of(change: Change) -> Outcome:
    """By the interval. What is neither beyond nor within the floor passes where it is more likely within."""
    if change.word == "different" and change.course != "neither":
        return "regressed" if change.course == "worse" else "improved"
    beyond = change.ratio is not None and change.ratio - 1 > change.floor
    return "ambiguous" if change.word == "ambiguous" and beyond else "pass"


def what_would_decide(outcomes: Sequence[MetricOutcome], pairs: NightPairs) -> str | None:
    """What to write into the nightly's file where the pairs of a metric that gates could not decide."""
    open_ones = [one for one in outcomes if one.outcome == "ambiguous" and one.gates]
    if open_ones and pairs.failed:
        return pairs.fix
    for one in open_ones:
        if one.code == PAIRED and one.change is not None and pairs.pairing is not None:
            wanted = decided_by(one.change, pairs.pairing).numbers
            keys = [f"pairs: {{budget: {wanted['seconds']:.0f}}}"] if "seconds" in wanted else []
            keys += [f"floors: {{{one.metric}: {100 * wanted['floor']:.3g} %}}"] if "floor" in wanted else []
            return ", or ".join(keys)
    return None


# Exact in a simulation of the same work alone, of which that is told: two of a Python program lay 0.2 % apart.
_COUNTS = (
    "instructions",
    "branch.count",
    "dram.bytes",
    "cache.l1.miss_rate",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
)
_COUNTING: PassName = "counters"
# By metric the pass that counts it.
EXACT: Mapping[str, PassName] = {
    **dict.fromkeys(_COUNTS, _COUNTING),
    "memory.python_peak": "tracemalloc",
    "memory.device_peak": "timing",
}
AGREE = 1 / 3  # of the floor: counts of one commit that lie further apart are not exact

OTHERWISE = "its iterations are not as many as those of tonight's run"

Key = tuple[str, Scope]
Counts = dict[Key, list[float]]


@dataclass
class ExactCounts:
    """The counts of one workload tonight (`new`) and of the base commit (`old`), as they come in."""

    session: NightSession
    spec: WorkloadSpec
    tonight: Entry
    base: Version
    present: Version
    new: Counts = field(default_factory=dict)
    old: Counts = field(default_factory=dict)
    uncounted: dict[Uncounted, None] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def compare(self) -> tuple[tuple[Change, ...], tuple[Uncounted, ...]]:
        """A change for every count that both have and that is repeatable, and what is not."""
        entry = self.session.history.entry(self.tonight.id)
        values = {
            (value.key.metric, value.key.scope): value
            for value in entry.values
            if _is_exact(value) and self.spec.wants(value.key.metric, value.key.scope)
        }
        if not values:
            return (), ()
        _add(self.new, entry, values)
        self._count(self.base, self.old, list(values), entry)
        # What would fail the night is counted once more.
        if doubtful := [key for key in values if self._is_beyond(key)]:
            for version, counts in ((self.base, self.old), (self.present, self.new)):
                self._count(version, counts, doubtful, entry)
        lost = sorted({metric for metric, _ in values.keys() - self.old.keys()})
        if lost and not self.uncounted:
            self.uncounted[Uncounted("unknown", ", ".join(lost))] = None
        changes = [self._change(values[key]) for key in values if self._repeats(key)]
        return tuple(changes), tuple(self.uncounted)

    def _count(self, version: Version, counts: Counts, keys: Sequence[Key], tonight: Entry) -> None:
        """One run of the passes that count these; all of them together have the workload's budget once more."""
        budget = min(self.spec.budget - (time.monotonic() - self.began), self.session.left)
        if budget <= 0:
            self.uncounted[Uncounted("budget-spent", version.name)] = None
            return
        counting = (EXACT[metric] for metric, _ in keys)
        passes: tuple[PassName, ...] = tuple(
            dict.fromkeys(["timing", *counting])
        )  # how many iterations are counted
        request = replace(
            self.spec,
            command=version.command,
            cwd=version.cwd,
            env=version.environment(),
            passes=passes,
            targets=None,
            budget=budget,
        )
        into = self.session.folder / EXACT_FOLDER / clean_name(self.spec.name)
        done = profile_process.profile_once(request, into, self.session.progress.tick)
        if not done.ok or done.document is None:
            reason = done.reason.splitlines()[0] if done.reason else done.ending
            self.uncounted[Uncounted("failed", version.name, reason)] = None
            return
        entry = entry_of(done.document)
        counted = entry.facts.get(COUNTED)
        if counted not in (None, tonight.facts.get(COUNTED)):  # a mean over four is no mean over sixteen
            self.uncounted[Uncounted("failed", version.name, OTHERWISE)] = None
            keys = [key for key in keys if key[0] not in _COUNTS]
        _add(counts, entry, keys)

    def _is_beyond(self, key: Key) -> bool:
        old, new = self.old.get(key), self.new.get(key)
        return bool(old and new) and abs(median(new or []) - median(old or [])) > self._floor(key)

    def _repeats(self, key: Key) -> bool:
        if key not in self.old or key not in self.new:
            return False
        for counts in (self.old[key], self.new[key]):
            apart = max(counts) - min(counts)
            if apart > AGREE * self._floor(key):
                apart = apart / median(counts) if median(counts) else apart
                self.uncounted[Uncounted("scatters", key[0], apart=apart)] = None
                return False
        return True

    def _floor(self, key: Key) -> float:
        return self.spec.rule(*key).floor(median(self.old[key]))

    def _change(self, value: Value) -> Change:
        key = value.key.metric, value.key.scope
        rule = self.spec.rule(*key)
        rule = replace(rule, better=rule.better or value.better)
        return _exact_change((self.old[key], self.new[key]), key[0], rule, value.unit, key[1])


def _exact_change(
    sides: tuple[list[float], list[float]], metric: str, rule: NightRule, unit: str, scope: Scope = RUN
) -> Change:
    """From the counts before to those after, which have no interval."""
    floor = rule.floor(median(sides[0]))
    shift = Interval(*3 * (median(sides[1]) - median(sides[0]),))
    word = decide(shift, floor, around=0)
    change = change_between(sides, shift, word, floor, metric, rule.better or "lower", unit, scope)
    return replace(change, detectable=change.floor or None)


def _add(counts: Counts, entry: Entry, keys: Sequence[Key] | Mapping[Key, Value]) -> None:
    for value in entry.values:
        key = value.key.metric, value.key.scope
        if _is_exact(value) and key in keys:
            counts.setdefault(key, []).append(value.value)


def _is_exact(value: Value) -> bool:
    """Whether it is of the run or a region, nothing contradicts it, and it was counted and not sampled."""
    metric, scope = value.key.metric, value.key.scope
    if metric not in EXACT or scope.kind not in ("run", "region") or value.doubt is not None:
        return False
    return metric not in _COUNTS or value.quality == "simulated"

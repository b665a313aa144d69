"""Each workload beside the last good commit, in turn: what decides a night, from the first one on.

What a noisy hour disturbs, it disturbs in both. So the decision needs no past: the history is context, drift and plots.
The last good commit is the newest one whose night was decided and did not regress. A regression, and what could not be
decided, is held against the commit before it night by night, and so stands until it is gone or accepted.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.formatting import format_figures
from profkit.core.run_folder import clean_name
from profkit.core.types import Change, Entry, MetricOutcome, Outcome, Scope, SeriesKey
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import PairsSpec, WorkloadSpec
from profkit.regression.nightly.exact import EXACT, ExactCounts
from profkit.regression.nightly.judge import WorkloadPast
from profkit.regression.nightly.session import EXACT_FOLDER, PAIRS_FOLDER, NightSession, PairedWorkload
from profkit.regression.paired.checkout import CheckoutSpec, NoCheckout, no_repository, repository_of
from profkit.regression.paired.first_runs import warm_up
from profkit.regression.paired.git import git_line, is_dirty, resolve_commit
from profkit.regression.paired.interleave import MOST_PAIRS, TIME, PairedOptions, PairedRuns
from profkit.regression.paired.one_run import RunOptions
from profkit.regression.paired.version import version_of
from profkit.regression.times import microseconds

PAIRED = "paired"  # the code of what the pairs decided
EXACTLY = "exact"  # of what was counted beside the base
SAME_CODE = "same-code"  # the code of a candidate regression of the very commit that was good before
TONIGHT = "HEAD"
PARENT = "~1"  # of the first night's commit: what that was held against, where nobody names a commit
# Not what could not be decided: its commit may be slower, and to hold the next night against it would hide that.
GOOD: tuple[Outcome, ...] = ("pass", "improved", "new")

MetricScope = tuple[str, Scope]


@dataclass(frozen=True)
class Base:
    """The commit that tonight is held against, or why there is none."""

    commit: str | None
    reason: str = ""
    fix: str | None = None
    same: bool = (
        False  # it is tonight's own commit: there is nothing to run, and no code that could be slower
    )


def pair_workload(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> PairedWorkload:
    """Tonight's checkout and the base in turn; never raises for what prevents it."""
    base = base_of(session, spec, tonight)
    if base.commit is None or base.same:
        return PairedWorkload(base.commit, why=base.reason, fix=base.fix, same=base.same)
    config = session.config
    if config.paired == "suspects" and not config.confirm.enabled:
        return PairedWorkload(base.commit, why="re-runs are turned off", fix="confirm: {enabled: true}")
    if session.left <= 0:
        return PairedWorkload(base=base.commit, why="the night's budget is used up", fix="budget: SECONDS")
    if config.paired == "always":
        options = pair_options(spec, config.pairs, min(config.pairs.budget, session.left))
    else:
        budget = min(config.confirm.budget, session.left)
        options = pair_options(spec, config.pairs, budget, config.confirm.rounds)
    folder = session.folder / PAIRS_FOLDER / clean_name(spec.name)
    checkout = CheckoutSpec(config.confirm.checkout, config.confirm.setup, config.confirm.setup_timeout)
    exact: tuple[Change, ...] = ()
    told: tuple[str, ...] = ()
    try:
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(
                    version_of(
                        name, spec.command, spec.cwd, checkout, folder, session.progress.tick, spec.env
                    )
                )
                for name in (base.commit, None)
            )
            notes = warm_up(first, second, options, folder, session.progress)
            result = PairedRuns(first, second, options, folder, session.progress).run()
            if result.interrupted:
                raise KeyboardInterrupt
            if config.paired == "always":
                exact, told = ExactCounts(session, spec, tonight, first, second).compare()
    except NoCheckout as fault:
        return PairedWorkload(base=base.commit, why=fault.reason, fix=fault.fix)
    except ProfkitError as fault:
        return PairedWorkload(base=base.commit, why=fault.message.splitlines()[0], fix=fault.fix)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(session.folder / EXACT_FOLDER, ignore_errors=True)
        with contextlib.suppress(OSError):  # of another workload something is still there
            folder.parent.rmdir()
    notes = [*notes, *result.notes, *told]
    return PairedWorkload(base.commit, result.changes, result.pairing, notes=tuple(notes), exact=exact)


def pair_options(
    spec: WorkloadSpec, pairs: PairsSpec, budget: float, most: int = MOST_PAIRS
) -> PairedOptions:
    """How a night runs pairs of this workload: `budget` seconds and `most` pairs at most."""
    sampling = min(spec.timing or pairs.sampling, pairs.sampling)
    floor = spec.rule(TIME, Scope()).relative
    run = RunOptions(sampling=sampling, precision=spec.precision, timeout=spec.timeout)
    return PairedOptions(budget, floor, most, run=run)


def base_of(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> Base:
    """The commit to hold tonight against.

    The one that the file pins (`baseline`), else that of the last good night since the last accepted change, else the
    one before the first night's: on a first night HEAD~1, and the same again until a night is good.
    """
    if spec.on is not None:
        return Base(None, "it runs elsewhere (on:), and pairs are run here")
    root = repository_of(spec.cwd)
    if root is None:
        fault = no_repository(spec.cwd, "git init, or paired: suspects")
        return Base(None, fault.reason, fault.fix)
    dirty = is_dirty(root)
    name = session.config.baseline or _last_good(session.history, spec, tonight)
    commit = resolve_commit(root, name)
    if commit is None and name.endswith(PARENT) and resolve_commit(root, name.removesuffix(PARENT)):
        return _no_parent(root)
    if commit is None:
        return Base(
            None,
            f"this clone does not have the commit {_short(name)}",
            f"git fetch origin {name.removesuffix(PARENT)}; fetch-depth: 0 in CI",
        )
    if commit == resolve_commit(root, TONIGHT) and not dirty:
        reason = (
            "a change is accepted that begins tonight"
            if name == TONIGHT
            else "nothing was committed since the last good night"
        )
        return Base(commit, f"{reason} ({commit[:12]})", same=True)
    return Base(commit)


def _no_parent(root: Path) -> Base:
    if git_line(root, "rev-parse", "--is-shallow-repository") == "true":
        return Base(
            None,
            "this clone is shallow: the commit before this one is not in it",
            "git fetch --unshallow  # in GitHub Actions: actions/checkout with fetch-depth: 0",
        )
    return Base(None, "there is no commit before this one to compare with", "baseline: COMMIT")


def _short(name: str) -> str:
    return name[:12] if len(name.removesuffix(PARENT)) == 40 else name


def _last_good(history: History, spec: WorkloadSpec, tonight: Entry) -> str:
    """The commit of the newest good night before tonight and since the last accepted change, or what stands for it."""
    accepted = [microseconds(c.since) for c in history.accepted(spec.name) if c.metric in (None, TIME)]
    since = max((time for time in accepted if time <= microseconds(tonight.started)), default=None)
    entries = [
        entry
        for entry in history.entries(HistoryFilter(spec.name))
        if entry.id != tonight.id and entry.started < tonight.started and entry.commit and not entry.dirty
    ]
    young = [entry for entry in entries if since is None or microseconds(entry.started) >= since]
    for entry in reversed(young):
        if entry.commit is not None and entry.valid and entry.outcome in GOOD:
            return entry.commit
    if since is not None:  # what was accepted is the new normal, though its own night had failed
        return young[0].commit or TONIGHT if young else TONIGHT
    return f"{young[0].commit if young else TONIGHT}{PARENT}"


# ---------------------------------------------------------------- what it decides


def with_pairs(
    outcomes: Sequence[MetricOutcome], paired: PairedWorkload | None, past: WorkloadPast
) -> list[MetricOutcome]:
    """The outcomes, with those of times as the pairs decided them; the others as the past decides.

    Of a run that is not valid (throttled) only what the pairs decided counts, and what the file names as a gate. What
    gates only where its count is exact is left out where it is not, unless it is watched.
    """
    counted = {(change.metric, change.scope) for change in paired.exact} if paired is not None else set()
    outcomes = [one for one in outcomes if (one.metric, one.scope) in counted or _by_its_past(one, past)]
    if paired is None:
        return outcomes
    if paired.same:
        return [_of_same_code(outcome, paired) for outcome in outcomes]
    changes: Mapping[MetricScope, Change] = {(c.metric, c.scope): c for c in paired.changes}
    exact: Mapping[MetricScope, Change] = {(c.metric, c.scope): c for c in paired.exact}
    decided = []
    for outcome in outcomes:
        key = outcome.metric, outcome.scope
        change = changes.get(key)
        if key in exact:
            decided.append(_decided(outcome, exact[key], paired, past))
        elif change is not None and outcome.metric == TIME:
            decided.append(_decided(outcome, change, paired, past))
        elif not past.entry.valid and outcome.metric not in past.spec.declared:
            decided.append(replace(outcome, gates=False))
        else:
            decided.append(outcome)
    return decided


def _by_its_past(outcome: MetricOutcome, past: WorkloadPast) -> bool:
    rule = past.spec.rule(outcome.metric, outcome.scope)
    return rule.gates or outcome.metric in past.spec.watches or not rule.exact


def _of_same_code(outcome: MetricOutcome, paired: PairedWorkload) -> MetricOutcome:
    """The commit of the last good night cannot have regressed: the machine did, or what is installed there."""
    if outcome.metric not in (TIME, *EXACT) or outcome.outcome not in ("regressed", "ambiguous"):
        return outcome
    commit = (paired.base or "")[:12]
    reason = f"{outcome.reason}; the code is that of the last good night ({commit}): the machine or a package changed"
    return replace(outcome, outcome="pass", code=SAME_CODE, reason=reason)


def _decided(
    outcome: MetricOutcome, change: Change, paired: PairedWorkload, past: WorkloadPast
) -> MetricOutcome:
    word, night = _outcome_of(change), past.entry
    first, nights = night, 0
    if word == "regressed":
        first, nights = _began(past, SeriesKey(night.workload, night.backend, outcome.metric, outcome.scope))
    since = f", since {first.started[:10]}" if nights > 1 else ""
    told = f"; by its past: {outcome.reason}" if word == "pass" and outcome.outcome == "regressed" else ""
    if outcome.metric == TIME:
        count = paired.pairing.pairs if paired.pairing is not None else 0
        beside = (paired.base or "")[:12]
        code, reason = (
            PAIRED,
            f"{_size(change)} beside {beside} in {count} pairs{since}{_meaning(change, word)}",
        )
    else:
        code, reason = EXACTLY, f"{change.reason}{since}"
    rule = past.spec.rule(outcome.metric, outcome.scope)
    return replace(
        outcome,
        outcome=word,
        gates=rule.gates or rule.exact,
        code=code,
        reason=reason + told,
        step="same-night",
        value=change.candidate.value,
        expected=change.baseline.value,
        detectable=change.detectable,
        change=change,
        since=first.started if word in ("regressed", "ambiguous") else None,
        commit=first.commit if word in ("regressed", "ambiguous", "improved") else None,
        good_commit=paired.base,
        nights=nights,
    )


def _began(past: WorkloadPast, key: SeriesKey) -> tuple[Entry, int]:
    """The first of the nights in a row, tonight's the last, whose pairs said that this time regressed; how many."""
    first, nights = past.entry, 1
    words = past.words.get(key, {})
    for entry in reversed(past.entries[:-1]):
        if entry.outcome == "regressed" and words.get(entry.id) == "different":
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


def _meaning(change: Change, word: Outcome) -> str:
    if word == "ambiguous":
        return f": whether it is more than {format_figures(100 * change.floor, 2)} % cannot be told"
    return ""


def _size(change: Change) -> str:
    if change.ratio is None or change.low is None or change.high is None:
        return "no interval"
    size, low, high = (100 * (value - 1) for value in (change.ratio, change.low, change.high))
    return f"{size:+.1f} % [{low:+.1f}, {high:+.1f}]"


def pairs_note(paired: PairedWorkload | None) -> tuple[str, ...]:
    """What is said of pairs that were not run, or not only of the code."""
    if paired is None:
        return ()
    if paired.why:
        fix = f" (fix: {paired.fix})" if paired.fix else ""
        return (f"not run in pairs: {paired.why}{fix}",)
    return paired.notes

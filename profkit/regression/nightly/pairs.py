"""Each workload beside the last good commit, in turn: what decides a night, from the first one on.

What a noisy hour disturbs, it disturbs in both. So the decision needs no past: the history is context, drift and plots.
The last good commit is the newest one whose night did not regress. A regression is held against the commit before it
night by night, and so stands until it is gone or accepted.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profkit.core.errors import ProfkitError
from profkit.core.formatting import format_figures
from profkit.core.run_folder import clean_name
from profkit.core.types import Change, Entry, MetricOutcome, Outcome, Scope
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import PairsSpec, WorkloadSpec
from profkit.regression.nightly.session import NightSession, PairedWorkload
from profkit.regression.paired.checkout import CheckoutSpec, NoCheckout, no_repository, repository_of
from profkit.regression.paired.compare_versions import warm_up
from profkit.regression.paired.git import is_dirty, resolve_commit
from profkit.regression.paired.interleave import TIME, PairedRuns, PairOptions
from profkit.regression.paired.one_run import RunOptions
from profkit.regression.paired.version import version_of

PAIRS_FOLDER = "pairs"
PAIRED = "paired"  # the code of what the pairs decided
FIRST_BASE = "HEAD~1"  # of a first night, where nobody names a commit
GOOD: tuple[Outcome, ...] = ("pass", "improved", "new", "ambiguous")


@dataclass(frozen=True)
class Base:
    """The commit that tonight is held against, or why there is none."""

    commit: str | None
    reason: str = ""
    fix: str | None = None


def pair_workload(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> PairedWorkload:
    """Tonight's checkout and the base in turn; never raises for what prevents it."""
    base = base_of(session, spec, tonight)
    if base.commit is None:
        return PairedWorkload(why=base.reason, fix=base.fix)
    pairs = session.config.pairs
    if session.left <= 0:
        return PairedWorkload(base=base.commit, why="the night's budget is used up", fix="budget: SECONDS")
    options = _options_of(spec, pairs, min(pairs.budget, session.left))
    folder = session.folder / PAIRS_FOLDER / clean_name(spec.name)
    checkout = CheckoutSpec(
        session.config.confirm.checkout, session.config.confirm.setup, session.config.confirm.setup_timeout
    )
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
    except NoCheckout as fault:
        return PairedWorkload(base=base.commit, why=fault.reason, fix=fault.fix)
    except ProfkitError as fault:
        return PairedWorkload(base=base.commit, why=fault.message.splitlines()[0], fix=fault.fix)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # of another workload something is still there
            folder.parent.rmdir()
    if result.interrupted:
        raise KeyboardInterrupt
    return PairedWorkload(base.commit, result.changes, result.pairing, notes=(*notes, *result.notes))


def _options_of(spec: WorkloadSpec, pairs: PairsSpec, budget: float) -> PairOptions:
    sampling = min(spec.timing or pairs.sampling, pairs.sampling)
    floor = spec.rule(TIME, Scope()).relative
    return PairOptions(
        budget,
        floor,
        run=RunOptions(sampling=sampling, precision=spec.precision, timeout=spec.timeout),
    )


def base_of(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> Base:
    """The commit to hold tonight against.

    The one that the file pins (`baseline`), else that of the last good night since the last accepted change, else on a
    first night the commit before tonight's.
    """
    if spec.on is not None:
        return Base(None, "it runs elsewhere (on:), and pairs are run here")
    root = repository_of(spec.cwd)
    if root is None:
        fault = no_repository(spec.cwd, "git init, or paired: suspects")
        return Base(None, fault.reason, fault.fix)
    dirty = is_dirty(root)
    name = session.config.baseline or _last_good(session.history, spec, tonight) or FIRST_BASE
    commit = resolve_commit(root, name)
    if commit is None and name == FIRST_BASE:
        return Base(None, "there is no commit before this one to compare with", "baseline: COMMIT")
    if commit is None:
        return Base(
            None,
            f"this clone does not have the commit {name[:12]}",
            f"git fetch origin {name}; fetch-depth: 0 in CI",
        )
    if commit == resolve_commit(root, "HEAD") and not dirty:
        return Base(None, SAME_COMMIT.format(commit=commit[:12]))
    return Base(commit)


SAME_COMMIT = "nothing was committed since the last good night ({commit})"


def _last_good(history: History, spec: WorkloadSpec, tonight: Entry) -> str | None:
    """The commit of the newest good night before tonight that no accepted change is younger than."""
    accepted = [c for c in history.accepted(spec.name) if c.metric in (None, TIME)]
    since = max((change.since for change in accepted), default="")
    entries = [
        entry
        for entry in history.entries(HistoryFilter(spec.name))
        if entry.id != tonight.id and entry.started < tonight.started and entry.commit and not entry.dirty
    ]
    for entry in reversed(entries):
        if entry.started[: len(since)] >= since and entry.valid and entry.outcome in GOOD:
            return entry.commit
    # What was accepted is the new normal, though its own night had failed.
    after = [entry for entry in entries if since and entry.started[: len(since)] >= since]
    return after[0].commit if after else None


# ---------------------------------------------------------------- what it decides


def with_pairs(
    outcomes: Sequence[MetricOutcome], paired: PairedWorkload | None, night: Entry
) -> list[MetricOutcome]:
    """The outcomes, with those of times as the pairs decided them; the others as the past decides."""
    if paired is None or not paired.changes:
        return list(outcomes)
    changes: Mapping[tuple[str, Scope], Change] = {(c.metric, c.scope): c for c in paired.changes}
    return [
        _decided(outcome, changes[outcome.metric, outcome.scope], paired, night)
        if outcome.metric == TIME and (outcome.metric, outcome.scope) in changes
        else outcome
        for outcome in outcomes
    ]


def _decided(outcome: MetricOutcome, change: Change, paired: PairedWorkload, night: Entry) -> MetricOutcome:
    word = _outcome_of(change)
    base = (paired.base or "")[:12]
    count = paired.pairing.pairs if paired.pairing is not None else 0
    return replace(
        outcome,
        outcome=word,
        code=PAIRED,
        reason=f"{_size(change)} beside {base} in {count} pairs{_meaning(change, word)}",
        step="same-night",
        value=change.candidate.value,
        expected=change.baseline.value,
        detectable=change.detectable,
        change=change,
        since=night.started if word in ("regressed", "ambiguous") else None,
        commit=night.commit if word in ("regressed", "ambiguous", "improved") else None,
        good_commit=paired.base,
        nights=0,
    )


def _outcome_of(change: Change) -> Outcome:
    """By the interval. What is neither beyond nor within the floor passes where it is more likely within."""
    if change.word == "different":
        return "regressed" if change.course == "worse" else "improved"
    beyond = change.ratio is not None and change.ratio - 1 > change.floor
    return "ambiguous" if change.word == "ambiguous" and beyond else "pass"


def _meaning(change: Change, word: Outcome) -> str:
    if word == "ambiguous":
        return f": more than {format_figures(100 * change.floor, 2)} % or less cannot be told"
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

"""Each workload beside the last good commit, in turn: what decides a night, from the first one on.

What a noisy hour disturbs, it disturbs in both. So the decision needs no past: the history is context, drift and plots.
The last good commit is the newest one whose night was decided and did not regress. A regression, and what could not be
decided, is held against the commit before it night by night, and so stands until it is gone or accepted.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.files.safe_folder import make_parents
from profkit.core.formatting import format_figures, plural
from profkit.core.run_folder import clean_name
from profkit.core.types import Change, Entry, MetricOutcome, Outcome, Scope, SeriesKey
from profkit.regression.nightly.base import NOT_COMPARED, base_of
from profkit.regression.nightly.config import (
    PAIRS_SECONDS,
    SUSPECT_PAIRS,
    SUSPECT_SECONDS,
    PairsSpec,
    WorkloadSpec,
)
from profkit.regression.nightly.exact import EXACT, ExactCounts
from profkit.regression.nightly.judge import WorkloadPast
from profkit.regression.nightly.session import EXACT_FOLDER, PAIRS_FOLDER, NightSession, PairedWorkload
from profkit.regression.paired.checkout import NoCheckout
from profkit.regression.paired.decide import FIRST_ROUNDS, confirm
from profkit.regression.paired.first_runs import SPARE, warm_up
from profkit.regression.paired.interleave import (
    MEMORY,
    MOST_PAIRS,
    TIME,
    PairedOptions,
    PairedResult,
    PairedRuns,
)
from profkit.regression.paired.one_run import RunOptions
from profkit.regression.paired.version import version_of
from profkit.reporting.views.comparison.words import fact_text, size_text

PAIRED = "paired"  # the code of what the pairs decided
EXACTLY = "exact"  # of what was counted beside the base
FIRST = "first-night"  # of a new one, where nothing was good before
SAME_CODE = "same-code"  # of what was measured of the very commit that was good before
# The options of `profkit compare` that the fixes of pairs name; here the nightly's file has them.
_SETUP = re.compile(r"--setup (?P<words>'[^']*'|\S+)")
_MODULES = re.compile(r"PYTHONPATH=(?P<folder>.+) profkit compare \.\.\.")

BUSY = 0.05  # the share of the time of all pairs in which they waited for a processor that is worth a word

MetricScope = tuple[str, Scope]


def pair_workload(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> PairedWorkload:
    """Tonight's checkout and the base in turn; never raises for what prevents it."""
    base = base_of(session.config, session.history, spec, tonight)
    config = session.config
    if base.commit is None or base.same:
        return PairedWorkload(
            base.commit, why=base.reason, fix=base.fix, same=base.same, failed=base.failed, first=base.first
        )
    if session.left <= 0:
        return PairedWorkload(
            base.commit, why="the night's budget is used up", fix="budget: SECONDS", failed=True
        )
    usual = PAIRS_SECONDS if config.paired == "always" else SUSPECT_SECONDS
    most = SUSPECT_PAIRS if config.paired == "suspects" else MOST_PAIRS
    budget = min(config.pairs.budget or usual, session.left)
    options = pair_options(spec, config.pairs, budget, config.pairs.rounds or most)
    folder = session.folder / PAIRS_FOLDER / clean_name(spec.name)
    if (known := session.no_checkout.get((spec.cwd, base.commit))) is not None:
        return replace(known, failed=not base.first, first=base.first)  # the same setup fails again
    exact: tuple[Change, ...] = ()
    told: tuple[str, ...] = ()
    try:
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(
                    version_of(
                        name, spec.command, spec.cwd, config.pairs, folder, session.progress.tick, spec.env
                    )
                )
                for name in (base.commit, None)
            )
            began = time.monotonic()
            notes = warm_up(first, second, replace(options, budget=math.inf), folder, session.progress)
            options = _with_room(session, spec, options, time.monotonic() - began)
            result = PairedRuns(first, second, options, folder, session.progress).run()
            if result.interrupted:
                raise KeyboardInterrupt
            if config.paired == "always":
                exact, told = ExactCounts(session, spec, tonight, first, second).compare()
    except NoCheckout as fault:
        fix = _keep_log(session, spec, fault.log) or fault.fix
        if fix is None and config.pairs.setup:
            fix = f"pairs: {{setup: [...]}}  # it is {shlex.join(config.pairs.setup)}"
        none = PairedWorkload(base.commit, why=fault.reason, fix=fix, failed=not base.first, first=base.first)
        session.no_checkout[spec.cwd, base.commit] = none
        return none
    except ProfkitError as fault:
        why, fix = fault.message.splitlines()[0], _key_for(fault.fix)
        return PairedWorkload(base.commit, why=why, fix=fix, failed=not base.first, first=base.first)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(session.folder / EXACT_FOLDER, ignore_errors=True)
        with contextlib.suppress(OSError):  # of another workload something is still there
            folder.parent.rmdir()
    changes = tuple(_by_own_floor(change, spec) for change in result.changes)
    seen = tuple(map(fact_text, (*notes, *result.notes)))
    done = PairedWorkload(base.commit, changes, result.pairing, notes=(*seen, *told), exact=exact)
    return _too_few(done, result) if result.pairing.pairs < FIRST_ROUNDS else done


def _with_room(
    session: NightSession, spec: WorkloadSpec, options: PairedOptions, seconds: float
) -> PairedOptions:
    """The options with room for four pairs, each of `seconds`, where the file says no budget of pairs."""
    if session.config.paired != "always" or session.config.pairs.budget is not None:
        return options
    needed = min(SPARE * FIRST_ROUNDS * seconds, spec.budget, session.left)
    return replace(options, budget=max(options.budget, needed))


def _by_own_floor(change: Change, spec: WorkloadSpec) -> Change:
    """The change of the memory, which pairs decide by a floor of their own, by that of the nightly's rules."""
    if change.metric != MEMORY:
        return change
    new, old = (
        [value for group in side.groups for value in group] for side in (change.candidate, change.baseline)
    )
    rounds = list(zip(new, old, strict=True))
    rule = spec.rule(MEMORY, change.scope)
    return confirm(rounds, rule, "lower", change.unit, len(rounds), spent=True).change or change


def _too_few(done: PairedWorkload, result: PairedResult) -> PairedWorkload:
    """Fewer pairs than decide anything: why, and the budget that has room for them."""
    pairs = result.pairing.pairs
    needed = math.ceil(SPARE * FIRST_ROUNDS * result.pairing.seconds / max(1, pairs))
    why = (
        f"{plural(pairs, 'pair')} in the budget of {result.pairing.budget:.0f} s, and nothing can be said of "
        f"fewer than {FIRST_ROUNDS}"
    )
    return replace(done, why=why, fix=f"pairs: {{budget: {needed}}}", failed=True)


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
    if fix is None:
        return None
    if match := _SETUP.match(fix):
        words = match["words"]
        return f"pairs: {{setup: [{words if ' ' not in words else f'sh, -c, {words}'}]}}"
    if match := _MODULES.fullmatch(fix):
        return f"env: {{PYTHONPATH: {match['folder']}}}"
    return fix.replace("--timeout SECONDS", "timeout: SECONDS")


def pair_options(
    spec: WorkloadSpec, pairs: PairsSpec, budget: float, most: int = MOST_PAIRS
) -> PairedOptions:
    """How a night runs pairs of this workload: `budget` seconds and `most` pairs at most."""
    sampling = min(spec.timing or pairs.sampling, pairs.sampling)
    floor = spec.rule(TIME, Scope()).relative
    run = RunOptions(sampling=sampling, precision=spec.precision, timeout=spec.timeout)
    return PairedOptions(budget, floor, most, run=run)


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
    if paired.failed or (paired.first and paired.why):
        return [_not_compared(outcome, paired) for outcome in outcomes]
    changes: Mapping[MetricScope, Change] = {(c.metric, c.scope): c for c in paired.changes}
    exact: Mapping[MetricScope, Change] = {(c.metric, c.scope): c for c in paired.exact}
    decided = []
    for outcome in outcomes:
        key = outcome.metric, outcome.scope
        change = changes.get(key)
        if key in exact:
            decided.append(_decided(outcome, exact[key], paired, past))
        elif change is not None and outcome.metric in (TIME, MEMORY):
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
    if outcome.metric not in (TIME, *EXACT):
        return outcome
    if outcome.outcome not in ("regressed", "ambiguous"):
        return replace(outcome, outcome="pass", code=SAME_CODE, reason=paired.why, detectable=None)
    commit = (paired.base or "")[:12]
    reason = f"{outcome.reason}; the code is that of the last good night ({commit}): the machine or a package changed"
    return replace(outcome, outcome="pass", code=SAME_CODE, reason=reason)


def _not_compared(outcome: MetricOutcome, paired: PairedWorkload) -> MetricOutcome:
    """What has no past either is not decided, unless no night was good yet: then there is nothing to be worse than."""
    if outcome.metric != TIME or outcome.outcome != "new":
        return outcome
    if paired.first:
        later = "later nights are held against tonight's commit"
        return replace(outcome, code=FIRST, reason=f"{paired.why.rstrip('.')}: {later}")
    return replace(outcome, outcome="ambiguous", code=NOT_COMPARED, reason=f"not compared: {paired.why}")


def _decided(
    outcome: MetricOutcome, change: Change, paired: PairedWorkload, past: WorkloadPast
) -> MetricOutcome:
    word, night = _outcome_of(change), past.entry
    first, nights = night, 0
    if word == "regressed":
        first, nights = _began(past, SeriesKey(night.workload, night.backend, outcome.metric, outcome.scope))
    since = f", since {first.started[:10]}" if nights > 1 else ""
    told = f"; by its past: {outcome.reason}" if word == "pass" and outcome.outcome == "regressed" else ""
    if outcome.metric in (TIME, MEMORY):
        count = paired.pairing.pairs if paired.pairing is not None else 0
        beside = (paired.base or "")[:12]
        code, reason = (
            PAIRED,
            f"{_size(change)} beside {beside} in {count} pairs{since}{_meaning(change, word, paired)}",
        )
    else:
        size = size_text(change).partition(",")[0]
        code, reason = EXACTLY, f"{size} beside {(paired.base or '')[:7]}, exact{since}"
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


def _meaning(change: Change, word: Outcome, paired: PairedWorkload) -> str:
    if word != "ambiguous":
        return ""
    told = f": whether it is more than {format_figures(100 * change.floor, 2)} % cannot be told"
    waited = paired.pairing.waited if paired.pairing is not None else None
    if waited is None or waited < BUSY:
        return told
    return f"{told}; other programs had the processors for {100 * waited:.0f} % of the time"


def what_would_decide(outcomes: Sequence[MetricOutcome], paired: PairedWorkload) -> str | None:
    """What to write into the nightly's file where the pairs of a metric that gates could not decide."""
    for outcome in outcomes:
        if outcome.outcome != "ambiguous" or not outcome.gates:
            continue
        if paired.failed:
            return paired.fix
        if outcome.code == PAIRED and outcome.change is not None and paired.pairing is not None:
            larger = format_figures(200 * outcome.change.floor, 2)
            budget = 2 * math.ceil(paired.pairing.budget)
            fix = f"pairs: {{budget: {budget}}} or more; or floors: {{{outcome.metric}: {larger} %}}"
            busy = (paired.pairing.waited or 0.0) >= BUSY
            return f"keep other programs off this machine meanwhile; or {fix}" if busy else fix
    return None


def _size(change: Change) -> str:
    if change.ratio is None or change.low is None or change.high is None:
        return "no interval"
    size, low, high = (100 * (value - 1) for value in (change.ratio, change.low, change.high))
    return f"{size:+.1f} % [{low:+.1f}, {high:+.1f}]"


def pairs_note(paired: PairedWorkload | None, outcomes: Sequence[MetricOutcome]) -> tuple[str, ...]:
    """What is said of pairs that were not run, or not only of the code; nothing where an outcome says it."""
    if paired is None:
        return ()
    if not paired.why:
        return paired.notes
    told = any(o.gates and o.code in (NOT_COMPARED, SAME_CODE, FIRST) for o in outcomes)
    if told and (not paired.fix or paired.failed):
        return ()
    fix = f" (fix: {paired.fix})" if paired.fix else ""
    return (f"not run in pairs: {paired.why}{fix}",)

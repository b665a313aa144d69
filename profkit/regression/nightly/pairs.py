"""Run each workload alternately with the last good commit: this decides a night, from the first one on.

What a noisy hour disturbs, it disturbs in both. So the decision needs no past: the history is context, drift
and plots. The last good commit is the newest one whose night was decided and did not regress. A regression,
and what could not be decided, is compared with the commit before it night by night, and so stands until it is
gone or accepted.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from profkit.core.errors import ProfkitError
from profkit.core.pairs import FIRST_ROUNDS
from profkit.core.run_folder import clean_name
from profkit.core.types import (
    Change,
    Entry,
    Fact,
    MetricOutcome,
    NightPairs,
    Outcome,
    Scope,
)
from profkit.core.types.history import EXACTLY, FIRST, GOOD, NOT_COMPARED, PAIRED, SAME_CODE
from profkit.profiling.plain_run import RunOptions
from profkit.regression.history import History, HistoryFilter
from profkit.regression.history.rows import microseconds
from profkit.regression.nightly.config import (
    PAIRS_SECONDS,
    NightConfig,
    WorkloadSpec,
)
from profkit.regression.nightly.exact import EXACT, ExactCounts, counted_beside, not_measured
from profkit.regression.nightly.judge import WorkloadPast
from profkit.regression.nightly.session import EXACT_FOLDER, PAIRS_FOLDER, NightSession
from profkit.regression.paired.checkout import (
    DEEPER,
    NoCheckout,
    git_line,
    is_dirty,
    no_repository,
    repository_of,
    resolve_commit,
    version_of,
)
from profkit.regression.paired.compare_versions import what_would_decide as decided_by
from profkit.regression.paired.interleave import MEMORY, TIME, PairedOptions, PairedRuns
from profkit.regression.paired.one_run import SPARE, warm_up

TONIGHT = "HEAD"
# What the nightly's file calls the option that a fix names.
_KEYS = {"--setup": "pairs: {setup: [...]}", "--timeout": "timeout: SECONDS"}
PARENT = "~1"  # of the first night's commit: what that was held against, where nobody names a commit

MetricScope = tuple[str, Scope]


# ---------------------------------------------------------------- the base


def base_of(config: NightConfig, history: History, spec: WorkloadSpec, tonight: Entry) -> NightPairs:
    """Return the commit to compare tonight's run with, or why there is none.

    The one that the file pins (`baseline`), else that of the last good night since the last accepted change, else
    the one before the first night's: on a first night HEAD~1, and the same again until a night is good.
    """
    if spec.on is not None:
        return NightPairs(why=Fact("pairs elsewhere"))
    root = repository_of(spec.cwd)
    if root is None:
        fault = no_repository(spec.cwd)
        return NightPairs(why=Fact.message(fault.message), fix=f"{fault.fix}; or paired: never")
    names = [config.baseline] if config.baseline else _good_commits(history, spec, tonight)
    name = next((name for name in names if resolve_commit(root, name)), names[0])
    bare = name.removesuffix(PARENT)
    commit, here, first = resolve_commit(root, name), resolve_commit(root, TONIGHT), name.endswith(PARENT)
    if commit is not None:
        if commit != here or is_dirty(root):
            return NightPairs(commit, first=first)
        accepted = name == TONIGHT
        why = Fact.of("pairs accepted-tonight" if accepted else "pairs same-code", base=commit[:12])
        return NightPairs(commit, why, same=True)
    shallow = git_line(root, "rev-parse", "--is-shallow-repository") == "true"
    if here is None or (first and not shallow and resolve_commit(root, bare)):
        return NightPairs(why=Fact("pairs no-parent"), first=True)
    fetch = DEEPER.partition("  #")[0] if shallow else f"git fetch origin {bare}"
    accept = f"profkit history accept {shlex.quote(spec.name)} --because 'rewritten'"
    fix = f"{fetch}  # in CI fetch-depth: 0; or, where it is gone for good, {accept}"
    lost = Fact.of("pairs lost-commit", commit=name[:12] if len(bare) == 40 else name)
    return NightPairs(why=lost, fix=fix, failed=True)


def _good_commits(history: History, spec: WorkloadSpec, tonight: Entry) -> list[str]:
    """Return the commits of good nights before tonight and since the last accepted change, the newest first.

    Without one, what stands for them. Several, since the newest one may be gone after a forced push.
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
    """Run tonight's checkout and the base alternately; return what prevents it instead of raising it.

    Raises KeyboardInterrupt after a Ctrl-C.
    """
    config, base = session.config, base_of(session.config, session.history, spec, tonight)
    if base.base is None or base.same:
        return base
    if session.left <= 0:
        return replace(base, why=Fact("pairs budget-spent"), fix="budget: SECONDS", failed=True)
    if (failure := session.no_checkout.get((spec.cwd, base.base))) is not None:
        return replace(failure, failed=not base.first, first=base.first)  # the same setup fails again
    options = pair_options(session, spec)
    folder = session.folder / PAIRS_FOLDER / clean_name(spec.name)
    logs = session.folder / "runs" / clean_name(spec.name)
    exact: tuple[Change, ...] = ()
    uncounted: tuple[Fact, ...] = ()
    try:
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(
                    version_of(
                        name, spec.command, spec.cwd, config.pairs, logs, session.progress.tick, spec.env
                    )
                )
                for name in (base.base, None)
            )
            began = time.monotonic()
            if warm_up(first, second, options.run, folder, session.progress) is not None:
                return replace(base, why=Fact.of("pairs same-files", base=base.base[:12]), same=True)
            took = time.monotonic() - began
            options = _with_room(session, spec, options, took)
            result = PairedRuns(first, second, options, folder, session.progress, took).run()
            if result.interrupted:
                raise KeyboardInterrupt
            exact, uncounted = ExactCounts(session, spec, tonight, first, second).compare()
            exact += tuple(counted_beside(result.changes, spec, exact))
            uncounted += tuple(not_measured(session, spec, tonight, exact))
    except NoCheckout as fault:
        fix = shlex.join(["cat", str(fault.log)]) if fault.log is not None else fault.fix
        none = replace(base, why=Fact.message(fault.message), fix=fix, failed=not base.first)
        session.no_checkout[spec.cwd, base.base] = none
        return none
    except ProfkitError as fault:
        option = (fault.fix or "").partition(" ")[0]
        why, fix = Fact.message(fault.message.splitlines()[0]), _KEYS.get(option, fault.fix)
        return replace(base, why=why, fix=fix, failed=not base.first)
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
        uncounted=uncounted,
    )
    if result.pairing.pairs >= FIRST_ROUNDS:
        return done
    needed = math.ceil(SPARE * FIRST_ROUNDS * result.pairing.seconds / max(1, result.pairing.pairs))
    why = Fact.of("pairs few-pairs", pairs=result.pairing.pairs, seconds=result.pairing.budget)
    return replace(done, why=why, fix=f"pairs: {{budget: {needed}}}", failed=True)


def pair_options(session: NightSession, spec: WorkloadSpec) -> PairedOptions:
    """Return the options for the pairs of a workload in this night."""
    pairs = session.config.pairs
    budget = min(pairs.budget or PAIRS_SECONDS, session.left)
    sampling = min(spec.timing or pairs.sampling, pairs.sampling)
    run = RunOptions(sampling=sampling, precision=spec.precision, timeout=spec.timeout)
    memory = spec.rule(MEMORY)
    return PairedOptions(budget, spec.rule(TIME).relative, run=run, memory=memory, counts="always")


def _with_room(
    session: NightSession, spec: WorkloadSpec, options: PairedOptions, seconds: float
) -> PairedOptions:
    """Widen the budget to fit four pairs, each of `seconds`, unless the file sets one for pairs."""
    if session.config.pairs.budget is not None:
        return options
    needed = min(SPARE * FIRST_ROUNDS * seconds, spec.budget, session.left)
    return replace(options, budget=max(options.budget, needed))


# ---------------------------------------------------------------- what it decides


def with_pairs(
    outcomes: Sequence[MetricOutcome], pairs: NightPairs | None, past: WorkloadPast
) -> list[MetricOutcome]:
    """Return the outcomes: of times as the pairs decided them, of others as the past decides.

    If a run is not valid (throttled), only what the pairs decided counts, and what the file names as a gate. A
    metric that gates only where its count is exact is left out where it is not, unless it is watched.
    """
    counted = {(change.metric, change.scope) for change in pairs.exact} if pairs is not None else set()
    by_count = {
        metric.metric
        for metric in outcomes
        if (rule := past.spec.rule(metric.metric)).exact
        and not rule.gates
        and metric.metric not in past.spec.watches
    }
    outcomes = [
        metric
        for metric in outcomes
        if (metric.metric, metric.scope) in counted or metric.metric not in by_count
    ]
    if pairs is None:
        return outcomes
    if pairs.same:
        return [_of_same_code(outcome, pairs) for outcome in outcomes]
    prevented = pairs.failed or bool(pairs.first and pairs.why)
    times = () if prevented else (c for c in pairs.changes if c.metric in (TIME, MEMORY))
    changes: Mapping[MetricScope, Change] = {(c.metric, c.scope): c for c in (*times, *pairs.exact)}
    decided = []
    judged = {(metric.metric, metric.scope) for metric in outcomes}
    # What was counted beside the pairs alone has no past.
    alone = [
        MetricOutcome(m, "new", "new", scope=s) for m, s in changes if (m, s) not in judged and m in EXACT
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


def _of_same_code(outcome: MetricOutcome, pairs: NightPairs) -> MetricOutcome:
    """Pass a metric of the last good night's own commit: the code cannot have regressed, only the machine."""
    if outcome.metric not in (TIME, *EXACT):
        return outcome
    worse = outcome.outcome in ("regressed", "ambiguous")
    same = replace(outcome, outcome="pass", code=SAME_CODE, good_commit=pairs.base)
    return replace(same, by_past=outcome.code) if worse else replace(same, detectable=None)


def _not_compared(outcome: MetricOutcome, pairs: NightPairs) -> MetricOutcome:
    """Mark a time without a past as undecided, unless no night was good yet: then nothing can be worse."""
    if outcome.metric != TIME or outcome.outcome != "new":
        return outcome
    if pairs.first:
        return replace(outcome, code=FIRST)
    return replace(outcome, outcome="ambiguous", code=NOT_COMPARED)


def _decided(outcome: MetricOutcome, change: Change, pairs: NightPairs, past: WorkloadPast) -> MetricOutcome:
    word, first, nights = _outcome_of(change), past.entry, 0
    if word == "regressed":
        first, nights = _began(past)
    rule = past.spec.rule(outcome.metric)
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
    """Return the first of the regressed nights in a row that ends tonight, and how many there are."""
    first, nights = past.entry, 1
    for entry in reversed(past.entries[:-1]):
        if entry.outcome == "regressed":
            first, nights = entry, nights + 1
        elif entry.valid:
            break
    return first, nights


def _outcome_of(change: Change) -> Outcome:
    """Derive the outcome from the interval.

    What is neither beyond nor within the floor passes if likelier within.
    """
    if change.word == "different" and change.course != "neither":
        return "regressed" if change.course == "worse" else "improved"
    beyond = change.ratio is not None and change.ratio - 1 > change.floor
    return "ambiguous" if change.word == "ambiguous" and beyond else "pass"


def what_would_decide(outcomes: Sequence[MetricOutcome], pairs: NightPairs) -> str | None:
    """Return what to write into the nightly's file if the pairs of a gating metric could not decide."""
    open_ones = [outcome for outcome in outcomes if outcome.outcome == "ambiguous" and outcome.gates]
    if open_ones and pairs.failed:
        return pairs.fix
    for outcome in open_ones:
        if outcome.code == PAIRED and outcome.change is not None and pairs.pairing is not None:
            wanted = decided_by(outcome.change, pairs.pairing).numbers
            keys = [f"pairs: {{budget: {wanted['seconds']:.0f}}}"] if "seconds" in wanted else []
            keys += (
                [f"floors: {{{outcome.metric}: {100 * wanted['floor']:.3g} %}}"] if "floor" in wanted else []
            )
            return ", or ".join(keys)
    return None

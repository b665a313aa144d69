"""Findings: what is wrong, where, what to change, and how much that could save at most.

Pure functions of a judged document. Each bound is a physical upper limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from profkit.analysis.evidence import RunEvidence, evidence_of
from profkit.analysis.judge.covered import with_covered_lines
from profkit.analysis.judge.nsight import nsight_findings
from profkit.analysis.judge.rule import Rule
from profkit.analysis.judge.rules import (
    OF_CALLS,
    OF_FUNCTIONS,
    PATTERNS,
    RULES,
    gpu_host,
    gpu_lines,
    gpu_noted,
    spot_waits,
    spots,
)
from profkit.analysis.summaries.kernels import counted_alone
from profkit.core.types import CodeSpot, Insight, Place, RunDocument

GPU_RULES = frozenset(rule.name for rule in RULES if not rule.of_host)
_NAMED = {name: rule for rule in RULES for name in (rule.name, *rule.also)}
MIN_GAIN = 0.01  # share of the time: a smaller gain is not worth a change
SMALL_GAIN = (
    0.1  # share of the time: if the findings save less, a place may come first that no rule explains,
)
UNEXPLAINED_RATIO = 3.0  # if it takes more than so many times as much as the first finding saves
# Of the time that a device waits: a place of the host with at least this share explains the waiting.
CAUSE_SHARE = 0.5


def kernel_insights(document: RunDocument) -> tuple[Insight, ...]:
    """Return the findings on the work of a GPU alone, each with what it could save as a share of the GPU's time.

    Findings on the host are left out.
    """
    share = evidence_of(document).gpu_share
    return tuple(
        replace(
            insight,
            gain=replace(insight.gain, at_most=min(1.0, insight.gain.at_most / share), of="the GPU time"),
        )
        if insight.gain is not None and insight.source == "profkit" and share > 0
        else insight
        for insight in document.insights
        if insight.rule in GPU_RULES or insight.source != "profkit"
    )


def find_insights(document: RunDocument, rules: Sequence[Rule] = RULES) -> tuple[Insight, ...]:
    """Return the findings, the largest possible saving first; then those of NVIDIA's own rules.

    Without a device they are in the order of the hot spots; with one, in the order of what they save of a step's time.
    """
    evidence = evidence_of(document)
    found = [insight for rule in rules for insight in rule.find(evidence)]
    worth = [insight for insight in found if insight.gain is None or insight.gain.at_most >= MIN_GAIN]
    ranked = _by_gain(worth)
    # The program ended there, so nothing else about it matters.
    if any(_about(insight) == "end" for insight in ranked):
        return tuple(insight for insight in ranked if _about(insight) == "end")
    on_spots = _on_spots(document)
    if counted_alone(document):
        # Findings that the program itself proves are kept, although it is not known which kernels take the time.
        proved = [insight for insight in on_spots if insight.rule != "hot-spot"]
        return (
            *proved,
            *(insight for insight in ranked if insight.rule in _NAMED and _NAMED[insight.rule].traceless),
        )
    if document.trace is None and not evidence.kernels:
        return (*_of_one_place(_by_spots(document, on_spots, ranked)), *nsight_findings(evidence))
    return (*_beside_device(evidence, ranked), *nsight_findings(evidence))


def _by_gain(insights: Iterable[Insight]) -> list[Insight]:
    return sorted(insights, key=lambda insight: -(insight.gain.at_most if insight.gain is not None else 0.0))


def _about(insight: Insight) -> str:
    rule = _NAMED.get(insight.rule)
    return rule.about if rule is not None else "work"


def _on_spots(document: RunDocument) -> tuple[Insight, ...]:
    """Return the findings on hot spots. A line that other ranks wait for is explained by that alone."""
    behind = tuple(spot_waits.rank_behind(document))
    covered = {(insight.where.file, insight.where.line) for insight in behind}
    patterns = spots.spot_insights(document, PATTERNS, OF_CALLS, OF_FUNCTIONS)
    rest = [insight for insight in patterns if (insight.where.file, insight.where.line) not in covered]
    return *behind, *with_covered_lines(document, rest)


def _beside_device(run: RunEvidence, ranked: Sequence[Insight]) -> tuple[Insight, ...]:
    """Order the findings on a program with a device.

    What the host does while a device waits explains more than the fact that it waits. Memory that will soon be full
    comes first.
    """
    explained = gpu_host.explain_idle_device(run, PATTERNS)
    causes = [
        _as_sampled(insight, explained)  # the cause says what the line does, the samples how long it takes
        if explained is not None and _is_there(insight, explained.where)
        else insight
        for insight in ranked
        if _about(insight) == "cause"
    ]
    if explained is not None and any(_is_there(insight, explained.where) for insight in causes):
        explained = None
    ranked = [*causes, *(insight for insight in ranked if _about(insight) != "cause")]
    ranked = [insight for insight in ranked if not any(_is_part(insight, of) for of in ranked)]
    for cause in (*causes, *([explained] if explained is not None else ())):
        if cause.gain is not None:
            rest = [
                insight for insight in ranked if insight is not cause and not _is_explained(insight, cause)
            ]
            ranked = _by_gain((cause, *rest))
    alone = gpu_lines.largest_kernel(run)
    if alone is not None and _says_more(alone, ranked):
        ranked = [alone, *ranked]
    first = "growing-memory" if gpu_noted.fills_memory_soon(run) else ""
    return _whole_program_first(run, sorted(ranked, key=lambda insight: insight.rule != first))


def _as_sampled(insight: Insight, explained: Insight) -> Insight:
    """Return the finding with the time that was sampled at its place, if that is more than its own calls took."""
    own, seen = insight.gain, explained.gain
    if seen is None or (own is not None and own.at_most >= seen.at_most):
        return insight
    return replace(insight, gain=seen, evidence=f"{insight.evidence}; {explained.evidence}")


def _whole_program_first(run: RunEvidence, ranked: Sequence[Insight]) -> tuple[Insight, ...]:
    """Put findings on the whole program first if they save more seconds than all of its steps could.

    Findings that save next to nothing of the whole program are then left out.
    """
    split = run.document.time_split
    whole = next(
        (insight for insight in ranked if insight.gain is not None and insight.gain.of == gpu_lines.PROGRAM),
        None,
    )
    if split is None or split.steady is None or whole is None or whole.gain is None:
        return tuple(ranked)
    seconds, others = whole.gain.at_most * split.wall, [insight for insight in ranked if insight is not whole]
    wins = [
        insight.gain.at_most * split.steady if insight.gain is not None else seconds for insight in others
    ]
    if seconds <= max(wins, default=0.0):
        return tuple(ranked)
    return (
        whole,
        *(insight for insight, win in zip(others, wins, strict=True) if win >= SMALL_GAIN * seconds),
    )


def _is_there(insight: Insight, where: Place) -> bool:
    return (insight.where.file, insight.where.line) == (where.file, where.line)


def _is_part(insight: Insight, of: Insight) -> bool:
    """Return whether fixing one finding also fixes another: at the same place, or anywhere if one has no line."""
    rule = _NAMED.get(of.rule)
    if rule is None or insight is of:
        return False
    if rule.includes_kernels and insight.rule in GPU_RULES:
        return True
    if insight.rule not in rule.includes:
        return False
    same = (insight.where.file, insight.where.function) == (of.where.file, of.where.function)
    return same or rule.anywhere or insight.where.file is None or of.where.file is None


def _is_explained(insight: Insight, cause: Insight) -> bool:
    """Return whether a finding only reports that the device waits, elsewhere than at the cause of most of it."""
    if _about(insight) != "waiting" or insight.gain is None or cause.gain is None:
        return False
    most = cause.gain.at_most >= CAUSE_SHARE * insight.gain.at_most
    return most and not (insight.rule == "device-sync" and _is_there(insight, cause.where))


def _says_more(alone: Insight, ranked: Sequence[Insight]) -> bool:
    """Return whether to name the place that takes most of the time first, since the findings elsewhere could save
    little.
    """
    first = ranked[0].gain if ranked else None
    if not ranked or first is None or alone.gain is None:
        return not ranked
    return first.at_most < SMALL_GAIN and alone.gain.at_most > UNEXPLAINED_RATIO * first.at_most


def _by_spots(
    document: RunDocument, on_spots: Sequence[Insight], ranked: Sequence[Insight]
) -> tuple[Insight, ...]:
    """Order the findings by the places of the run.

    A finding from counters is kept if the counters were counted at the first place; then it stands for that place.
    """
    first = next((spot for spot in document.hot_spots if spot.kind == "native"), None)
    program = [insight for insight in ranked if _about(insight) == "program"]
    counted = [insight for insight in ranked if _about(insight) == "counters"]
    others = [insight for insight in ranked if insight not in program and insight not in counted]
    if document.hot_spots:
        counted = [
            replace(insight, where=first.where)
            for insight in counted
            if first is not None and _is_at(first, insight)
        ]
    alone = on_spots[:1] if on_spots and on_spots[0].rule == "hot-spot" else ()
    first_place = document.hot_spots[0] if document.hot_spots else None
    # A line that calls a jitted function waits for the compiler: repeated compilation is the reason.
    compiling = [
        insight
        for insight in others
        if insight.rule == "recompilations" and first_place and _is_at(first_place, insight)
    ]
    if compiling and alone:
        others = [insight for insight in others if insight not in compiling]
        return (*program, *compiling, *counted, *on_spots[1:], *others)
    if counted or program:  # these explain the first place
        return (*program, *counted, *on_spots[len(alone) :], *others)
    return (*on_spots, *others)


# Rules that prove one fault in two ways: by the functions that take locks, and by what registers show of the lock.
_SAME_FAULT = (frozenset({"lock-contention", "contended-memory"}),)


def _of_one_place(found: Sequence[Insight]) -> list[Insight]:
    """Return the findings, of those on one line the one with the largest bound first; of two proofs of one fault only
    that.
    """
    changes = [insight for insight in found if insight.rule != "hot-spot" and insight.where.line is not None]
    result: list[Insight] = []
    for each in found:
        insight = each
        same = [other for other in changes if _is_there(other, insight.where)]
        if same and insight.rule != "hot-spot":
            insight = _by_gain(same)[0]
            changes.remove(insight)
        family = next((rules for rules in _SAME_FAULT if insight.rule in rules), frozenset())
        if not any(other.rule in family and _is_there(other, insight.where) for other in result):
            result.append(insight)
    return result


def _is_at(spot: CodeSpot, insight: Insight) -> bool:
    """Return whether a finding is about the same function or line; an inlined function is known by its file and
    line.
    """
    where = insight.where
    same_file = (where.file or "").rpartition("/")[2] == (spot.where.file or "").rpartition("/")[2]
    return where.function == spot.where.function or (
        bool(where.file) and same_file and where.line == spot.where.line
    )

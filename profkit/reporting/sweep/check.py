"""A sweep, judged, on one screen: what is not right, what is farthest from its roofline, and verdicts by the dozen."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from profkit.analysis.ranking.ranking import BAD, by_time_above_roofline, efficiency
from profkit.core.formatting import format_quantity, plural, shorten
from profkit.core.types import RunDocument, SweepDocument, Verdict, VerdictWord
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.screen import Screen
from profkit.reporting.sweep.conclusions import conclusions
from profkit.reporting.sweep.words import case_line, head_line, missing, told_share
from profkit.reporting.views.run_text import SIGNS, WORDS, count_verdicts, worst_first

COLUMNS = ("", "cases", "fail", "unknown", "pass", "the worst")
FARTHEST = ("", "time", "roof", "above it")
SHOWN = 5  # reasons why some are not right
ROWS = 24  # of a table of verdicts

STYLES: dict[VerdictWord, str] = {
    "fail": "bold red",
    "unknown": "yellow",
    "pass": "green",
    "not-applicable": "dim",
}


def applies(document: RunDocument) -> bool:
    """Whether a run is a sweep, of which each case is a region: a verdict on each is no answer."""
    return any(timing.group is not None for timing in document.timings)


def render(
    run: RunDocument,
    sweep: SweepDocument | None = None,
    folder: Path | None = None,
    *,
    color: bool | None = None,
    width: int | None = None,
) -> str:
    """The digest; `sweep` is what its journal knows, where that is at hand."""
    screen = Screen(color, width)
    if sweep is not None:
        screen.line((f"{sweep.device}: {head_line(sweep)}", "bold"))
        for line in conclusions(sweep):
            label, _, rest = line.partition(":")
            screen.line((f"{label}:", "red" if label == "Not right" else "bold"), rest, hang=2)
    else:
        cases = plural(sum(timing.group is not None for timing in run.timings), "case")
        screen.line((f"{run.name} on {run.backend}: a sweep, {cases} with a time", "bold"))
    _words(screen, run)
    if sweep is not None:
        _not_right(screen, sweep)
        _farthest(screen, sweep)
    _verdicts(screen, run)
    _everything(screen, folder)
    return screen.text()


def _words(screen: Screen, run: RunDocument) -> None:
    parts: list[str | tuple[str, str]] = []
    for word, style in STYLES.items():
        if number := sum(verdict.verdict == word for verdict in run.verdicts):
            parts += [", " if parts else "", (f"{SIGNS[word]} {number} {WORDS[word]}", style)]
    if parts:
        screen.line("Verdicts: ", *parts, hang=2)


def _not_right(screen: Screen, sweep: SweepDocument) -> None:
    bad = [one for one in missing(sweep) if one.state in BAD]
    if not bad:
        return
    screen.heading("Not right")
    for one in bad[:SHOWN]:
        reason = shorten(without_control_characters(one.reason), 200) or "no reason is known"
        what = f"{shorten(without_control_characters(one.implementation), 30)}, {one.told}: "
        screen.line(what, (one.state, "red"), f": {reason}", indent=2, hang=2)
    if len(bad) > SHOWN:
        screen.line(f"and {plural(len(bad) - SHOWN, 'further reason')}", indent=2)


def _farthest(screen: Screen, sweep: SweepDocument) -> None:
    """Of each implementation those with most time above their roofline."""
    rows: list[tuple[str, ...]] = []
    names = tuple(dict.fromkeys(result.implementation for result in sweep.results))
    each = max(1, 6 // max(1, len(names)))
    own = dict.fromkeys(names, 0)
    for result in by_time_above_roofline(sweep):
        own[result.implementation] += 1
        if own[result.implementation] > each or len(rows) >= ROWS:
            continue
        share = efficiency(result, sweep.roofs) or 0.0
        over = (1 - min(1.0, share)) * (result.median or 0.0)
        name = case_line(result, sweep).partition(": ")[0]
        rows.append(
            (name, format_quantity(result.median, "s"), told_share(share), format_quantity(over, "s"))
        )
    if rows:
        screen.heading("Most time above the roofline, by implementation")
        screen.table(FARTHEST, tuple(rows))


def _verdicts(screen: Screen, run: RunDocument) -> None:
    """Of the run one by one; of cases by implementation and operation, those that all pass in a line."""
    whole = [v for v in run.verdicts if v.scope.kind == "run"]
    told = [v for v in worst_first(whole) if v.verdict in ("fail", "unknown")]
    cases = _by_group(run)
    if not told and not cases:
        return
    screen.heading("Verdicts")
    for verdict in told:
        label = (f"{SIGNS[verdict.verdict]} {WORDS[verdict.verdict]}", STYLES[verdict.verdict])
        screen.labelled(label, (verdict.target, "bold"), f"  {verdict.reason}", width=9)
    for target in dict.fromkeys(name for name, _ in cases):
        _of_target(screen, target, {group: own for (name, group), own in cases.items() if name == target})
    if quiet := [v for v in whole if v.verdict in ("pass", "not-applicable")]:
        for word in ("pass", "not-applicable"):
            if names := ", ".join(v.target for v in quiet if v.verdict == word):
                screen.labelled((f"{SIGNS[word]} {WORDS[word]}", STYLES[word]), names, width=9)


def _of_target(screen: Screen, target: str, groups: Mapping[str, Sequence[Verdict]]) -> None:
    def bad(own: Sequence[Verdict], word: VerdictWord) -> int:
        return sum(v.verdict == word for v in own)

    rows = []
    kept = []
    alike = {" ".join(group.split(" ")[-2:]) for group in groups}
    words = next(iter(alike)) if len(alike) == 1 else ""
    order = sorted(groups.items(), key=lambda item: (-bad(item[1], "fail"), -bad(item[1], "unknown")))
    for group, own in order:
        group = (
            without_control_characters(group).removesuffix(f" {words}")
            if words
            else without_control_characters(group)
        )
        if not bad(own, "fail") and not bad(own, "unknown"):
            kept.append(group)
            continue
        numbers = tuple(str(bad(own, word)) for word in ("fail", "unknown", "pass"))
        rows.append((group, str(len(own)), *numbers, _worst(own)))
    every = [verdict for own in groups.values() for verdict in own]
    screen.line(
        (target, "bold"), f"{', ' + words if words else ''}: {count_verdicts(every)}", indent=2, hang=2
    )
    if rows:
        screen.table(COLUMNS, tuple(rows[:ROWS]), indent=4)
    if len(rows) > ROWS:
        screen.line(f"and {len(rows) - ROWS} more", indent=4)
    if kept and rows:
        screen.line((f"all cases pass: {', '.join(kept)}", "dim"), indent=4, hang=2)
    advice = next((v.advice[0] for v in worst_first(every) if v.advice and v.verdict != "pass"), None)
    if advice is not None and rows:
        screen.line((f"try: {advice}", "dim"), indent=4, hang=2)


def _worst(own: Sequence[Verdict]) -> str:
    """The largest value of those that do not pass, and its shape."""
    bad = [v for v in own if v.verdict in ("fail", "unknown") and v.value is not None]
    if not bad:
        return "-"
    worst = max(bad, key=lambda v: v.value or 0.0)
    return f"{format_quantity(worst.value, worst.unit)} at {(worst.scope.name or '').rpartition(' ')[2]}"


def _by_group(run: RunDocument) -> dict[tuple[str, str], list[Verdict]]:
    """Verdicts on cases, by target and by implementation and operation."""
    groups = {timing.name: timing.group for timing in run.timings if timing.group is not None}
    found: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in run.verdicts:
        group = groups.get(verdict.scope.name or "") if verdict.scope.kind == "region" else None
        if group is not None:
            found[verdict.target, group].append(verdict)
    return dict(found)


def _everything(screen: Screen, folder: Path | None) -> None:
    name = shlex.quote(str(folder)) if folder is not None else "RUN"
    screen.heading("Every case by itself")
    screen.typed(f"profkit check {name} --details", indent=2)
    screen.typed(f"profkit report {name} --format junit    (or json)", indent=2)

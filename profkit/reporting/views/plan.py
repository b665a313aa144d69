"""What would be done, before anything is. What the doctor tried, and what a scrubbed copy lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import plural
from profkit.core.types import Check, CheckState, PassPlan, Plan
from profkit.profilers.redact import FileLeftOut, RemovedText
from profkit.reporting.facts import fact_text
from profkit.reporting.view import (
    Block,
    ItemList,
    Paragraph,
    Section,
    Status,
    Statuses,
    StatusRow,
    View,
    joined,
    soft,
    strong,
)

_COUNTERS, _MAX_NAMED = 24, 8  # more counters than that are not read; so many of them show what kind they are


def view(plan: Plan) -> View:
    """Return each pass, what it collects, its expected cost, and what is skipped."""
    blocks = tuple(_pass(planned) for planned in plan.passes)
    return View(
        f"Plan: {plan.backend}, depth {plan.depth}. Nothing was run.",
        (
            *blocks,
            Section(
                "In all", tuple(Paragraph(fact_text(note)) for note in plan.notes), headline=_total(plan)
            ),
        ),
    )


def _pass(planned: PassPlan) -> Section:
    name = f"{planned.name} ({planned.tool})" if planned.tool else planned.name
    if planned.skipped is not None:
        fix: tuple[Block, ...] = (Paragraph(joined(soft("fix: "), planned.fix)),) if planned.fix else ()
        return Section(
            f"- {name}", fix, joined(strong("skipped: ", Status.UNKNOWN), fact_text(planned.skipped))
        )
    simulated = ", simulated" if planned.simulated else ""
    side = ", side by side" if planned.parallel and len(planned.steps) > 1 else ""
    runs = plural(len(planned.steps), "run")
    return Section(
        f"+ {name}",
        tuple(_collected(planned)),
        f"{runs} of the workload{side}{simulated}; {_cost(planned)}",
    )


def _collected(planned: PassPlan) -> Iterator[Block]:
    if planned.counters:
        yield Paragraph(joined(soft("counters: "), _counters(planned.counters)))
    if planned.limit is not None:
        yield Paragraph(soft(f"ended after {planned.limit:g} s a run"))
    yield from (Paragraph(soft(fact_text(note))) for note in planned.notes)


def _counters(names: Sequence[str]) -> str:
    if len(names) <= _COUNTERS:
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NAMED])} and {len(names) - _MAX_NAMED} more (--format json has them all)"


def _cost(planned: PassPlan) -> str:
    if planned.cost is None:
        return "cost not known"
    return f"about {_times(planned.cost)} as long as one normal run"


def _times(cost: float) -> str:
    return f"{cost:.1f} times" if cost < 10 else f"{cost:.0f} times"


def _total(plan: Plan) -> str:
    running = [planned for planned in plan.passes if planned.skipped is None]
    known = [planned.cost for planned in running if planned.cost is not None]
    skipped = len(plan.passes) - len(running)
    apart = f", {skipped} skipped" if skipped else ""
    passes = f"{plural(len(running), 'pass', 'passes')}{apart}"
    if not known:
        return f"{passes}."
    more = ", plus passes of unknown cost" if len(known) < len(running) else ""
    return f"{passes}: about {_times(sum(known))} as long as one normal run{more}."


# ---------------------------------------------------------------- what the doctor tried, what a copy lacks

_STATES: dict[CheckState, Status] = {
    "ok": Status.PASS,
    "limited": Status.CHANGED,
    "missing": Status.FAIL,
    "refused": Status.FAIL,
}
_MAX_FILES = 12  # that are named


def checks_view(checks: Sequence[Check]) -> View:
    """Return the checks in their order; the fix below what needs one."""
    rows = tuple(map(_check, checks))
    counts = {state: sum(check.state == state for check in checks) for state in _STATES}
    total = ", ".join(f"{number} {state.upper()}" for state, number in counts.items() if number)
    fixes = sum(check.fix is not None for check in checks)
    change = f"; {plural(fixes, 'fix', 'fixes')} below" if fixes else ""
    return View(
        f"{total or 'nothing was checked'}{change}.",
        (Statuses(rows, ("what", "", "", ""), "state", below_title="Fixes", below_word="fix: "),),
    )


def _check(check: Check) -> StatusRow:
    version = f"{check.version}  " if check.version and check.version not in check.detail else ""
    fix = (check.fix,) if check.fix else ()
    return StatusRow(
        _STATES[check.state], check.state.upper(), (check.name,), f"{version}{check.detail}", below=fix
    )


def scrubbed_view(output: str, removed: Sequence[RemovedText], left_out: Sequence[FileLeftOut]) -> View:
    """Return kinds and counts of what was removed (never its contents), and what was left out."""
    kinds = [f"{entry.kind}: {entry.count}" for entry in removed]
    text = (
        "Look at it: what has no form of a secret, and is named nowhere as private, is not known to be one."
    )
    blocks: list[Block] = [ItemList(tuple(kinds or ["nothing private found"])), Paragraph(text)]
    if left_out:
        lines = [
            f"{entry.name}: {entry.reason}" + (f" ({entry.fix})" if entry.fix else "") for entry in left_out
        ]
        blocks.append(Section("Left out", (ItemList(tuple(lines), brief=_MAX_FILES),)))
    return View(f"Scrubbed copy: {output}", tuple(blocks))

"""What is said of a run: its verdicts worst first, the few things to do next, and lines on time, device and machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.kernel_names import shape, short_name
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import (
    Fact,
    Gpu,
    PassResult,
    RunDocument,
    Scope,
    Verdict,
    VerdictWord,
)
from profkit.reporting.facts import fact_text
from profkit.reporting.view import Label, Status
from profkit.runtime.passes.shown_command import shown_line

VERDICTS: dict[VerdictWord, Label] = {
    "fail": Label(Status.FAIL, "FAIL"),
    "unknown": Label(Status.UNKNOWN, "UNKNOWN"),
    "pass": Label(Status.PASS, "PASS"),
    "not-applicable": Label(Status.NONE, "N/A"),
}
OUTCOMES: dict[VerdictWord, str] = {
    "fail": "missed",
    "unknown": "not known",
    "pass": "met",
    "not-applicable": "not applicable",
}
NOISE = 50.0  # %; beyond half of the value an interval has no centre to speak of
# Of a single function or kernel less is not worth the first place: the floor under which it fails no run.
WORTH = 0.05  # of the GPU time
ACTIONS = 3  # more than three things to do first is no order
# Counts of a processor over a whole program have no line: what to change is concluded at a hot spot alone.
_WITHOUT_PLACE = ("cache.", "branch.", "ipc", "simd.", "bandwidth.dram.share", "roofline.")


@dataclass(frozen=True)
class Action:
    """One thing to do: why, and what to try or type."""

    why: str
    what: str


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Sort by fail, unknown, pass, not-applicable; within a word as the judge gave them."""
    order = list(VERDICTS)
    return sorted(verdicts, key=lambda verdict: order.index(verdict.verdict))


def common_causes(verdicts: Sequence[Verdict]) -> dict[Fact, list[Verdict]]:
    """Return unknown verdicts by a cause that several share (`the counters pass was not requested`)."""
    causes: dict[Fact, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.verdict == "unknown" and verdict.cause is not None:
            causes.setdefault(verdict.cause, []).append(verdict)
    return {cause: same for cause, same in causes.items() if len(same) > 1}


def count_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return `2 fail, 1 unknown, 3 pass`; words that do not occur are left out."""
    numbers = [(sum(v.verdict == word for v in verdicts), VERDICTS[word].word) for word in VERDICTS]
    return ", ".join(f"{number} {word}" for number, word in numbers if number)


def actions(document: RunDocument) -> list[Action]:
    """Return what missed targets say to do, three things at most: the whole run before single functions.

    One action for each target, and one for each line to type: the same fix need not be read twice.
    """
    first_actions: list[Action] = []
    mentioned: set[str] = set()
    for verdict in _sorted(document):
        what = verdict.advice[0]
        if verdict.target not in mentioned and what not in mentioned:
            why = scope_prefix(verdict.scope) + fact_text(verdict.reason)
            first_actions.append(Action(why, what))
        mentioned |= {verdict.target, what}
    return first_actions[:ACTIONS]


def _sorted(document: RunDocument) -> list[Verdict]:
    """Return the missed targets with advice, the most urgent first."""
    placed = document.gpus or document.metal is not None
    failed = [
        verdict
        for verdict in document.verdicts
        if verdict.verdict == "fail" and verdict.advice
        if placed or not verdict.metric.startswith(_WITHOUT_PLACE)
    ]
    return sorted(filter(_is_worth_showing, failed), key=urgency)


def _is_worth_showing(verdict: Verdict) -> bool:
    if verdict.scope.kind != "kernel":
        return True
    return verdict.weight is None or verdict.weight >= WORTH


def urgency(verdict: Verdict) -> tuple[bool, bool, float]:
    """Return what to look at first: failures; the whole run before its parts, large before small."""
    part = verdict.scope.kind in ("function", "kernel")
    return verdict.verdict != "fail", part, -(verdict.weight or 0.0)


def gpu_lines(document: RunDocument) -> list[str]:
    """Return every kind of device in one line: `2 x NVIDIA H200 (GH100, compute capability 9.0), 132 SMs, 141 GB`."""
    kinds: dict[Gpu, int] = {}
    for gpu in document.gpus:
        kind = replace(gpu, index=0)
        kinds[kind] = kinds.get(kind, 0) + 1
    return [_device(gpu, number) for gpu, number in kinds.items()]


def _device(gpu: Gpu, number: int) -> str:
    chip = [
        gpu.chip if gpu.chip and gpu.chip not in gpu.name else None,
        f"compute capability {gpu.capability}" if gpu.capability else None,
    ]
    inside = ", ".join(part for part in chip if part)
    parts = [
        f"{number} x {gpu.name}" if number > 1 else gpu.name,
        plural(gpu.multiprocessors, "SM") if gpu.multiprocessors else None,
        plural(gpu.cores, "GPU core") if gpu.cores else None,
        f"{gpu.memory_bytes / 1e9:.0f} GB" if gpu.memory_bytes else None,
        f"{format_quantity(gpu.bandwidth, 'B/s')} peak" if gpu.bandwidth else None,
        f"driver {gpu.driver}" if gpu.driver else None,
        "MIG" if gpu.mig else None,
        gpu.virtual,
    ]
    parts[0] = f"{parts[0]} ({inside})" if inside else parts[0]
    return ", ".join(part for part in parts if part)


def scope_prefix(scope: Scope) -> str:
    """Return `in sgemm: ` before what is said of a function or kernel; nothing for the run and its region."""
    return f"in {scope_name(scope)}: " if scope.kind in ("function", "kernel") and scope.name else ""


def scope_name(scope: Scope) -> str:
    """Return what people call it: a function by its name, a kernel by a short one with its grid and block."""
    if scope.kind != "kernel" or not scope.name:
        return scope.name or "?"
    return short_name(scope.name, 44) + (f" ({shape(scope.id)})" if scope.id else "")


def command_line(document: RunDocument) -> str:
    """Return the workload as others may see it, quoted for a shell: run.json has all of it."""
    return shown_line(document.workload.command)


def time_line(document: RunDocument) -> str | None:
    """Return `4.13 ms ± 0.8 % per iteration`, of the first timing; None where nothing was timed."""
    values = {r.metric: r.value for s in document.summaries if s.concern == "time" for r in s.readings[::-1]}
    median, half = values.get("time.median"), values.get("time.interval")
    if median is None or not document.timings:
        return None
    kind = {"process": "whole process", "region": "entry"}.get(document.timings[0].kind, "iteration")
    if half is not None and half > NOISE:
        return f"about {format_quantity(median, 's')} per {kind}, too noisy to say more (±{half:.0f} %)"
    return f"{format_quantity(median, 's')}{f' ±{format_percent(half)} %' if half is not None else ''} per {kind}"


TITLES = {"gpu": "GPU", "access": "Memory access", "execution": "Warps", "unknown": "What is not known"}


def title_of(concern: str) -> str:
    """Return the heading above a summary."""
    return TITLES.get(concern, concern.capitalize())


def session_conditions(document: RunDocument) -> dict[str, str]:
    """Return the tools' versions and what they did to clocks and caches, which decide what may be compared."""
    versions = {name: version for name, version in document.tools.items() if version}
    facts = {name: value for name, value in document.facts.items() if name != "command"}
    # A fact of one pass stands behind that of all as `clocks (explain)`: where it is the same, once is enough.
    return {**versions, **{k: v for k, v in facts.items() if facts.get(k.rpartition(" (")[0]) != v}}


def unfinished_passes(document: RunDocument) -> list[PassResult]:
    """Return the passes that did not finish although there was something for them to analyse."""
    return [result for result in passes_with_object(document) if result.state != "finished"]


def passes_with_object(document: RunDocument) -> list[PassResult]:
    """Return the passes that had anything to analyse in this program; the others are of no interest."""
    return [result for result in document.passes if result.has_object]


def machine_line(document: RunDocument) -> str | None:
    """Return processor, cores and system in one line; None for a report of unknown origin."""
    machine = document.machine
    if machine is None:
        return None
    virtual = f", {machine.virtual}" if machine.virtual else ""
    return f"{machine.cpu}, {plural(machine.cores, 'core')}{virtual}, {machine.system} {machine.release}"


def cost_text(result: PassResult) -> str:
    """Return what a pass took: `24.1 s (3.1 times as long as one normal run)`."""
    cost = result.cost
    times = f" ({cost:.{1 if cost < 10 else 0}f} times as long as one normal run)" if cost is not None else ""
    return f"{format_quantity(result.seconds, 's')}{times}" if result.seconds else "-"

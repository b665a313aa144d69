"""A night as annotations of GitHub Actions: lines that its runner reads off a step's output and shows beside the run.

The grammar and its escapes are those of the runner itself (actions/toolkit, `packages/core/src/command.ts`): in a
message `%`, carriage return and line feed, in a property `:` and `,` too. The runner shows ten errors, ten warnings and
ten notices of a step, so the worst come first and what is left out is counted in the last one.
"""

from __future__ import annotations

from profkit.core.types import Night, Outcome, WorkloadOutcome
from profkit.reporting.night_words import ORDER, alarming, causes, change_of, missed, name_of, word_of
from profkit.reporting.plain_text import harmless

MOST = 10  # of each level in a step (GitHub's documentation, "Limits of annotations")
LEVELS: dict[Outcome, str] = {
    "regressed": "error",
    "missing": "error",
    "invalid": "warning",
    "ambiguous": "warning",
    "improved": "notice",
}


def render(night: Night) -> str:
    """One line for each workload that somebody must look at, the worst first; empty where all is well."""
    lines: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for workload in sorted(night.workloads, key=lambda w: ORDER.index(w.outcome)):
        level = LEVELS.get(workload.outcome)
        if level is not None:
            title = f"{workload.name}: {word_of(workload).lower()}"
            lines[level].append(command(level, title, message(workload)))
    told = []
    for level, found in lines.items():
        if len(found) > MOST:
            more = len(found) - MOST + 1
            found = [*found[: MOST - 1], command(level, f"{night.name}: {more} more", "see the report")]
        told += found
    return "".join(line + "\n" for line in told)


def message(workload: WorkloadOutcome) -> str:
    """What is said of it: the reason, the metrics, the causes and the fix, a line each."""
    loud = alarming(workload)
    lines = [] if any(metric.gates for metric in loud) else [workload.reason]
    for metric in loud[:5]:
        change = change_of(metric)
        lines.append(f"{name_of(metric)}{f' {change}' if change else ''}: {metric.reason}")
    lines += [*missed(workload)[:5], *causes(workload)[:5]]
    lines += [f"fix: {workload.fix}"] if workload.fix else []
    return "\n".join(dict.fromkeys(harmless(line) for line in lines if line))


def command(level: str, title: str, text: str) -> str:
    """`::error title=...::...` as the runner reads it.

    >>> command("error", "a: b, 100 %", "first\\nsecond")
    '::error title=a%3A b%2C 100 %25::first%0Asecond'
    """
    return f"::{level} title={_property(harmless(title))}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

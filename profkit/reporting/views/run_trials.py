"""The trials of a run: each change that was tried, its effect on the time, and on the output."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.analysis.function_names import place_name
from profkit.core.formatting import format_percent
from profkit.core.types import RunDocument, TrialName, TrialState, TriedChange
from profkit.reporting.columns import Column, data_table
from profkit.reporting.facts import fact_text
from profkit.reporting.view import Detail, ItemList, Section

# What is changed, by the name of the trial.
CHANGES: Mapping[TrialName, str] = {
    "collector": "collect garbage less often",
    "threads": "other threads for linear algebra",
    "allocator": "keep freed memory",
    "memoise": "keep the results of a function",
    "output": "write output in larger pieces",
    "tf32": "FP32 products as TF32",
    "convolutions": "cuDNN chooses algorithms by time",
    "attention": "attention without cuDNN",
    "loader": "workers and pinned memory for DataLoader",
    "workers": "keep the workers of DataLoader from one epoch to the next",
    "device-memory": "growing segments on the device",
}
_STATES: Mapping[TrialState, str] = {
    "faster": "faster",
    "slower": "slower",
    "same": "no faster",
    "undecided": "not decided",
    "other-output": "prints something else",
    "failed": "the program failed",
    "without-hold": "not tried",
    "interrupted": "interrupted",
    "left-out": "not tried",
}
_MAX_SHOWN = 1000  # %: an interval that goes further says only that nothing is known
# What is often advised, and is worth a line where it makes a program slower.
_COMMON: tuple[TrialName, ...] = ("threads", "tf32", "convolutions", "loader", "workers", "collector")


def trials_section(document: RunDocument) -> Detail | Section | None:
    """Return all trials as a table; a short screen has a line for each that says something beyond the findings."""
    if not document.trials:
        return None
    columns: list[Column[TriedChange]] = [
        Column("tried", trial_title),
        Column(
            "before",
            lambda trial: trial.before,
            "s",
            meaning="without the change: the median, or of what was no faster the fastest run",
        ),
        Column("after", lambda trial: trial.after, "s", meaning="the same with it"),
        Column("change", _change, meaning="of the time, with its interval at 98 %"),
        Column("pairs", lambda trial: str(trial.pairs) if trial.pairs else "one run"),
        Column("output", lambda trial: trial.output or ""),
        Column("result", _result),
    ]
    lines = [line for trial in document.trials if (line := trial_line(trial)) is not None]
    if left_out := [trial_title(trial) for trial in document.trials if trial.state == "left-out"]:
        lines.append(f"not tried, no time was left: {', '.join(left_out)}; --try all tries them")
    table = Detail((data_table(columns, document.trials),))
    blocks = (ItemList(tuple(lines)), table) if lines else (table,)
    section = Section("Tried", blocks, anchor="tried")
    return section if lines else Detail((section,))


def trial_line(trial: TriedChange) -> str | None:
    """Return a short screen's line for a trial; None where it adds nothing to the findings.

    It names common advice that made the program slower, trials without a decision, and those that change the
    output.
    """
    title = trial_title(trial)
    if trial.state == "slower" and trial.name in _COMMON:  # the times of one run are chance
        return f"{title}: {f'{_ratio(trial)} slower' if trial.pairs else 'slower in one run'}"
    if trial.state == "undecided":
        return f"{title}: not decided; --try all runs more pairs"
    if trial.state == "other-output":
        return f"{title}: faster, but the program prints something else"
    return None


def trial_title(trial: TriedChange) -> str:
    """Return what a trial changes: `other threads for linear algebra (1)`.

    The number is OMP_NUM_THREADS; where results are kept, the function follows instead.
    """
    name = CHANGES.get(trial.name, trial.name)
    if trial.name == "threads":
        return f"{name} ({trial.settings.get('OMP_NUM_THREADS', '?')})"
    return f"{name} ({place_name(trial.where)})" if trial.name == "memoise" and trial.where.function else name


def _ratio(trial: TriedChange) -> str:
    """Return by how much the times before and after differ: `19 %`."""
    if not trial.before or trial.after is None:
        return ""
    return f"{format_percent(100 * abs(trial.after / trial.before - 1))} %"


def _change(trial: TriedChange) -> str:
    """Return the change of the time: `-12 % (-14 to -10)`; not all have an interval. Empty if it is not known."""
    if trial.ratio is None:
        return ""
    if trial.low is None or trial.high is None:
        return f"{100 * (trial.ratio - 1):+.0f} %"
    low, middle, high = (100 * (ratio - 1) for ratio in (trial.low, trial.ratio, trial.high))
    upper = f"{high:+.0f}" if high < _MAX_SHOWN else f"over {_MAX_SHOWN:+d}"
    return f"{middle:+.0f} % ({low:+.0f} to {upper})"


def _result(trial: TriedChange) -> str:
    """Return a trial's state in words, with its reason where there is one."""
    state = _STATES.get(trial.state, trial.state)
    return f"{state}: {fact_text(trial.reason)}" if trial.reason is not None else state

"""`profkit compare`: two runs or two reports, and whether what differs between them is real."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, print_result, render_view

if TYPE_CHECKING:
    from profkit.core.types import Comparison
    from profkit.regression.compare import CompareOptions

EXAMPLES = """
Example:  profkit compare reports/20261119-gated_mlp-cpu reports/20261120-gated_mlp-cpu

Two implementations:  profkit compare BASELINE CANDIDATE --across arguments

Two evaluations of kernels, also of BackendBench:  profkit compare BASELINE/full_results.json CANDIDATE

Two sweeps, by means over all shapes; with --metric time.median single cases decide:  profkit compare BASELINE CANDIDATE

Exit codes: 0 the same, improved, or changed in nothing that decides; 1 regressed; 5 it cannot be decided, or the two
must not be compared; 2 an input that cannot be read.
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("compare", epilog=EXAMPLES)(compare)


def compare(
    baseline: Annotated[Path, typer.Argument(help="The run or report to start from.", metavar="BASELINE")],
    candidate: Annotated[Path, typer.Argument(help="The run or report in question.", metavar="CANDIDATE")],
    force: Annotated[bool, typer.Option("--force", help="Compare although the two are not alike.")] = False,
    across: Annotated[
        list[str] | None,
        typer.Option(
            "--across",
            help="They differ in this on purpose: arguments, GPU, ... (repeatable).",
            metavar="FIELD",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Look at this metric alone, and let it decide (repeatable)."),
    ] = None,
    floor: Annotated[
        str | None,
        typer.Option(
            "--floor", help="The relative change that counts, for every metric: 2%.", metavar="SHARE"
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 5 where any metric that decides is open.")
    ] = False,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Say what is different between two runs, whether it is real, and why."""
    from profkit.cli.progress import show_if_long
    from profkit.regression.compare import CompareOptions

    options = CompareOptions(
        force=force,
        across=_fields(across or []),
        metrics=_metrics(metric or []),
        floor=_parse_share(floor),
        paths=(str(baseline), str(candidate)),
    )
    comparison = _compare_evaluations(options) or _compare_runs(options)
    with show_if_long("compare", "what differs, and why"):
        text = _text(comparison, format)
    print_result(text)
    raise typer.Exit(exit_code(comparison, strict=strict))


def _compare_runs(options: CompareOptions) -> Comparison:
    from profkit.cli.progress import show_if_long
    from profkit.profiling.summarize import summarize_report
    from profkit.regression.compare import compare as compare_documents

    baseline, candidate = options.paths
    with show_if_long("baseline", baseline):
        before = summarize_report(Path(baseline))
    with show_if_long("candidate", candidate):
        after = summarize_report(Path(candidate))
    with show_if_long("compare", "what differs, and why"):
        return compare_documents(before, after, options)


def _compare_evaluations(options: CompareOptions) -> Comparison | None:
    """None where not both are evaluations."""
    from profkit.kernels.evaluation.results.read_results import is_evaluation, read_evaluation
    from profkit.regression.compare import compare_evaluations

    baseline, candidate = map(Path, options.paths)
    if not is_evaluation(baseline) or not is_evaluation(candidate):
        return None
    return compare_evaluations(read_evaluation(baseline), read_evaluation(candidate), options)


def exit_code(comparison: Comparison, *, strict: bool) -> int:
    """1 regressed; 5 ambiguous or refused, with `strict` also where a metric that decides is open; else 0."""
    from profkit.regression.compare import deciding_changes

    if comparison.outcome == "regressed":
        return 1
    if comparison.outcome in ("ambiguous", "refused"):
        return 5
    if strict and any(change.word == "ambiguous" for change in deciding_changes(comparison.changes)):
        return 5
    return 0


def _text(comparison: Comparison, output: OutputFormat) -> str:
    if output is OutputFormat.json:
        from profkit.reporting import json

        return json.comparison(comparison)
    from profkit.reporting.views.comparison import view

    return render_view(view(comparison), output, details=False)


def _metrics(names: list[str]) -> tuple[str, ...]:
    """The metrics by name; raises UsageError with the nearest known one where there is none of a name."""
    from profkit.analysis.metrics import metric as known

    return tuple(dict.fromkeys(known(name.strip()).name for name in names))


def _fields(names: list[str]) -> tuple[str, ...]:
    """Fields of the fingerprint by name or title; raises UsageError with all titles where there is none of a name."""
    from profkit.analysis.comparability import all_fields
    from profkit.core.errors import UsageError

    known = {word.lower(): name for name, field in all_fields().items() for word in (name, field.title)}
    for name in names:
        if name.strip().lower() not in known:
            titles = ", ".join(field.title for field in all_fields().values() if field.tier == "must")
            raise UsageError(
                f"--across {name} is no field that decides what may be compared", f"one of: {titles}"
            )
    return tuple(known[name.strip().lower()] for name in names)


def _parse_share(text: str | None) -> float | None:
    """`2%`, `2 %` and `0.02` as 0.02. Raises UsageError for what is no share between 0 and 1."""
    from profkit.core.errors import UsageError

    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match is not None else -1.0
    if not 0 <= value < 1:
        raise UsageError(f"--floor {text} is no share between 0 and 100 %", "--floor 2%")
    return value

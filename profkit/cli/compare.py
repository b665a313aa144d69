"""`profkit compare` and `bisect`: what is different, whether it is real, and which commit made it."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from profkit.cli import options
from profkit.cli.options import option

if TYPE_CHECKING:
    from profkit.core.types import ComparedSuite, Comparison
    from profkit.regression.compare import CompareOptions
    from profkit.regression.paired import PairedOptions, VersionsRequest
    from profkit.regression.paired.suite import SuiteRequest
    from profkit.reporting.view import View

EXAMPLES = {
    "compare": """
Example:  profkit compare reports/20261119-gated_mlp-cpu reports/20261120-gated_mlp-cpu

Two versions, whose runs alternate:  profkit compare --base main -- python bench.py

A pull request, with all workloads of a nightly file:  profkit compare --suite nightly.yaml --base main --output report

Two commands:  profkit compare --a 'python old.py' --b 'python new.py'

Two evaluations of kernels:  profkit compare BASELINE CANDIDATE

Exit codes: 0 the same, faster, or different only in metrics that do not decide; 1 slower; 5 undecided, or the two must
not be compared; 2 an input cannot be read; 4 a version does not run. A suite ends with 5 if nothing could be decided;
with --strict if any workload is undecided.
""",
    "bisect": """
Example:  profkit bisect v1.2 HEAD -- python bench.py

With a build:  profkit bisect v1.2 HEAD --setup 'make -j8' -- ./bench

Exit codes: 0 a commit was found, or several that caused it together; 5 both ends are equally fast, or it cannot be
decided; 2 wrong usage; 4 the command fails at one of the ends; 130 interrupted.
""",
}


VERSIONS = "Comparing two versions"


def compare(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two runs or reports; with --base the command after `--`.",
            metavar="BASELINE CANDIDATE | -- COMMAND",
        ),
    ] = None,
    base: Annotated[
        str | None, option(VERSIONS, "Compare this commit with the working tree (or --head).")
    ] = None,
    head: Annotated[str | None, option(VERSIONS, "The newer commit (default: the working tree).")] = None,
    a: Annotated[str | None, option(VERSIONS, "The command of the old version.")] = None,
    b: Annotated[str | None, option(VERSIONS, "The command of the new version.")] = None,
    setup: Annotated[
        str | None, option(VERSIONS, "A command to run in each checkout first, such as a build.")
    ] = None,
    suite: Annotated[
        Path | None, option(VERSIONS, "Compare all workloads of this nightly file.", "FILE.yaml")
    ] = None,
    budget: Annotated[float, option(VERSIONS, "Seconds for all runs of one workload.", min=1.0)] = 60.0,
    sampling: Annotated[float, option(VERSIONS, "Seconds for which one process is timed.", min=0.01)] = 1.0,
    timeout: Annotated[float | None, option(VERSIONS, "Seconds that one process may take.")] = None,
    cause: Annotated[bool, option(VERSIONS, "If they differ, search for the reason.")] = True,
    quiet: Annotated[
        bool, option(None, "Show no progress on standard error.", None, "--quiet", "-q")
    ] = False,
    force: Annotated[
        bool, option(None, "Compare even if machine or settings differ.", None, "--force")
    ] = False,
    metric: Annotated[
        list[str] | None,
        option(None, "Compare only this metric, and let it decide (repeatable).", None, "--metric", "-m"),
    ] = None,
    floor: Annotated[str | None, option(None, "Ignore changes smaller than this: 2%.", "SHARE")] = None,
    strict: Annotated[
        bool, option(None, "Exit with 5 if a deciding metric is undecided.", None, "--strict")
    ] = False,
    output: Annotated[
        Path | None,
        option(None, "Write reports, JSON and JUnit into this folder.", "FOLDER", "--output", "-o"),
    ] = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Compare two runs or two versions: what changed, whether the change is real, and why."""
    from profkit.core.errors import UsageError
    from profkit.regression.compare import CompareOptions

    show = _Show(format, output, strict, quiet)
    show.prepare()
    share = parse_share(floor)
    if any(name is not None for name in (suite, base, head, a, b)):
        pairs = _pair_options(budget, share, sampling, timeout)
        if suite is not None:
            from profkit.regression.paired.suite import SuiteRequest

            if words or a is not None or b is not None:
                raise UsageError(
                    "the file of --suite already names the commands", "leave COMMAND, --a and --b out"
                )
            if base is None:
                raise UsageError(
                    "--suite needs a version to compare with",
                    f"--suite {shlex.quote(str(suite))} --base main",
                )
            _compare_suite(
                SuiteRequest(suite, base, head, _prepared(setup), share, pairs, cause, strict),
                show,
            )
        request = _versions(words or [], base, head, a, b, setup)
        _compare_versions(
            replace(
                request, pairs=pairs, causes=cause, metric_named=bool(_metrics(metric or [])), take_input=True
            ),
            show,
        )
    baseline, candidate = _two_runs(words or [])
    run_options = CompareOptions(
        force=force,
        metrics=_metrics(metric or []),
        floor=share,
        paths=(str(baseline), str(candidate)),
    )
    from profkit.reporting.views.comparison.view import comment, view

    comparison = _compare_evaluations(run_options) or _compare_runs(run_options)
    show.show(comparison, view(comparison), comment(comparison), in_step=False)
    raise typer.Exit(exit_code(comparison, strict=strict))


def _two_runs(words: list[str]) -> tuple[Path, Path]:
    from profkit.core.errors import UsageError

    if len(words) == 2:
        return Path(words[0]), Path(words[1])
    raise UsageError(
        f"compare needs two runs or reports, but got {len(words)}",
        "profkit compare BASELINE CANDIDATE, or profkit compare --base main -- COMMAND",
    )


def _versions(
    words: list[str], base: str | None, head: str | None, a: str | None, b: str | None, setup: str | None
) -> VersionsRequest:
    """Return what is compared. Raises UsageError for options that do not belong together."""
    from profkit.core.errors import UsageError
    from profkit.regression.paired import CheckoutSpec, VersionsRequest

    if (a is None) != (b is None):
        raise UsageError("--a and --b must be given together", "--a 'python old.py' --b 'python new.py'")
    if a is not None and b is not None:
        if base is not None or head is not None or words or setup is not None:
            raise UsageError("--a and --b are the whole commands", "leave --base, --setup and COMMAND out")
        return VersionsRequest(commands=(a, b))
    if not words:
        raise UsageError(
            "no command: put it after `--`",
            f"profkit compare --base {shlex.quote(base or 'main')} -- python bench.py",
        )
    if base is None:
        raise UsageError(
            f"--head {head} needs a version to compare with", f"--base {shlex.quote(head or 'HEAD')}~1"
        )
    return VersionsRequest(tuple(words), base, head, checkout=CheckoutSpec(setup=_prepared(setup)))


def _prepared(setup: str | None) -> tuple[str, ...]:
    return ("sh", "-c", setup) if setup is not None else ()


def _pair_options(
    budget: float, floor: float | None, sampling: float, timeout: float | None
) -> PairedOptions:
    """Return how two versions are run alternately."""
    from profkit.profiling.plain_run import RunOptions
    from profkit.regression.paired.interleave import FLOOR, PairedOptions

    run = RunOptions(sampling=sampling, timeout=timeout)
    return PairedOptions(budget, floor if floor is not None else FLOOR, run=run)


def _compare_versions(request: VersionsRequest, show: _Show) -> NoReturn:
    from profkit.cli.progress import progress_for
    from profkit.core.errors import Interrupted
    from profkit.core.signals import defer_interrupts, raise_on_signals
    from profkit.regression.paired import compare_versions
    from profkit.reporting.views.comparison.view import comment, view

    with raise_on_signals():
        result = compare_versions(request, progress_for(quiet=show.quiet))
    with defer_interrupts():  # a second Ctrl-C must not cost what the first one left
        show.show(result.comparison, view(result.comparison), comment(result.comparison))
    code = Interrupted.exit_code if result.interrupted else exit_code(result.comparison, strict=show.strict)
    raise typer.Exit(code)


def _compare_suite(request: SuiteRequest, show: _Show) -> NoReturn:
    from profkit.cli.progress import progress_for
    from profkit.core.signals import defer_interrupts, raise_on_signals
    from profkit.regression.paired.suite import compare_suite
    from profkit.reporting.views.comparison.view import suite_view

    with raise_on_signals():
        suite = compare_suite(request, progress_for(quiet=show.quiet))
    with defer_interrupts():
        show.show(suite, suite_view(suite), suite_view(suite, short=True))
    raise typer.Exit(suite.exit_code)


@dataclass(frozen=True)
class _Show:
    """Where a result goes: standard output, the folder that was asked for, and GitHub's runner where there is one."""

    format: options.OutputFormat
    output: Path | None
    strict: bool
    quiet: bool

    def prepare(self) -> None:
        """Make the folder before anything runs. Raises MachineError where that cannot be."""
        from profkit.core.errors import writing
        from profkit.core.files.safe_folder import make_parents

        if self.output is not None:
            with writing(self.output, "--output FOLDER"):
                make_parents(self.output)

    def show(
        self, found: Comparison | ComparedSuite, whole: View, short: View, *, in_step: bool = True
    ) -> None:
        """Print one comparison or several; with `in_step` also GitHub's summary and annotations."""
        from profkit.reporting import json
        from profkit.reporting.forges import annotations_in_step, append_summary, summary_file
        from profkit.reporting.plain_text import disarm_commands, text_for_others

        document = json.document(found)
        as_json = self.format is options.OutputFormat.json
        options.print_result(document if as_json else options.render_view(whole, self.format, details=False))
        faults: list[str] = []
        if self.output is not None:
            from profkit.reporting.report_files import write_comparison

            faults += write_comparison(self.output, document, whole, short, strict=self.strict)
        summary = summary_file() if in_step else None
        if summary is not None and (fault := append_summary(summary, short)) is not None:
            faults.append(fault)
        for fault in faults:
            sys.stderr.write(f"warning: {disarm_commands(text_for_others(fault))}\n")
        if in_step:
            sys.stderr.write(annotations_in_step(short))


def _compare_runs(run_options: CompareOptions) -> Comparison:
    from profkit.profiling.summarize import summarize_report
    from profkit.regression.compare import compare as compare_documents

    before, after = (summarize_report(Path(path)) for path in run_options.paths)
    return compare_documents(before, after, run_options)


def _compare_evaluations(run_options: CompareOptions) -> Comparison | None:
    """Compare two evaluations; None if not both are evaluations."""
    from profkit.kernels.evaluation.document import is_evaluation, read_evaluation
    from profkit.regression.compare import compare_evaluations

    baseline, candidate = map(Path, run_options.paths)
    if not is_evaluation(baseline) or not is_evaluation(candidate):
        return None
    return compare_evaluations(read_evaluation(baseline), read_evaluation(candidate), run_options)


def exit_code(comparison: Comparison, *, strict: bool) -> int:
    """Return 1 for regressed, 5 for ambiguous or refused or, if `strict`, an undecided deciding metric, else 0."""
    from profkit.regression.compare import deciding_changes

    if comparison.outcome == "regressed":
        return 1
    if comparison.outcome in ("ambiguous", "refused"):
        return 5
    if strict and any(change.word == "ambiguous" for change in deciding_changes(comparison.changes)):
        return 5
    return 0


def _metrics(names: list[str]) -> tuple[str, ...]:
    """Return the metrics by name; raises UsageError with the nearest known one if there is none of a name."""
    from profkit.analysis.metrics.catalogue import metric as known

    return tuple(dict.fromkeys(known(name.strip()).name for name in names))


def parse_share(text: str | None) -> float | None:
    """Return `2%`, `2 %` and `0.02` as 0.02. Raises UsageError for what is no share between 0 and 1."""
    from profkit.core.errors import UsageError

    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match is not None else -1.0
    if not 0 <= value < 1:
        raise UsageError(f"--floor {text} is not a share between 0 and 100 %", "--floor 2%")
    return value


def bisect(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A fast commit, a later slow commit, and the command after `--`.",
            metavar="GOOD BAD -- COMMAND",
        ),
    ] = None,
    setup: Annotated[
        str | None, option(None, "A command to run in each checkout first, such as a build.")
    ] = None,
    budget: Annotated[float, option(None, "Seconds that each test of a commit may take.", min=1.0)] = 60.0,
    floor: Annotated[str | None, option(None, "Ignore changes smaller than this: 2%.", "SHARE")] = None,
    sampling: Annotated[float, option(None, "Seconds for which one process is timed.", min=0.01)] = 1.0,
    timeout: Annotated[float | None, option(None, "Seconds that one process may take.", min=0.01)] = None,
    quiet: Annotated[
        bool, option(None, "Show no progress on standard error.", None, "--quiet", "-q")
    ] = False,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Find the commit that made a command slower; runs of the commits alternate."""
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.core.signals import defer_interrupts, raise_on_signals
    from profkit.core.types import BisectOptions
    from profkit.regression.bisect import bisection as bisecting
    from profkit.regression.paired.interleave import FLOOR
    from profkit.reporting import json
    from profkit.reporting.views.bisect import view

    if len(words or []) < 3:
        raise UsageError(
            "bisect needs two commits and a command after `--`",
            "profkit bisect HEAD~20 HEAD -- python bench.py",
        )
    good, bad, *command = words or []
    share = parse_share(floor)
    bisect_options = BisectOptions(budget, share if share is not None else FLOOR, sampling, timeout)
    progress = progress_for(quiet=quiet)
    with raise_on_signals():
        document, folder = bisecting.bisect(
            good, bad, tuple(command), bisect_options, progress, setup, take_input=True
        )
    with defer_interrupts():
        options.print_as(format, lambda: json.document(document), lambda: view(document, str(folder)))
    raise typer.Exit(bisecting.exit_code(document))

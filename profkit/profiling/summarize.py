"""Turns a report of any profiler, or a run's folder, into a document with summaries and verdicts."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.analysis.judge.load import load_targets
from profkit.analysis.judge.run import judge_run
from profkit.analysis.judge.target import Target
from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table, has_formulas
from profkit.analysis.plausible import check_possible, doubt_impossible
from profkit.analysis.summaries import compose
from profkit.backends import backend_named, backend_of_report
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import read_start
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.run_folder import FILE_NAME, is_run, read_run
from profkit.core.types import Fact, Report, RunDocument, Summary, Workload
from profkit.profilers.files import reading
from profkit.profilers.profiler import Conversion, Format
from profkit.profilers.registry import PROFILERS, explain_fault, is_known, recognise_format

CONVERSION_SECONDS = 600.0
_OWN = ("error: ", "fix: ")  # how lines of our own errors begin


def summarize_report(path: Path, targets: Path | None = None) -> RunDocument:
    """Return the judged document of a report or a run.

    Raises UnreadableReport where `path` is nothing that profkit can read, MachineError where only a tool that is
    not here could, and UsageError for a targets file that makes no sense.
    """
    return _judge(_load(path), path, targets)


def read_judged(path: Path, targets: Path | None = None) -> RunDocument:
    """Return the same, but a run that was judged when it was made keeps its verdicts.

    It may have had targets of its own. With `targets` everything is judged anew. Raises as `summarize_report`
    does.
    """
    document = _load(path)
    # Verdicts on impossible values are dropped: an older version may have made them, or somebody by hand.
    possible = doubt_impossible(document.readings) == document.readings
    if targets is None and document.verdicts and document.summaries and possible:
        return document
    return _judge(document, path, targets)


def _judge(document: RunDocument, path: Path, targets: Path | None) -> RunDocument:
    try:
        return judge_document(document, targets_for(document.backend, targets, document.workload.name))
    except (
        ArithmeticError,
        LookupError,
        ValueError,
    ) as error:  # values that no tool measures may still be in a file
        raise UnreadableReport(f"{path} has values that cannot be used in a calculation: {error}") from error


def may_hold_kernels(path: Path) -> bool:
    """Return whether a path may be results of many kernels, a folder or JSON.

    It is checked before the modules that read those are loaded.
    """
    if path.is_dir():
        return True
    try:
        return read_start(path, 64).lstrip()[:1] in (b"{", b"[", b"")
    except OSError:
        return False  # its reader reports why


def refuse_generation(path: Path) -> None:
    """Raise UnreadableReport for a generation of kernels, which has neither readings nor verdicts."""
    from profkit.kernels.generation_document import is_generation

    if not is_generation(path):
        return
    folder = path if path.is_dir() else path.parent
    raise UnreadableReport(
        f"{path} is a generation of kernels, which its index.html shows. To judge, compare or store its kernels, "
        "evaluate them first",
        f"profkit evaluate --backend directory --kernels {shlex.quote(str(folder))}",
    )


def _load(path: Path) -> RunDocument:
    document = _read_document(path)
    with reading(path, named=False):
        check_possible(document.profiles, document.trace)
    return document


def _read_document(path: Path) -> RunDocument:
    if may_hold_kernels(path):
        refuse_generation(path)
    # by its content: any trace may be called run.json, and a damaged run is reported as a run
    if is_run(path) or (path.name == FILE_NAME and not is_known(path)):
        return read_run(path)
    if may_hold_kernels(path) and (evaluation := _read_evaluation(path)) is not None:
        return evaluation
    return report_as_run(read_report(path), path)


def _read_evaluation(path: Path) -> RunDocument | None:
    from profkit.kernels.evaluation.document import is_evaluation, read_evaluation
    from profkit.kernels.evaluation.outputs import evaluation_as_run

    return evaluation_as_run(read_evaluation(path)) if is_evaluation(path) else None


def read_report(path: Path) -> Report:
    """Read the report at `path`, recognised by its content, and converted first if only its tool can read it.

    Raises UnreadableReport where it is none, MachineError where that tool is not here or fails.
    """
    form = recognise_format(path)
    if form.conversion is None:
        return form.read(path)
    with TemporaryFolder() as folder:
        output = Path(folder) / form.conversion.output
        _convert(form, form.conversion, path, output)
        return form.read(output)


def _convert(form: Format, conversion: Conversion, path: Path, output: Path) -> None:
    from profkit.core import process

    only = f"{path} is {form.title}, which only {form.tool} can read"
    line = conversion.by_hand.format(name=shlex.quote(path.name), stem=shlex.quote(path.stem))
    by_hand = f"where it was recorded: {line}, then read that"
    try:
        outcome = process.run(conversion.argv(path, output), timeout=CONVERSION_SECONDS)
    except UsageError as error:
        raise MachineError(f"{only}: {error.message}", by_hand) from error
    if form.is_folder is not None and not outcome.ok:  # its exporter is our own: the error is in our words
        fields = dict(
            line.split(": ", 1) for line in outcome.output_tail.splitlines() if line.startswith(_OWN)
        )
        why = fields.get("error", "it printed nothing")
        # only a Mac can convert it: no command on this machine helps
        raise MachineError(f"{only}: {why}", by_hand if "macOS only" in why else fields.get("fix", by_hand))
    has_output = any(output.iterdir()) if output.is_dir() else output.is_file() and output.stat().st_size > 0
    if not outcome.ok or not has_output:
        fault = explain_fault(form.tool, outcome.output_tail, outcome.returncode)
        if fault is not None:
            raise MachineError(f"{form.tool} cannot read {path}: {fault.reason}", fault.fix)
        if outcome.returncode == 127 or "not found" in outcome.output_tail:
            raise MachineError(f"{only}, and {form.tool} is not here", by_hand)
        last = outcome.output_tail.strip().splitlines()[-1:] or ["it printed nothing"]
        raise UnreadableReport(f"{form.tool} cannot read {path}: {last[0]}")


def report_as_run(report: Report, path: Path) -> RunDocument:
    """Return a report as a run of which nothing more is known."""
    backend = backend_of_report(report)
    profiler = PROFILERS.get(report.tool)
    forms = [form for form in profiler.formats if form.name == report.format] if profiler is not None else []
    facts_are_conditions = backend.has_device or any(form.facts_are_conditions for form in forms)
    derivable = report.counters and has_formulas(report.tool)
    readings = (
        derive(report.counters, formula_table(report.tool), report.tool, path.name) if derivable else ()
    )
    command = report.facts.get("command")
    facts = (
        [] if facts_are_conditions else [Fact.of("told", name=n, message=v) for n, v in report.facts.items()]
    )
    return RunDocument(
        name=path.name,
        backend=backend.name,
        state="complete",
        workload=Workload(_split_command(command), path.stem, ""),
        started=_start_time(report, path),
        tools={report.tool: report.version} if report.version else {},
        counters=report.counters,
        readings=readings,
        gpus=report.gpus,
        trace=report.trace,
        timeline=report.timeline,
        metal=report.metal,
        instructions=report.instructions,
        rules=report.rules,
        facts=report.facts,
        profiles=report.profiles,
        notes=(*facts, *report.warnings),
    )


def _start_time(report: Report, path: Path) -> str:
    """Return when it was recorded (UTC): the report's own time, else that of the file's last change."""
    start = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    with contextlib.suppress(ValueError, OverflowError):
        recorded = datetime.fromisoformat(report.facts.get("recorded", ""))
        start = recorded.astimezone(timezone.utc) if recorded.tzinfo is not None else start
    return start.isoformat(timespec="seconds")


def _split_command(command: str | None) -> tuple[str, ...]:
    """Split a recorded command line into words, where it can be split like a shell's."""
    try:
        return tuple(shlex.split(command)) if command else ()
    except ValueError:
        return (command,) if command else ()


def targets_for(
    backend: str, override: Path | None = None, workload: str | None = None
) -> tuple[Target, ...]:
    """Return the default targets of a backend, changed by the user's file and its section for `workload`."""
    return load_targets(backend_named(backend).targets, override, workload)


def judge_document(document: RunDocument, targets: Sequence[Target]) -> RunDocument:
    """Return the document with derived readings, summaries and conclusions; judging it again changes nothing."""
    enriched = _with_repetition(enrich_document(document))
    enriched = replace(enriched, readings=doubt_impossible(enriched.readings))
    summarized = replace(enriched, summaries=summarize_document(enriched))
    return judge_run(summarized, targets, backend_named(document.backend).tool_lines.count)


def _with_repetition(document: RunDocument) -> RunDocument:
    """Correct the time split by the trace: an unmarked program that repeats itself is mostly start-up."""
    split, trace = document.time_split, document.trace
    if split is None or trace is None or trace.marked or not trace.repeats or not trace.span:
        return document
    steady = min(trace.span, split.wall)
    loops = min(sum(loop.seconds for loop in trace.loops), split.wall - steady)
    untraced = min(trace.untraced or 0.0, split.wall - steady - loops)
    known = replace(
        split,
        startup=split.wall - steady - loops - untraced,
        steady=steady,
        repeats=trace.repeats,
        loops=loops or None,
        untraced=untraced or None,
    )
    return replace(document, time_split=known)


def enrich_document(document: RunDocument) -> RunDocument:
    """Return the document with all readings that follow from those of its backend."""
    return compose.enrich(document, backend_named(document.backend))


def summarize_document(document: RunDocument) -> tuple[Summary, ...]:
    """Return one summary for each concern of an enriched document."""
    summaries = compose.summarize(document, backend_named(document.backend))
    return tuple(replace(summary, readings=doubt_impossible(summary.readings)) for summary in summaries)

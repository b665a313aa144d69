"""Exports a run or a report as one text in a form that people or CI read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.codec import json_text
from profkit.core.errors import ProfkitError, Progress, Silent, UsageError, writing
from profkit.core.files.safe_folder import chown_to_sudo_user, write_whole
from profkit.core.run_folder import FILE_NAME
from profkit.core.types import RunDocument, Stacks
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import may_hold_kernels, read_judged
from profkit.reporting.view import View


@dataclass(frozen=True)
class ExportOptions:
    """The run or report to export, and how. `form` is a name that `--format` takes."""

    source: Path
    form: str
    targets: Path | None = None
    strict: bool = False  # junit: an unknown verdict is an error
    output: Path | None = None  # the file to write; None: standard output


def check_output(options: ExportOptions, *, force: bool, terminal: bool) -> None:
    """Raise UsageError, before anything is read, for an output that could not be written in the end."""
    output = options.output
    if output is None:
        if terminal and options.form == "html":
            line = f"--output {shlex.quote(options.source.resolve().stem + '.html')}"
            raise UsageError("html is a page for a browser, but standard output is a terminal", line)
        return
    if (output.exists() or output.is_symlink()) and not force:
        raise UsageError(f"{output} exists already", "choose another name, or add --force")


def export(options: ExportOptions, progress: Progress | None = None) -> str:
    """Return the text of the export. Raises UnreadableReport, MachineError."""
    whole = render_kernels(options.source, options.form, options.targets, strict=options.strict)
    if whole is not None:
        return whole
    document = read_judged(options.source, options.targets)
    if options.form == "json":
        from profkit.reporting.json import run

        return run(document)
    if options.form == "html":
        return _html_page(document, options, progress or Silent())
    from profkit.reporting.views import run as runs
    from profkit.reporting.views.kernels.sweep import judged

    # A terminal shows as much of a sweep as fits on a screen.
    shown = judged(document) if document.is_sweep and options.form != "junit" else runs.view(document)
    return _render_view(shown, options.form, strict=options.strict, details=True)


def render_kernels(
    source: Path, form: str, targets: Path | None = None, *, strict: bool = False
) -> str | None:
    """Return the text of a sweep or an evaluation, made from its own view; None for anything else.

    As JSON they are exported like any run, and so is a sweep as JUnit. Raises UnreadableReport if the file is damaged.
    """
    view = _view_of_kernels(source, form, targets) if form != "json" and may_hold_kernels(source) else None
    return _render_view(view, form, strict=strict) if view is not None else None


def _view_of_kernels(source: Path, form: str, targets: Path | None) -> View | None:
    from profkit.kernels.evaluation.document import is_evaluation, read_evaluation
    from profkit.kernels.sweep.request import FILE, read_sweep

    if form != "junit" and (source / FILE).is_file():
        from profkit.reporting.views.kernels.sweep import view as view_sweep

        return view_sweep(read_sweep(source), source)
    if is_evaluation(source):
        from profkit.reporting.views.kernels.evaluation import view as view_evaluation

        verdicts = read_judged(source, targets).verdicts if form == "junit" else ()
        return view_evaluation(read_evaluation(source), source, verdicts)
    return None


def _render_view(shown: View, form: str, *, strict: bool = False, details: bool = False) -> str:
    if form == "junit":
        from profkit.reporting import junit

        return junit.render([shown], strict=strict)
    if form == "html":
        from profkit.reporting.html.page import render

        return render(shown)
    from profkit.reporting import markdown, terminal

    if form == "markdown":
        return markdown.render(shown, markdown.STEP_SUMMARY)
    return terminal.render(shown, details=details)


def _html_page(document: RunDocument, options: ExportOptions, progress: Progress) -> str:
    """Render the page; it links the files of the run only if it will be in the run's folder.

    For the flame graph of a report, the sampled stacks are read again, since the document has only their sums.
    """
    from profkit.reporting.html.page import render
    from profkit.reporting.views.run import view
    from profkit.reporting.views.run_about import read_extras

    source = options.source
    folder = source.parent if source.name == FILE_NAME else source
    is_run = (folder / FILE_NAME).is_file()
    extras = read_extras(folder if is_run else None)
    if not is_run:
        extras = replace(extras, stacks=_stacks_of(source, progress))
    beside = options.output is not None and options.output.absolute().parent == folder.absolute()
    return render(view(document, extras=extras if beside else replace(extras, folder=None)))


def _stacks_of(report: Path, progress: Progress) -> tuple[Stacks, ...]:
    """Return the sampled stacks of a report; empty if it has none."""
    form = recognise_format(report)
    if not form.has_stacks:
        return ()
    progress.begin("stacks", str(report))
    stacks = form.read(report).stacks
    progress.end("read")
    return stacks


def runs_text(documents: Sequence[RunDocument], faults: Sequence[ProfkitError]) -> str:
    """Return one JSON document of several runs, with what could not be read."""
    from profkit.reporting.json import for_others, run_fields

    errors = [for_others({"message": fault.message, "fix": fault.fix}) for fault in faults]
    return json_text({"schema": "profkit.runs/1", "runs": list(map(run_fields, documents)), "errors": errors})


def write_export(path: Path, text: str) -> None:
    """Write the text whole or not at all. Raises MachineError (full disk, no permission)."""
    with writing(path, "--output FILE"):
        write_whole(path, [text])
    chown_to_sudo_user(path)

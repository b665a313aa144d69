"""`profkit profile`, all passes over one workload, and `record`, one profiler's report of it."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli import options
from profkit.cli.options import option

if TYPE_CHECKING:
    from profkit.core.errors import Progress

EXAMPLES = {
    "profile": """
Example:  profkit profile --backend cpu -- python benchmark/gated_mlp.py --backend cpu

On a GPU, first where the time goes, then why:  profkit profile --backend cuda -- python train.py

See first what it would do:  profkit profile --plan -- python train.py

On a Mac, the Apple GPU by Instruments:  profkit profile --backend mps -- python train.py

On a server that ssh reaches:  profkit profile --on ssh:gpu1 --backend cuda -- python train.py

A program that runs already, for 20 s; it goes on:  profkit profile --pid 1234 --seconds 20

In CI, one minute, exit 1 where a target fails:  profkit profile --depth gate --check -- python train.py
""",
    "record": """
Example:  profkit record --tool perf --report out.data -- python benchmark/gated_mlp.py --backend cpu

On a Mac, a trace of the GPU:  profkit record --tool xctrace --report out.trace -- python train.py

One kernel:  profkit record --tool ncu --report out.ncu-rep --kernel silu_mul -- python train.py

Then:  profkit summarize out.data
""",
}


def profile(
    command: Annotated[
        list[str] | None, typer.Argument(help="The workload, after `--`.", metavar="COMMAND")
    ] = None,
    pid: Annotated[int | None, typer.Option(help="Instead: a process that runs, with its children.")] = None,
    seconds: Annotated[float, typer.Option(help="How long to look at it.")] = 20.0,
    backend: options.BackendOption = "auto",
    passes: Annotated[
        str | None,
        typer.Option(help="Only these: timing,stacks,cprofile,tracemalloc,trace,counters,explain,try."),
    ] = None,
    depth: Annotated[
        options.DepthOption, typer.Option(help="What may be spent.")
    ] = options.DepthOption.standard,
    targets: options.TargetsOption = None,
    output: Annotated[Path, typer.Option(help="The folder that runs land in.")] = Path("reports"),
    name: Annotated[str | None, typer.Option(help="The run's name (default: the workload's).")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 where a target fails.")] = False,
    strict: options.StrictOption = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one process of the workload.")] = None,
    precision: Annotated[float, typer.Option(help="Half-width of the median's interval, as a share.")] = 0.01,
    sampling: Annotated[float | None, typer.Option(help="Seconds of timing in one process.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Seconds that the whole run may take; what does not fit is left out (default: 5 plain runs and "
            "10 s, on a GPU 5 and 20 s; no limit where a region is marked, and at full depth)."
        ),
    ] = None,
    trying: Annotated[
        str,
        typer.Option(
            "--try",
            help="Run it again with likely settings changed (threads, garbage collection, allocator, TF32), and say "
            "what is faster with the same output: none, auto or all.",
            metavar="none|auto|all",
        ),
    ] = "auto",
    keep_arguments: Annotated[
        bool, typer.Option("--keep-arguments", help="Write what looks like a secret, too (--password X).")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the passes and their cost; run nothing.")
    ] = False,
    where: options.Elsewhere = options.HERE,
    tree: options.TreeOption = False,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Run a workload under every instrument this machine has, and judge what they say."""
    from profkit.cli import print_fault
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.core.signals import defer_interrupts
    from profkit.profiling.profile import ProfileOptions, make_plan, profile_workload

    request = ProfileOptions(
        command=tuple(command or ()),
        backend=backend,
        passes=tuple(p.strip() for p in passes.split(",") if p.strip()) if passes is not None else None,
        depth=depth.value,
        targets=targets,
        output=output,
        name=name,
        timeout=timeout,
        precision=precision,
        sampling=sampling,
        budget=budget,
        trying=trying,
        keep_arguments=keep_arguments,
    )
    elsewhere = where.places()
    progress = progress_for(quiet=quiet)
    if plan and pid is None:
        from profkit.reporting import json
        from profkit.reporting.views.plan import view

        if elsewhere is not None:
            raise UsageError("--plan is of this machine", "leave --on out")
        planned = make_plan(request)
        options.print_as(format, lambda: json.document(planned), lambda: view(planned))
        return
    if pid is not None:
        from profkit.profiling.attach import AttachOptions, profile_running

        if command or plan or elsewhere is not None:
            raise UsageError("--pid is of a process that runs here", "leave out the command, --plan and --on")
        attached = AttachOptions(
            pid=pid,
            seconds=seconds,
            targets=targets,
            output=output,
            name=name,
            keep_arguments=keep_arguments,
        )
        document, folder = profile_running(attached, progress)
    elif elsewhere is None:
        document, folder = profile_workload(request, progress, take_input=True)
    else:
        from profkit.profiling.elsewhere import profile_elsewhere

        _say_input_stays(progress)
        document, folder = profile_elsewhere(request, *elsewhere, progress)
    if document.state == "interrupted":
        with defer_interrupts():  # a second Ctrl-C must not cost what the first one left
            options.print_document(document, format, folder)
        raise typer.Exit(130)
    options.print_document(document, format, folder)
    if tree:
        try:
            options.print_tree(folder, format)
        except UsageError as without:  # nothing was sampled: the run itself is as it is
            print_fault(without)
    raise typer.Exit(options.verdict_exit(document, judged=check, strict=strict))


def _say_input_stays(progress: Progress) -> None:
    from profkit.core.standard_input import waiting_bytes
    from profkit.core.types import Fact
    from profkit.reporting.facts import fact_text

    if waiting_bytes():
        progress.note(fact_text(Fact("input-not-sent")))


class RecordKind(str, Enum):
    """What to record, where a profiler can do both."""

    samples = "samples"
    counters = "counters"
    cpu = "cpu"


def record(
    command: Annotated[list[str], typer.Argument(help="The workload, after `--`.", metavar="COMMAND")],
    tool: Annotated[str, option(None, "The profiler: perf, valgrind, ncu, nsys or xctrace.", "NAME")],
    report: Annotated[Path, typer.Option(help="The file to leave; of xctrace a folder.")],
    what: Annotated[
        RecordKind,
        typer.Option(
            help="perf: samples or counters. xctrace: the GPU's trace (samples), its counters, or the CPU's (cpu)."
        ),
    ] = RecordKind.samples,
    kernel: Annotated[str | None, typer.Option(help="ncu: this kernel alone, or a part of its name.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds the workload may take.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the report if it is there.")] = False,
    where: options.Elsewhere = options.HERE,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Run a workload under one profiler, with profkit's own recipe for it."""
    from profkit.cli.progress import progress_for
    from profkit.profiling.record import RecordOptions, find_recorder, record_report

    request = RecordOptions(
        tool=tool,
        report=report,
        command=tuple(command),
        what=what.value,
        kernel=kernel,
        timeout=timeout,
        force=force,
    )
    elsewhere = where.places()
    if elsewhere is None:
        left = record_report(request, progress_for(quiet=quiet), take_input=True)
    else:
        from profkit.profiling.elsewhere import record_elsewhere

        _say_input_stays(progress_for(quiet=quiet))
        left = record_elsewhere(request, *elsewhere, progress_for(quiet=quiet))
    if format is options.OutputFormat.json:
        options.print_json({"schema": "profkit.record/1", "tool": tool, "report": str(left)})
    elif not quiet:
        name = shlex.quote(str(left))
        viewer = find_recorder(tool).viewer.format(name=name)
        lines = [f"profkit summarize {name}", f"profkit check {name}", viewer]
        typer.echo("\n".join([str(left), *(f"next: {line}" for line in lines if line)]), err=True)

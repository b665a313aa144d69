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

On an NVIDIA GPU:  profkit profile --backend cuda -- python train.py

Show what would be run:  profkit profile --plan -- python train.py

On a Mac, the Apple GPU with Instruments:  profkit profile --backend mps -- python train.py

On a server, by ssh:  profkit profile --on ssh:gpu1 --backend cuda -- python train.py

A program that is already running, for 20 s (it is not stopped):  profkit profile --pid 1234 --seconds 20

In CI, about one minute, exit code 1 if a target fails:  profkit profile --depth gate --check -- python train.py
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
        list[str] | None, typer.Argument(help="The program to run, after `--`.", metavar="COMMAND")
    ] = None,
    pid: Annotated[
        int | None, typer.Option(help="Profile this running process and its children instead.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long to profile the process of --pid.")] = 20.0,
    backend: options.BackendOption = "auto",
    passes: Annotated[
        str | None,
        typer.Option(
            help="Run only these passes: timing,stacks,cprofile,tracemalloc,trace,counters,explain,try."
        ),
    ] = None,
    depth: Annotated[
        options.DepthOption, typer.Option(help="How much to measure; more takes longer.")
    ] = options.DepthOption.standard,
    targets: options.TargetsOption = None,
    output: Annotated[Path, typer.Option(help="The folder in which the run's folder is created.")] = Path(
        "reports"
    ),
    name: Annotated[
        str | None, typer.Option(help="The name of the run (default: that of the workload).")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target fails.")] = False,
    strict: options.StrictOption = False,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that one process of the workload may take.")
    ] = None,
    precision: Annotated[
        float, typer.Option(help="How precisely the median time is measured: 0.01 is ±1 %.")
    ] = 0.01,
    sampling: Annotated[float | None, typer.Option(help="Seconds for which one process is timed.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Seconds that the whole run may take; passes that do not fit are skipped (default: 5 times one "
            "normal run plus 10 s, on a GPU plus 20 s; no limit if a region is marked or with --depth full)."
        ),
    ] = None,
    trying: Annotated[
        str,
        typer.Option(
            "--try",
            help="Run the program again with other settings (threads, garbage collection, allocator, TF32) and "
            "report those that are faster with the same output: none, auto or all.",
            metavar="none|auto|all",
        ),
    ] = "auto",
    keep_arguments: Annotated[
        bool, typer.Option("--keep-arguments", help="Keep arguments that look like secrets (--password X).")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the passes and their cost, and run nothing.")
    ] = False,
    where: options.Elsewhere = options.HERE,
    tree: options.TreeOption = False,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Profile a program with every profiler that works here; show where the time goes and what to change."""
    from profkit.cli import BEGAN, print_fault
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
            raise UsageError("--plan works on this machine only", "leave --on out")
        planned = make_plan(request)
        options.print_as(format, lambda: json.document(planned), lambda: view(planned))
        return
    if pid is not None:
        from profkit.profiling.attach import AttachOptions, profile_running

        if command or plan or elsewhere is not None:
            raise UsageError(
                "--pid needs a process on this machine", "leave out the command, --plan and --on"
            )
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
        document, folder = profile_workload(request, progress, take_input=True, began=BEGAN)
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
    command: Annotated[list[str], typer.Argument(help="The program to run, after `--`.", metavar="COMMAND")],
    tool: Annotated[str, option(None, "The profiler: perf, valgrind, ncu, nsys or xctrace.", "NAME")],
    report: Annotated[Path, typer.Option(help="The file to write (a folder for xctrace).")],
    what: Annotated[
        RecordKind,
        typer.Option(
            help="perf: samples or counters. xctrace: the GPU's trace (samples), its counters, or the CPU's (cpu)."
        ),
    ] = RecordKind.samples,
    kernel: Annotated[
        str | None, typer.Option(help="ncu: profile only kernels with this text in their name.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds that the program may take.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing report.")] = False,
    where: options.Elsewhere = options.HERE,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Record a program with one profiler, with settings that profkit has tested."""
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

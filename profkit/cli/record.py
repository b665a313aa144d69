"""`profkit record`: one tool, one report."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from profkit.cli import options
from profkit.cli.options import option

EXAMPLES = """
Example:  profkit record --tool perf --report out.data -- python benchmark/gated_mlp.py --backend cpu

On a Mac, a trace of the GPU:  profkit record --tool xctrace --report out.trace -- python train.py

One kernel:  profkit record --tool ncu --report out.ncu-rep --kernel silu_mul -- python train.py

Then:  profkit summarize out.data
"""


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
    typed = dict(locals())
    from profkit.cli.progress import progress_for
    from profkit.profiling.record import RecordOptions, record_report

    asked = options.taken(RecordOptions, {**typed, "command": tuple(command), "what": what.value})
    elsewhere = where.places()
    if elsewhere is None:
        left = record_report(asked, progress_for(quiet=quiet))
    else:
        from profkit.profiling.elsewhere import record_elsewhere

        left = record_elsewhere(asked, *elsewhere, progress_for(quiet=quiet))
    if format is options.OutputFormat.json:
        options.print_json({"schema": "profkit.record/1", "tool": tool, "report": str(left)})
    elif not quiet:
        typer.echo(f"{left}\nnext: profkit summarize {shlex.quote(str(left))}", err=True)

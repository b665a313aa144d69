"""`profkit sweep`: operations over shapes, dtypes and implementations."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.options import (
    PLACES,
    FormatOption,
    OnOption,
    OnPythonOption,
    OutputFormat,
    SendEnvOption,
    SendOption,
    SerialMeasureOption,
    places_of,
    print_result,
    print_view,
    typed_beside_resume,
)
from profkit.cli.profile import DepthOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from profkit.core.types import SweepDocument
    from profkit.execution.places.place import ExecutionPlace
    from profkit.kernels.sweep.request import SweepRequest

EXAMPLES = """
Example:  profkit sweep --operations LayerNorm,GELU --batch 16,64 --sequence 512 --dimension 64,512

The default grid, all of it:  profkit sweep

What it would measure, and how long that takes:  profkit sweep --plan

In seconds, on any machine:  profkit sweep --device cpu --operations GELU --batch 2 --sequence 64 --budget 0.1

Your own implementation beside ours:  profkit sweep --with my_kernels.py --operations GELU

Two servers share it:  profkit sweep --on ssh:gpu1,ssh:gpu2 --device cuda --on-python /opt/torch/bin/python

After a Ctrl-C:  profkit sweep --resume reports/20261120-054700-sweep-cuda

The cases with most to win, each through `profkit profile`:  profkit sweep --profile farthest:2

Exit codes: 0 every case was settled; 2 wrong usage; 3 this machine cannot measure, or the disk is full; 4 an
implementation failed, crashed or hung, or one is wrong that is not PyTorch's own (PyTorch, torch.compile: that is told
and fails nothing); 130 interrupted, what was measured is kept.
"""
WITH_RESUME = (
    "resume",
    "with_file",
    "again",
    "profile",
    "profile_depth",
    "results",
    "plan",
    "details",
    "format",
    "quiet",
)
WHAT, HOW, ON, OUT = "Grid", "Measurement", "Resuming and profiling", "Output"


class DeviceName(str, Enum):
    """Where the sweep runs, as torch calls its devices."""

    auto = "auto"
    cuda = "cuda"
    mps = "mps"
    cpu = "cpu"


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("sweep", epilog=EXAMPLES)(sweep)


def sweep(
    context: typer.Context,
    operations: Annotated[
        str,
        typer.Option(
            help="LayerNorm, GELU, Swish, MSE, CrossEntropy; Loss is the last two. Default: all.",
            metavar="A,B",
            rich_help_panel=WHAT,
        ),
    ] = "",
    implementations: Annotated[
        str,
        typer.Option(
            help="PyTorch, torch.compile, Triton, CUDA, or yours. Default: all on cuda, else PyTorch.",
            metavar="A,B",
            rich_help_panel=WHAT,
        ),
    ] = "",
    with_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            help="A Python file that registers implementations of yours.",
            metavar="FILE.py",
            rich_help_panel=WHAT,
        ),
    ] = None,
    batch: Annotated[
        str, typer.Option(help="Batch sizes.", metavar="N,N", rich_help_panel=WHAT)
    ] = "16,32,64,128",
    sequence: Annotated[
        str, typer.Option(help="Sequence lengths.", metavar="N,N", rich_help_panel=WHAT)
    ] = "256,512,1024,2048",
    dimension: Annotated[
        str, typer.Option(help="Tensor dimensions.", metavar="N,N", rich_help_panel=WHAT)
    ] = "8,16,32,64,128,256,512",
    dtype: Annotated[
        str, typer.Option(help="float32, float16, bfloat16.", metavar="A,B", rich_help_panel=WHAT)
    ] = "float32",
    direction: Annotated[
        str, typer.Option(help="forward, backward.", metavar="A,B", rich_help_panel=WHAT)
    ] = "forward",
    device: Annotated[
        DeviceName,
        typer.Option(help="auto: cuda where there is one, else cpu. mps: a Mac's GPU.", rich_help_panel=HOW),
    ] = DeviceName.auto,
    gpus: Annotated[
        str,
        typer.Option(
            help="Numbers of the GPUs that share it, a process each: 0,1,2,3.",
            metavar="N,N",
            rich_help_panel=HOW,
        ),
    ] = "",
    threads: Annotated[
        int,
        typer.Option(help="On the CPU: torch's threads; 0: as many as it takes.", rich_help_panel=HOW),
    ] = 0,
    precision: Annotated[
        float,
        typer.Option(
            help="Half-width of each median's 95 % interval, relative: 0.01 is 1 %.", rich_help_panel=HOW
        ),
    ] = 0.01,
    budget: Annotated[
        float,
        typer.Option(help="Seconds of timing per case at most.", metavar="SECONDS", rich_help_panel=HOW),
    ] = 1.0,
    warm: Annotated[
        bool,
        typer.Option(
            "--warm",
            help="On a GPU: leave the L2 as it is between calls; else it is flushed.",
            rich_help_panel=HOW,
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds that a case may take, compiling included.", metavar="SECONDS", rich_help_panel=HOW
        ),
    ] = 300.0,
    serial_measure: SerialMeasureOption = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Say what would be measured and what it costs, and measure nothing.",
            rich_help_panel=HOW,
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the sweep in this folder, by its own settings.",
            metavar="FOLDER",
            rich_help_panel=ON,
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="With --resume: try what has no time once more.", rich_help_panel=ON),
    ] = False,
    profile: Annotated[
        str,
        typer.Option(
            help="Cases that go through `profkit profile`: slowest:2, farthest:2 (from the roofline).",
            metavar="WHICH:N",
            rich_help_panel=ON,
        ),
    ] = "",
    profile_depth: Annotated[
        DepthOption, typer.Option(help="What each of those may spend.", rich_help_panel=ON)
    ] = DepthOption.standard,
    output: Annotated[
        Path,
        typer.Option(
            help="Folder in which the sweep's own folder is made.", metavar="FOLDER", rich_help_panel=OUT
        ),
    ] = Path("reports"),
    results: Annotated[
        Path | None,
        typer.Option(
            help="Write the records of all cases to this file, too.", metavar="FILE.json", rich_help_panel=OUT
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            help="The sweep's name in its folder, in history and in compare.",
            metavar="NAME",
            rich_help_panel=OUT,
        ),
    ] = "sweep",
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="In the terminal: every map with all its rows, times by axis, every reason.",
            rich_help_panel=OUT,
        ),
    ] = False,
    on: OnOption = None,
    on_python: OnPythonOption = None,
    send: SendOption = None,
    send_env: SendEnvOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress on standard error.", rich_help_panel=OUT)
    ] = False,
) -> None:
    """Check and time operations over a grid of shapes, in every implementation, and show who wins where."""
    from profkit.analysis.ranking.ranking import faulty_cases
    from profkit.cli.progress import progress_for
    from profkit.kernels.sweep.journal import read_request
    from profkit.kernels.sweep.request import SweepOptions, TimingOptions, make_request

    choices = _parse_choices(profile)
    where = places_of(on, on_python, send, send_env, gpus)
    _check_results(results, again=again and resume is None)
    if resume is not None:
        typed_beside_resume(context, (*WITH_RESUME, *PLACES), "a sweep")
        request = read_request(resume, again=again, named=with_file or (), plan=plan, profile=bool(choices))
    else:
        options = SweepOptions(
            operations=operations,
            implementations=implementations,
            batch=batch,
            sequence=sequence,
            dimension=dimension,
            dtype=dtype,
            direction=direction,
            device=device.value,
            gpus=gpus,
            files=tuple(with_file or ()),
            timing=TimingOptions(precision, budget, not warm, threads),
            timeout=timeout,
            output=output,
            name=name,
            serial=serial_measure,
        )
        request = make_request(options, make_folder=not plan, elsewhere=where is not None)
    if plan:
        _show_plan(request, format, where[0] if where is not None else ())
        return
    from profkit.kernels.sweep.outputs import write_records
    from profkit.kernels.sweep.run import run_sweep

    progress = progress_for(quiet=quiet)
    slots = None
    if where is not None:
        from profkit.kernels.places import PlaceSlots

        slots = PlaceSlots(*where)
    document = run_sweep(request, progress, slots)
    if choices:
        from profkit.profiling.drill_down import ProfiledElsewhere
        from profkit.profiling.profile_cases import profile_cases

        elsewhere = where and ProfiledElsewhere(*where)
        document = profile_cases(request, document, choices, profile_depth.value, progress, elsewhere)
    if results is not None:
        write_records(results, document)
    _show(document, request.folder, format, details=details)
    if faulty_cases(document):
        raise typer.Exit(4)


def _check_results(results: Path | None, *, again: bool) -> None:
    """Raises UsageError and MachineError for what would be told, or done, when hours have gone by."""
    from profkit.core.errors import UsageError
    from profkit.kernels.sweep.outputs import check_writable

    if again:
        raise UsageError(
            "--again is for a sweep that is there already", "profkit sweep --resume FOLDER --again"
        )
    if results is not None:
        check_writable(results)


def _parse_choices(text: str) -> tuple[tuple[str, int], ...]:
    """What --profile chooses. What profiles is loaded for it alone: no worker starts before."""
    if not text:
        return ()
    from profkit.profiling.profile_cases import parse_case_choice

    return parse_case_choice(text)


def _show(document: SweepDocument, folder: Path, format: OutputFormat, *, details: bool) -> None:
    if format is OutputFormat.json:
        import json

        from profkit.core import codec

        whole = {"schema": "profkit.sweep/1", "folder": str(folder), "sweep": codec.to_plain_data(document)}
        print_result(json.dumps(whole, allow_nan=False, indent=1))
    else:
        from profkit.reporting.views.sweep import view

        print_view(view(document, folder), format, details=details)


def _show_plan(request: SweepRequest, format: OutputFormat, places: Sequence[ExecutionPlace]) -> None:
    from profkit.kernels.sweep.plan import plan_sweep, plan_text

    plan = plan_sweep(request, places)
    if format is OutputFormat.json:
        import json

        print_result(json.dumps(plan, allow_nan=False, indent=1))
    else:
        print_result(plan_text(plan))

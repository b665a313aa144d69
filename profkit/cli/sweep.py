"""`profkit sweep`: operations over shapes, dtypes and implementations."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli import options
from profkit.cli.options import HOW, OUT, option

if TYPE_CHECKING:
    from profkit.core.types import SweepDocument

EXAMPLES = """
Example:  profkit sweep --operations LayerNorm,GELU --batch 16,64 --sequence 512 --dimension 64,512

In seconds on any machine:  profkit sweep --device cpu --operations GELU --batch 2 --sequence 64 --budget 0.1

With your own implementation:  profkit sweep --with my_kernels.py --operations GELU

After a Ctrl-C:  profkit sweep --resume reports/20261120-054700-sweep-cuda

Exit codes: 0 every case has a result; 2 wrong usage; 3 this machine cannot measure, or the disk is full; 4 an
implementation failed, crashed, hung or gave wrong results (wrong results of PyTorch and torch.compile themselves are
reported, but are not an error); 130 interrupted, finished measurements are kept.
"""
WITH_RESUME = ("resume", "with_file", "results", *options.SHOWN)
WHAT, ON = "Grid", "Resuming"


class DeviceName(str, Enum):
    """Where the sweep runs, as torch calls its devices."""

    auto = "auto"
    cuda = "cuda"
    cpu = "cpu"


def sweep(
    context: typer.Context,
    operations: Annotated[
        str,
        option(
            WHAT, "LayerNorm, GELU, Swish, MSE, CrossEntropy, or Loss for the last two. Default: all.", "A,B"
        ),
    ] = "",
    implementations: Annotated[
        str,
        option(
            WHAT,
            "PyTorch, torch.compile, Triton, CUDA, or your own. Default: all on cuda, else PyTorch.",
            "A,B",
        ),
    ] = "",
    with_file: Annotated[
        list[Path] | None,
        option(WHAT, "A Python file that registers your own implementations.", "FILE.py", "--with"),
    ] = None,
    batch: Annotated[str, option(WHAT, "Batch sizes.", "N,N")] = "16,32,64,128",
    sequence: Annotated[str, option(WHAT, "Sequence lengths.", "N,N")] = "256,512,1024,2048",
    dimension: Annotated[str, option(WHAT, "Tensor dimensions.", "N,N")] = "8,16,32,64,128,256,512",
    dtype: Annotated[str, option(WHAT, "float32, float16, bfloat16.", "A,B")] = "float32",
    direction: Annotated[str, option(WHAT, "forward, backward.", "A,B")] = "forward",
    device: Annotated[DeviceName, option(HOW, "auto: cuda if there is a GPU, else cpu.")] = DeviceName.auto,
    gpus: options.GpusOption = "",
    threads: Annotated[int, option(HOW, "Threads of torch on the CPU; 0: torch's default.")] = 0,
    precision: Annotated[
        float, option(HOW, "Half-width of the 95 % interval of each median: 0.01 is ±1 %.")
    ] = 0.01,
    budget: Annotated[float, option(HOW, "Seconds for which a case is timed at most.", "SECONDS")] = 1.0,
    timeout: options.TimeoutOption = 300.0,
    resume: Annotated[
        Path | None, option(ON, "Continue in this folder, with the settings stored in it.", "FOLDER")
    ] = None,
    output: options.OutputOption = Path("reports"),
    results: Annotated[
        Path | None, option(OUT, "Also write the results of all cases to this file.", "FILE.json")
    ] = None,
    name: options.NameOption = "sweep",
    details: options.DetailsOption = False,
    where: options.Elsewhere = options.HERE,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Check and time operations over a grid of shapes in several implementations; show which is fastest where."""
    from profkit.analysis.ranking import faulty_cases
    from profkit.cli.progress import progress_for
    from profkit.kernels.sweep.outputs import check_writable
    from profkit.kernels.sweep.request import SweepOptions, TimingOptions, make_request, read_request

    places = where.places(gpus)
    if results is not None:
        check_writable(results)  # before hours go by
    if resume is not None:
        options.typed_beside_resume(context, (*WITH_RESUME, *options.PLACES), "a sweep")
        request = read_request(resume, with_file or ())
    else:
        new = SweepOptions(
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
            timing=TimingOptions(precision, budget, threads),
            timeout=timeout,
            output=output,
            name=name,
        )
        request = make_request(new, elsewhere=places is not None)
    from profkit.kernels.sweep.outputs import write_records
    from profkit.kernels.sweep.run import run_sweep

    progress = progress_for(quiet=quiet)
    document = run_sweep(request, progress, options.slots_of(places))
    if results is not None:
        write_records(results, document)
    _show(document, request.folder, format, details=details)
    if faulty_cases(document):
        raise typer.Exit(4)


def _show(document: SweepDocument, folder: Path, format: options.OutputFormat, *, details: bool) -> None:
    if format is options.OutputFormat.json:
        from profkit.core.codec import to_plain_data
        from profkit.reporting.json import for_others

        whole = {"schema": "profkit.sweep/3", "folder": str(folder), "sweep": to_plain_data(document)}
        options.print_json(for_others(whole))
    else:
        from profkit.reporting.views.kernels.sweep import view

        options.print_view(view(document, folder), format, details=details)

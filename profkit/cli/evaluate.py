"""`profkit evaluate`: are kernels right, and are they faster than PyTorch?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.model_options import (
    BaseUrlOption,
    CommandOption,
    KeyEnvOption,
    MaxAttemptsOption,
    ModelOption,
    ProviderOption,
)
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
    typed_options,
)
from profkit.cli.profile import DepthOption

if TYPE_CHECKING:
    from profkit.core.types import EvaluationDocument
    from profkit.kernels.evaluation.request import EvaluationRequest

EXAMPLES = """
Example:  profkit evaluate my_kernels.py --ops relu,add

PyTorch against itself, which shows what this machine can tell:  profkit evaluate --suite smoke --backend aten

A folder of kernels over torch's own database of tests:
profkit evaluate --suite opinfo --backend directory --kernels generated_kernels --dtype bfloat16

Why are the slowest three slow? Each through `profkit profile`:  profkit evaluate my_kernels.py --profile slowest:3

The operations of your own program, with kernels of yours:  profkit evaluate my_kernels.py --trace -- python train.py

A model writes the kernels first (`profkit generate` has more options):
profkit evaluate --backend llm --ops relu,add --model MODEL --max-attempts 3

Against torch.compile, too:  profkit evaluate my_kernels.py --compile

Only whether they are correct:  profkit evaluate my_kernels.py --correctness-only

What it would do:  profkit evaluate --suite opinfo --plan

After a Ctrl-C:  profkit evaluate --resume reports/20261122-100000-evaluation-cpu

One test again, with all that is known of it:
profkit evaluate --replay 0123456789ab reports/20261122-100000-evaluation-cpu

Exit codes: 0 every test that was decided passed; 1 a kernel is incorrect, crashed, hung or could not be loaded; 2 wrong
usage; 3 this machine cannot do it, or not run what needs a GPU; 4 some tests could not be carried out; 130 interrupted,
what was done is kept.
"""
WHAT, HOW, ON, OUT = "Tests and kernels", "Measurement", "Resuming", "Output"
CODE = ("file", "kernels", "suite", "traces")  # is named again where it runs again
WITH_RESUME = ("resume", *CODE, "again", "profile", "profile_depth", "details", "format", "quiet")


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("evaluate", epilog=EXAMPLES)(evaluate)
    app.command("run", hidden=True)(evaluate)  # as the guide of BackendBench calls it


def evaluate(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A Python file with kernels of yours; with --replay the folder of an evaluation.",
            metavar="FILE.py",
            show_default=False,
        ),
    ] = None,
    program: Annotated[
        list[str] | None,
        typer.Argument(
            help="With --trace, after --: a program that uses PyTorch.",
            metavar="[-- PROGRAM]",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Run the program after --, and test the operations that it calls.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    suite: Annotated[
        str,
        typer.Option(help="Which calls are tested: smoke, opinfo, torchbench, traced.", rich_help_panel=WHAT),
    ] = "smoke",
    traces: Annotated[
        Path | None,
        typer.Option(
            help="The suite's own file: operator traces, or a Python file with tests.",
            metavar="PATH",
            rich_help_panel=WHAT,
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            help="Where kernels come from: aten (PyTorch itself), directory, flag_gems, llm (a language model writes "
            "them first). Default: by the paths.",
            rich_help_panel=WHAT,
        ),
    ] = "",
    kernels: Annotated[
        Path | None,
        typer.Option(
            "--kernels",
            "--kernels-dir",
            "--ops-directory",
            help="The folder of the backend directory: relu/relu.py, add__Tensor/add__Tensor_implementation_v1.py; "
            "with llm the folder for new ones.",
            metavar="FOLDER",
            rich_help_panel=WHAT,
        ),
    ] = None,
    ops: Annotated[
        str,
        typer.Option(
            help="Operations: relu, add.Tensor, or patterns: add*.", metavar="A,B", rich_help_panel=WHAT
        ),
    ] = "",
    dtype: Annotated[
        str,
        typer.Option(help="float32, float16, bfloat16, float64. Default: the suite's.", rich_help_panel=WHAT),
    ] = "",
    device: Annotated[
        str, typer.Option(help="auto (cuda where there is one), cuda, cpu.", rich_help_panel=HOW)
    ] = "auto",
    gpus: Annotated[
        str,
        typer.Option(
            help="Numbers of the GPUs that share it, a judge each: 0,1,2,3.",
            metavar="N,N",
            rich_help_panel=HOW,
        ),
    ] = "",
    correctness_only: Annotated[
        bool, typer.Option("--correctness-only", help="Time nothing.", rich_help_panel=HOW)
    ] = False,
    threads: Annotated[
        int, typer.Option(help="torch's threads; 0: as many as it takes.", rich_help_panel=HOW)
    ] = 0,
    precision: Annotated[
        float,
        typer.Option(
            help="Half-width of a speed-up's 95 % interval, relative: 0.02 is 2 %.", rich_help_panel=HOW
        ),
    ] = 0.02,
    floor: Annotated[
        float, typer.Option(help="A speed-up within this of 1 is SAME.", rich_help_panel=HOW)
    ] = 0.05,
    budget: Annotated[
        float,
        typer.Option(help="Seconds of timing per test at most.", metavar="SECONDS", rich_help_panel=HOW),
    ] = 5.0,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds that a call may take, compiling included.", metavar="SECONDS", rich_help_panel=HOW
        ),
    ] = 60.0,
    serial_measure: SerialMeasureOption = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be tested, and test nothing.", rich_help_panel=HOW)
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the evaluation in this folder, by its own settings.",
            metavar="FOLDER",
            rich_help_panel=ON,
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="With --resume: try what did not pass once more.", rich_help_panel=ON),
    ] = False,
    replay: Annotated[
        str,
        typer.Option(
            help="Do one test of an evaluation again, and show all of it.", metavar="ID", rich_help_panel=ON
        ),
    ] = "",
    compile: Annotated[
        bool,
        typer.Option(
            "--compile",
            help="Time kernels against torch.compile of the same operation, too.",
            rich_help_panel=HOW,
        ),
    ] = False,
    profile: Annotated[
        str,
        typer.Option(
            help="Tests that go through `profkit profile`: slowest:3, farthest:2 (from the hardware's bound), slower:2 "
            "(lowest speed-up); other operations first.",
            metavar="WHICH:N",
            rich_help_panel=HOW,
        ),
    ] = "",
    profile_depth: Annotated[
        DepthOption, typer.Option(help="What each of those may spend.", rich_help_panel=HOW)
    ] = DepthOption.standard,
    provider: ProviderOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    key_env: KeyEnvOption = None,
    command: CommandOption = None,
    max_attempts: MaxAttemptsOption = 5,
    output: Annotated[
        Path,
        typer.Option(
            help="Folder in which the evaluation's own folder is made.", metavar="FOLDER", rich_help_panel=OUT
        ),
    ] = Path("reports"),
    name: Annotated[
        str,
        typer.Option(
            help="Its name in its folder, in history and in compare.", metavar="NAME", rich_help_panel=OUT
        ),
    ] = "evaluation",
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="In the terminal: every table with all its rows.", rich_help_panel=OUT
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
    """Test kernels against PyTorch: is each one correct, and how many times as fast?"""
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.execution.places.parse import hide_prefixes
    from profkit.generation.clients.addresses import without_secrets
    from profkit.kernels.evaluation.journal import read_document, read_request, require_code
    from profkit.kernels.evaluation.request import EvaluationOptions, PairOptions, make_request
    from profkit.kernels.evaluation.sources.registry import make_source_request
    from profkit.kernels.named_code import FILE as CODE_FILE
    from profkit.runtime.passes.secrets import mask_command

    if context.info_name == "run":
        typer.echo("profkit run is profkit evaluate here, and does the same", err=True)
    progress = progress_for(quiet=quiet)
    where = places_of(on, on_python, send, send_env, gpus)
    if where is not None and (replay or plan):
        asked = "replay" if replay else "plan"
        raise UsageError(f"--{asked} is done on this machine", "leave out --on")
    if replay:
        _replay(replay, file, typed_options(context, CODE[1:]), format, quiet=quiet)
        return
    choices = _parse_choices(profile)
    if correctness_only and (choices or compile):
        asked = "profile" if choices else "compile"
        raise UsageError(
            f"--correctness-only times nothing, and --{asked} needs times", "leave out one of them"
        )
    if resume is not None:
        typed_beside_resume(context, (*WITH_RESUME, *PLACES), "an evaluation")
        request = read_request(resume, again=again)
        line = f"profkit evaluate --resume {shlex.quote(str(resume))}{' --again' if again else ''}"
        needed = again or bool(choices) or not read_document(resume).complete
        named = [(CODE_FILE, str(file))] if file is not None else []
        require_code(request, [*named, *typed_options(context, CODE[1:])], line, needed=needed)
    else:
        if again:
            raise UsageError(
                "--again is for an evaluation that is there already",
                "profkit evaluate --resume FOLDER --again",
            )
        file, words = _split_program(file, program or [], trace=trace)
        if trace:
            suite, traces = "traced", _record(words, output, plan=plan, quiet=quiet)
        if backend == "llm":
            if plan or where is not None:
                raise UsageError(
                    "kernels are generated here, and without a plan", "profkit generate, then evaluate"
                )
            from profkit.core.types import GenerationLimits
            from profkit.generation.clients.registry import ClientOptions
            from profkit.generation.generate import generate_kernels
            from profkit.generation.request import DEFAULT_FOLDER, GenerationOptions

            writing = GenerationOptions(
                suite=suite,
                suite_path=traces,
                operations=ops,
                dtype=dtype,
                device=device,
                gpus=gpus,
                threads=threads,
                timeout=timeout,
                limits=GenerationLimits(max_attempts),
                output=kernels or DEFAULT_FOLDER,
            )
            to_ask = ClientOptions(provider, model, base_url, key_env, command)
            generated, kernels = generate_kernels(writing, to_ask, ("profkit", *sys.argv[1:]), progress)
            backend, ops = "directory", ",".join(each.operation for each in generated.operations)
        options = EvaluationOptions(
            suite=suite,
            suite_path=traces,
            operations=ops,
            dtype=dtype,
            device=device,
            correctness_only=correctness_only,
            compiled=compile,
            gpus=gpus,
            threads=threads,
            timeout=timeout,
            timing=PairOptions(budget, precision, floor),
            output=output,
            name=name,
            serial=serial_measure,
        )
        source = make_source_request(backend, kernels, file, device)
        request = make_request(
            options,
            source,
            mask_command(("profkit", *without_secrets(tuple(hide_prefixes(sys.argv[1:])))))[0],
            make_folder=not plan,
            elsewhere=where is not None,
        )
    if plan:
        _show_plan(request, format, quiet=quiet)
        return
    from profkit.kernels.evaluation.outputs import write_results
    from profkit.kernels.evaluation.run import run_evaluation

    slots = None
    if where is not None:
        from profkit.kernels.places import PlaceSlots

        slots = PlaceSlots(*where)
    document = run_evaluation(request, progress, write_results, slots)
    if choices:
        from profkit.profiling.drill_down import ProfiledElsewhere
        from profkit.profiling.profile_tests import profile_tests

        elsewhere = where and ProfiledElsewhere(*where)
        document = profile_tests(
            request, document, choices, profile_depth.value, progress, write_results, elsewhere
        )
    _show(document, request.folder, format, details=details)
    raise typer.Exit(exit_code(document))


def exit_code(document: EvaluationDocument) -> int:
    """1 where a kernel failed, 4 where a test was lost, 3 where one needs what this machine has not, else 0."""
    statuses = {result.status for result in document.results}
    if statuses - {"passed", "skipped", "not-run", "lost"}:
        return 1
    return 4 if "lost" in statuses else 3 if "not-run" in statuses else 0


def _parse_choices(text: str) -> tuple[tuple[str, int], ...]:
    """What --profile chooses. What profiles is loaded for it alone: no judge starts before."""
    if not text:
        return ()
    from profkit.profiling.profile_tests import parse_test_choice

    return parse_test_choice(text)


def _split_program(file: Path | None, rest: list[str], *, trace: bool) -> tuple[Path | None, list[str]]:
    """The file of kernels, and the program: what stands after `--`. Raises UsageError where it makes no sense."""
    from profkit.core.errors import UsageError

    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if trace and not words:
        raise UsageError("--trace needs a program", "profkit evaluate --trace -- python train.py")
    if not trace and rest:
        raise UsageError(f"{rest[0]!r} is one word too many", f"profkit evaluate --trace -- {' '.join(rest)}")
    return (None if len(words) > len(rest) else file) if trace else file, words


def _record(words: list[str], output: Path, *, plan: bool, quiet: bool) -> Path:
    """Run the program; the file with its calls, in the folder of evaluations."""
    from datetime import datetime

    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.kernels.evaluation.recording import record_operations
    from profkit.runtime.passes.secrets import mask_command

    if plan:
        raise UsageError("--plan runs no program", "--suite traced --traces TRACE.txt --plan")
    progress = progress_for(quiet=quiet)
    path = output / f"{datetime.now():%Y%m%d-%H%M%S}-operations.txt"
    progress.begin("program", " ".join(mask_command(words)[0]))
    try:
        calls = record_operations(words, path, tick=progress.tick)
    except BaseException:
        progress.end("failed")
        raise
    progress.end(f"{calls:,} calls of operations, in {path}")
    return path


def _show(document: EvaluationDocument, folder: Path, format: OutputFormat, *, details: bool) -> None:
    if format is OutputFormat.json:
        from profkit.kernels.evaluation.document import evaluation_text

        print_result(evaluation_text(document, folder))
    else:
        from profkit.reporting.views.evaluation import view

        print_view(view(document, folder), format, details=details)


def _show_plan(request: EvaluationRequest, format: OutputFormat, *, quiet: bool) -> None:
    from profkit.cli.progress import progress_for
    from profkit.kernels.evaluation.plan import plan_evaluation, plan_text

    plan = plan_evaluation(request, progress_for(quiet=quiet))
    if format is OutputFormat.json:
        import json

        print_result(json.dumps(plan, allow_nan=False, indent=1))
    else:
        print_result(plan_text(plan))


def _replay(
    test: str, folder: Path | None, named: list[tuple[str, str]], format: OutputFormat, *, quiet: bool
) -> None:
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.kernels.evaluation.run import replay_test

    if folder is None:
        raise UsageError(
            "--replay needs the folder of the evaluation", f"profkit evaluate --replay {test} FOLDER"
        )
    document = replay_test(folder, test, progress_for(quiet=quiet), named)
    _show(document, folder, format, details=True)
    raise typer.Exit(exit_code(document))

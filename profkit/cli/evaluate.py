"""`profkit evaluate`: are kernels right, and faster than PyTorch? And `generate`: a model writes them."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli import options
from profkit.cli.options import HOW, LIMITS, OUT, TESTS, option

if TYPE_CHECKING:
    from profkit.core.types import EvaluationDocument, GenerationDocument, GenerationLimits

EXAMPLES = {
    "evaluate": """
Example:  profkit evaluate my_kernels.py --ops relu,add

PyTorch against itself, to see how precise this machine is:  profkit evaluate --suite smoke --backend aten

A folder of kernels, tested with torch's own database of tests:
profkit evaluate --suite opinfo --backend directory --kernels generated_kernels --dtype bfloat16

Why are the slowest three slow? Profile each of them:  profkit evaluate my_kernels.py --profile 3

Test with the operations that your own program calls:  profkit evaluate my_kernels.py --trace -- python train.py

Your own tests, listed in SUITE of a file:  profkit evaluate my_kernels.py --suite my_tests.py

A model writes the kernels first (`profkit generate` has more options):
profkit evaluate --backend llm --ops relu,add --model MODEL --max-attempts 3

After a Ctrl-C:  profkit evaluate --resume reports/20261122-100000-evaluation-cpu

Exit codes: 0 every decided test passed; 1 a kernel is incorrect, crashed, hung or could not be loaded; 2 wrong usage;
3 this machine cannot do it, or has no GPU for tests that need one; 4 some tests could not be carried out; 130
interrupted, finished tests are kept.
""",
    "generate": """
Example:  profkit generate --suite smoke --ops relu,add,mul --max-attempts 5 --run-id first
--provider anthropic --model MODEL

A server of your own (vLLM, llama.cpp, a gateway):
profkit generate --ops relu --provider openai --base-url http://localhost:8000/v1 --model MODEL

A program instead of an API; it reads one file and writes the other:
profkit generate --ops relu --command "my-agent {prompt} {output}"

After a Ctrl-C, or with more attempts:  profkit generate --resume generated_kernels/first --max-attempts 8

API keys are read from ANTHROPIC_API_KEY or OPENAI_API_KEY, or from the variable that --key-env names.

Exit codes: 0 every operation has a correct kernel; 1 an operation has none; 2 wrong usage; 3 this machine cannot do
it, or the model cannot be reached; 130 interrupted, every finished attempt is kept.
""",
}


ON = "Resuming"
CODE = ("kernels", "suite")  # is named again where it runs again
WITH_RESUME = ("resume", "file", *CODE, "profile", "profile_depth", *options.SHOWN)


def evaluate(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Your kernels; with --replay the folder of an evaluation.",
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
        bool, option(TESTS, "Test with the operations that the program after -- calls.", None, "--trace")
    ] = False,
    backend: Annotated[
        str,
        option(
            TESTS,
            "The source of the kernels: aten (PyTorch itself), directory, flag_gems, or llm (a language model "
            "writes them first). Default: chosen by the paths given.",
        ),
    ] = "",
    kernels: Annotated[
        Path | None,
        option(
            TESTS,
            "The folder of kernels for --backend directory: relu/relu.py, "
            "add__Tensor/add__Tensor_implementation_v1.py; with llm the folder for new kernels.",
            "FOLDER",
            "--kernels",
            "--kernels-dir",
            "--ops-directory",
        ),
    ] = None,
    gpus: options.GpusOption = "",
    correctness_only: Annotated[
        bool, option(HOW, "Test only correctness, and measure no times.", None, "--correctness-only")
    ] = False,
    precision: Annotated[
        float, option(HOW, "Half-width of the 95 % interval of a speed-up: 0.02 is ±2 %.")
    ] = 0.02,
    floor: Annotated[float, option(HOW, "A speed-up that differs from 1 by less than this is SAME.")] = 0.05,
    budget: options.BudgetOption = 5.0,
    resume: Annotated[
        Path | None, option(ON, "Continue in this folder, with the settings stored in it.", "FOLDER")
    ] = None,
    replay: Annotated[
        str, option(ON, "Run one test of an evaluation again, and show all details.", "ID")
    ] = "",
    profile: Annotated[int, option(HOW, "Profile this many of the slowest tests.", "N", min=0)] = 0,
    profile_depth: Annotated[
        options.DepthOption, option(HOW, "The depth of these profiles.")
    ] = options.DepthOption.standard,
    tests: options.TestChoice = options.TESTED,
    chosen: options.ModelChoice = options.ANY_MODEL,
    output: options.OutputOption = Path("reports"),
    name: options.NameOption = "evaluation",
    details: options.DetailsOption = False,
    where: options.Elsewhere = options.HERE,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Test kernels against PyTorch: is each one correct, and is it faster?"""
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.execution.places.kinds import hide_prefixes
    from profkit.generation.keys import without_secrets
    from profkit.kernels.evaluation.request import (
        CODE_FILE,
        PairOptions,
        make_request,
        read_document,
        read_request,
        require_code,
    )
    from profkit.kernels.evaluation.sources.source import make_source_request
    from profkit.runtime.passes.secrets import mask_command

    if context.info_name == "run":
        typer.echo("profkit run is profkit evaluate here, and does the same", err=True)
    progress = progress_for(quiet=quiet)
    places = where.places(gpus)
    if places is not None and (replay or profile):
        flag = "replay" if replay else "profile"
        raise UsageError(f"--{flag} is done on this machine", "leave out --on")
    if replay:
        _replay(replay, file, options.typed_options(context, CODE), format, quiet=quiet)
        return
    if correctness_only and profile:
        raise UsageError("--correctness-only times nothing, and --profile needs times", "leave out one")
    if resume is not None:
        options.typed_beside_resume(context, (*WITH_RESUME, *options.PLACES), "an evaluation")
        request = read_request(resume)
        line = f"profkit evaluate --resume {shlex.quote(str(resume))}"
        needed = bool(profile) or not read_document(resume).complete
        named = [(CODE_FILE, str(file))] if file is not None else []
        require_code(request, [*named, *options.typed_options(context, CODE)], line, needed=needed)
    else:
        file, words = _split_program(file, program or [], trace=trace)
        if trace:
            tests = replace(tests, suite="traced", traces=_record(words, output, quiet=quiet))
        if backend == "llm":
            if places is not None:
                raise UsageError("kernels are generated here", "profkit generate, then evaluate")
            from profkit.core.types import GenerationLimits
            from profkit.generation.request import COMPARING_SECONDS, DEFAULT_FOLDER, GenerationOptions
            from profkit.generation.run import generate_kernels

            generated, kernels = generate_kernels(
                options.judge_settings(
                    tests, PairOptions(COMPARING_SECONDS), correctness_only=correctness_only
                ),
                GenerationOptions(
                    limits=GenerationLimits(tests.max_attempts), output=kernels or DEFAULT_FOLDER
                ),
                chosen.model_options(),
                ("profkit", *sys.argv[1:]),
                progress,
            )
            backend = "directory"
            tests = replace(tests, ops=",".join(each.operation for each in generated.operations))
        source = make_source_request(backend, kernels, file, tests.device)
        timing = PairOptions(budget, precision, floor)
        settings = options.judge_settings(tests, timing, source, correctness_only=correctness_only)
        request = make_request(
            settings,
            output,
            gpus=gpus,
            name=name,
            command=mask_command(
                ("profkit", *without_secrets(tuple(hide_prefixes(sys.argv[1:], where.on or ()))))
            )[0],
            elsewhere=places is not None,
        )
    from profkit.kernels.evaluation.outputs import write_results
    from profkit.kernels.evaluation.run import run_evaluation

    document = run_evaluation(request, progress, write_results, options.slots_of(places))
    if profile:
        from profkit.profiling.drill_down import profile_tests

        document = profile_tests(request, document, profile, profile_depth.value, progress, write_results)
    _show(document, request.folder, format, details=details)
    raise typer.Exit(exit_code(document))


def exit_code(document: EvaluationDocument) -> int:
    """Return 1 if a kernel failed, 4 if a test was lost, 3 if one needs what this machine lacks, else 0."""
    statuses = {result.status for result in document.results}
    if statuses - {"passed", "skipped", "not-run", "lost"}:
        return 1
    return 4 if "lost" in statuses else 3 if "not-run" in statuses else 0


def _split_program(file: Path | None, rest: list[str], *, trace: bool) -> tuple[Path | None, list[str]]:
    """Return the file of kernels, and the program: what stands after `--`. Raises UsageError where it makes no
    sense.
    """
    from profkit.core.errors import UsageError

    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if trace and not words:
        raise UsageError("--trace needs a program", "profkit evaluate --trace -- python train.py")
    if not trace and rest:
        raise UsageError(
            f"{rest[0]!r} is one word too many", f"profkit evaluate --trace -- {shlex.join(rest)}"
        )
    return (None if len(words) > len(rest) else file) if trace else file, words


def _record(words: list[str], output: Path, *, quiet: bool) -> Path:
    """Run the program; the file with its calls, in the folder of evaluations."""
    from datetime import datetime

    from profkit.cli.progress import progress_for
    from profkit.kernels.evaluation.suites.notation import record_operations
    from profkit.runtime.passes.shown_command import shown_line

    progress = progress_for(quiet=quiet)
    path = output / f"{datetime.now():%Y%m%d-%H%M%S}-operations.txt"
    progress.begin("program", shown_line(words))
    try:
        calls = record_operations(words, path, tick=progress.tick)
    except BaseException:
        progress.fail("failed")
        raise
    progress.end(f"{calls:,} calls of operations, in {path}")
    return path


def _show(document: EvaluationDocument, folder: Path, format: options.OutputFormat, *, details: bool) -> None:
    from profkit.core.codec import json_text
    from profkit.kernels.evaluation.document import evaluation_json
    from profkit.reporting.json import for_others
    from profkit.reporting.views.kernels.evaluation import view

    options.print_as(
        format,
        lambda: json_text(for_others(evaluation_json(document, folder))),
        lambda: view(document, folder),
        details=details,
    )


def _replay(
    test: str, folder: Path | None, named: list[tuple[str, str]], format: options.OutputFormat, *, quiet: bool
) -> None:
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.kernels.evaluation.run import replay_test

    if folder is None:
        raise UsageError(
            "--replay needs the folder of the evaluation",
            f"profkit evaluate --replay {shlex.quote(test)} FOLDER",
        )
    document = replay_test(folder, test, progress_for(quiet=quiet), named)
    _show(document, folder, format, details=True)
    raise typer.Exit(exit_code(document))


MORE = ("max_attempts", "max_tokens", "base_url", "key_env", "command")
GENERATION_WITH_RESUME = ("resume", "suite", *MORE, *options.SHOWN)


def generate(
    context: typer.Context,
    language: Annotated[
        str,
        option(
            TESTS,
            "The language of the kernels: triton, cuda, cpp, pytorch, helion, any. Default: triton on a GPU, else cpp.",
            None,
            "--language",
            "--dsl",
        ),
    ] = "",
    tests: options.TestChoice = options.TESTED,
    chosen: options.ModelChoice = options.ANY_MODEL,
    max_tokens: Annotated[
        int | None, option(LIMITS, "Stop after this many tokens in all, input and output.")
    ] = None,
    answer_tokens: Annotated[int, option(LIMITS, "Tokens that one answer may have.")] = 16384,
    budget: options.BudgetOption = 2.0,
    profile_depth: Annotated[
        str,
        option(
            HOW,
            "The depth of the profile of a correct attempt: none, gate, standard, full. Default: standard on a "
            "GPU, else gate.",
        ),
    ] = "",
    at_once: Annotated[int, option(HOW, "How many operations to work on at the same time.")] = 4,
    resume: Annotated[
        Path | None,
        option(OUT, "Continue in this folder, with its settings; limits may be changed.", "FOLDER"),
    ] = None,
    run_id: Annotated[str, option(OUT, "The name of the folder. Default: run_ and the time.", "NAME")] = "",
    output: options.OutputOption = Path("generated_kernels"),
    details: options.DetailsOption = False,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Let a language model write kernels; each is tested, timed and profiled, and it gets the result."""
    from profkit.cli.progress import progress_for
    from profkit.core.types import GenerationLimits
    from profkit.generation.request import GenerationOptions
    from profkit.generation.run import generate_kernels, resume_generation
    from profkit.kernels.evaluation.request import PairOptions

    limits = GenerationLimits(tests.max_attempts, max_tokens)
    progress = progress_for(quiet=quiet)
    if resume is not None:
        settled = options.typed_beside_resume(context, GENERATION_WITH_RESUME, "a generation")
        folder = resume
        document = resume_generation(
            resume,
            _changed(limits, settled),
            chosen.model_options(),
            progress,
            options.typed_options(context, ("suite",)),
        )
    else:
        settings = options.judge_settings(tests, PairOptions(budget))
        generation = GenerationOptions(
            language=language,
            profile_depth=profile_depth,
            at_once=at_once,
            limits=limits,
            output=output,
            run_id=run_id,
        )
        model = replace(chosen.model_options(), answer_tokens=answer_tokens)
        document, folder = generate_kernels(settings, generation, model, ("profkit", *sys.argv[1:]), progress)
    _show_generation(document, folder, format, details=details)
    raise typer.Exit(0 if all(each.best is not None for each in document.operations) else 1)


def _changed(limits: GenerationLimits, typed: frozenset[str]) -> dict[str, object]:
    """Return the limits that were typed, by the name of their field."""
    named = {"max_attempts": "attempts", "max_tokens": "tokens"}
    return {field: getattr(limits, field) for option, field in named.items() if option in typed}


def _show_generation(
    document: GenerationDocument, folder: Path, format: options.OutputFormat, *, details: bool
) -> None:
    from profkit.core.codec import json_text
    from profkit.kernels.generation_document import generation_json
    from profkit.reporting.json import for_others
    from profkit.reporting.views.kernels.generation import view

    options.print_as(
        format,
        lambda: json_text(for_others(generation_json(document, folder))),
        lambda: view(document, folder),
        details=details,
    )

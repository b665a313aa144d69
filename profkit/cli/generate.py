"""`profkit generate`: a language model writes kernels, and their evaluation tells it what to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.model_options import (
    LIMITS,
    MODELS,
    BaseUrlOption,
    CommandOption,
    KeyEnvOption,
    MaxAttemptsOption,
    MaxCostOption,
    MaxTokensOption,
    ModelOption,
    PricesOption,
    ProviderOption,
    parse_prices,
)
from profkit.cli.options import (
    FormatOption,
    OutputFormat,
    print_result,
    print_view,
    typed_beside_resume,
    typed_options,
)

if TYPE_CHECKING:
    from profkit.core.types import GenerationDocument, GenerationLimits

EXAMPLES = """
Example:  profkit generate --suite smoke --ops relu,add,mul --max-attempts 5 --run-id first
--provider anthropic --model MODEL

A server of your own (vLLM, llama.cpp, a gateway):
profkit generate --ops relu --provider openai --base-url http://localhost:8000/v1 --model MODEL

An agent that is no API; it reads one file and writes the other:
profkit generate --ops relu --command "my-agent {prompt} {output}"

Not more than two dollars, at 3 for a million tokens that go in and 15 for a million that come out:
profkit generate --ops relu --model MODEL --max-cost 2 --prices 3,15

After a Ctrl-C, or with more attempts:  profkit generate --resume generated_kernels/first --max-attempts 8

What has come of it, measured anew with other arguments:
profkit evaluate --backend directory --kernels generated_kernels/first

Keys are read from ANTHROPIC_API_KEY or OPENAI_API_KEY, or the variable that --key-env names.

Exit codes: 0 every operation has a correct kernel; 1 one has none; 2 wrong usage; 3 this machine cannot do it, or the
model cannot be asked; 130 interrupted, every finished attempt is kept.
"""
WHAT, HOW, OUT = "What is written", "Measurement", "Output"
WITH_RESUME = (
    "resume",
    "max_attempts",
    "max_tokens",
    "max_cost",
    "prices",
    "base_url",
    "key_env",
    "command",
    "suite",
    "traces",
    "details",
    "format",
    "quiet",
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("generate", epilog=EXAMPLES)(generate)


def generate(
    context: typer.Context,
    suite: Annotated[
        str,
        typer.Option(
            help="Which calls test the kernels: smoke, opinfo, torchbench, traced.", rich_help_panel=WHAT
        ),
    ] = "smoke",
    traces: Annotated[
        Path | None,
        typer.Option(
            help="The suite's own file: operator traces, or a Python file with tests.",
            metavar="PATH",
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
    language: Annotated[
        str,
        typer.Option(
            "--language",
            "--dsl",
            help="triton, cuda, cpp, pytorch, helion, any. Default: triton on a GPU, else cpp.",
            rich_help_panel=WHAT,
        ),
    ] = "",
    provider: ProviderOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    key_env: KeyEnvOption = None,
    command: CommandOption = None,
    temperature: Annotated[
        float | None, typer.Option(help="Default: the model's own.", rich_help_panel=MODELS)
    ] = None,
    max_attempts: MaxAttemptsOption = 5,
    until: Annotated[
        str,
        typer.Option(
            help="When an operation is done before that: correct; faster (than PyTorch); bound (of the hardware).",
            rich_help_panel=LIMITS,
        ),
    ] = "bound",
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    prices: PricesOption = "",
    answer_tokens: Annotated[
        int, typer.Option(help="Tokens of one answer at most.", rich_help_panel=LIMITS)
    ] = 16384,
    device: Annotated[
        str, typer.Option(help="auto (cuda where there is one), cuda, cpu.", rich_help_panel=HOW)
    ] = "auto",
    gpus: Annotated[
        str,
        typer.Option(
            help="Numbers of the GPUs that share it: each measures one kernel at a time.",
            metavar="N,N",
            rich_help_panel=HOW,
        ),
    ] = "",
    threads: Annotated[
        int, typer.Option(help="torch's threads; 0: as many as it takes.", rich_help_panel=HOW)
    ] = 0,
    budget: Annotated[
        float,
        typer.Option(help="Seconds of timing per test at most.", metavar="SECONDS", rich_help_panel=HOW),
    ] = 2.0,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds that a call may take, compiling included.", metavar="SECONDS", rich_help_panel=HOW
        ),
    ] = 60.0,
    profile_depth: Annotated[
        str,
        typer.Option(
            help="What the profile of a correct attempt may spend: none, gate, standard, full. Default: standard on a "
            "GPU, else gate.",
            rich_help_panel=HOW,
        ),
    ] = "",
    at_once: Annotated[
        int,
        typer.Option(help="Operations that the model is asked about at the same time.", rich_help_panel=HOW),
    ] = 4,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the generation in this folder, by its own settings; limits may be others.",
            metavar="FOLDER",
            rich_help_panel=OUT,
        ),
    ] = None,
    run_id: Annotated[
        str,
        typer.Option(
            help="The name of its folder. Default: run_ and the time.", metavar="NAME", rich_help_panel=OUT
        ),
    ] = "",
    output: Annotated[
        Path, typer.Option(help="Folder in which its own is made.", metavar="FOLDER", rich_help_panel=OUT)
    ] = Path("generated_kernels"),
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="In the terminal: every table with all its rows.", rich_help_panel=OUT
        ),
    ] = False,
    format: FormatOption = OutputFormat.terminal,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress on standard error.", rich_help_panel=OUT)
    ] = False,
) -> None:
    """Let a language model write kernels: each is tested, timed and profiled, and the model gets the result."""
    from profkit.cli.progress import progress_for
    from profkit.core.types import GenerationLimits
    from profkit.generation.clients.registry import ClientOptions
    from profkit.generation.generate import NamedAgain, generate_kernels, resume_generation
    from profkit.generation.request import GenerationOptions
    from profkit.kernels.evaluation.request import PairOptions

    limits = GenerationLimits(max_attempts, max_tokens, max_cost, parse_prices(prices))
    progress = progress_for(quiet=quiet)
    if resume is not None:
        chosen = typed_beside_resume(context, WITH_RESUME, "a generation")
        folder = resume
        named = NamedAgain(base_url, key_env, command, tuple(typed_options(context, ("suite", "traces"))))
        document = resume_generation(resume, _changed(limits, chosen), named, progress)
    else:
        options = GenerationOptions(
            suite=suite,
            suite_path=traces,
            operations=ops,
            dtype=dtype,
            device=device,
            gpus=gpus,
            threads=threads,
            timeout=timeout,
            timing=PairOptions(budget),
            language=language,
            until=until,
            profile_depth=profile_depth,
            at_once=at_once,
            limits=limits,
            output=output,
            run_id=run_id,
        )
        asked = ClientOptions(
            provider=provider,
            model=model,
            base_url=base_url,
            key_env=key_env,
            command=command,
            answer_tokens=answer_tokens,
            temperature=temperature,
        )
        document, folder = generate_kernels(options, asked, ("profkit", *sys.argv[1:]), progress)
    _show(document, folder, format, details=details)
    raise typer.Exit(0 if all(each.best is not None for each in document.operations) else 1)


def _changed(limits: GenerationLimits, typed: frozenset[str]) -> dict[str, object]:
    """The limits that were typed, by the name of their field."""
    named = {"max_attempts": "attempts", "max_tokens": "tokens", "max_cost": "cost", "prices": "prices"}
    return {field: getattr(limits, field) for option, field in named.items() if option in typed}


def _show(document: GenerationDocument, folder: Path, format: OutputFormat, *, details: bool) -> None:
    if format is OutputFormat.json:
        from profkit.kernels.generation_document import generation_text

        print_result(generation_text(document, folder))
    else:
        from profkit.reporting.views.generation import view

        print_view(view(document, folder), format, details=details)

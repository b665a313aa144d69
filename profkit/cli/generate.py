"""`profkit generate`: a language model writes kernels, and their evaluation tells it what to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.options import (
    HOW,
    LIMITS,
    OUT,
    SUITES,
    BaseUrlOption,
    BudgetOption,
    CommandOption,
    DetailsOption,
    DeviceOption,
    DtypeOption,
    FormatOption,
    KeyEnvOption,
    MaxAttemptsOption,
    ModelOption,
    OpsOption,
    OutputFormat,
    OutputOption,
    ProviderOption,
    QuietOption,
    ThreadsOption,
    TimeoutOption,
    TracesOption,
    option,
    print_result,
    print_view,
    taken,
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

Not more than so many tokens in all:  profkit generate --ops relu --model MODEL --max-tokens 200000

After a Ctrl-C, or with more attempts:  profkit generate --resume generated_kernels/first --max-attempts 8

What has come of it, measured anew with other arguments:
profkit evaluate --backend directory --kernels generated_kernels/first

Keys are read from ANTHROPIC_API_KEY or OPENAI_API_KEY, or the variable that --key-env names.

Exit codes: 0 every operation has a correct kernel; 1 one has none; 2 wrong usage; 3 this machine cannot do it, or the
model cannot be asked; 130 interrupted, every finished attempt is kept.
"""
WHAT = "Tests and kernels"
WITH_RESUME = (
    "resume",
    "max_attempts",
    "max_tokens",
    "base_url",
    "key_env",
    "command",
    "suite",
    "traces",
    "details",
    "format",
    "quiet",
)


def generate(
    context: typer.Context,
    suite: Annotated[str, option(WHAT, f"Which calls test the kernels: {SUITES}.")] = "smoke",
    traces: TracesOption = None,
    ops: OpsOption = "",
    dtype: DtypeOption = "",
    language: Annotated[
        str,
        option(
            WHAT,
            "triton, cuda, cpp, pytorch, helion, any. Default: triton on a GPU, else cpp.",
            None,
            "--language",
            "--dsl",
        ),
    ] = "",
    provider: ProviderOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    key_env: KeyEnvOption = None,
    command: CommandOption = None,
    max_attempts: MaxAttemptsOption = 5,
    until: Annotated[
        str,
        option(
            LIMITS,
            "When an operation is done before that: correct; faster (than PyTorch); bound (of the hardware).",
        ),
    ] = "bound",
    max_tokens: Annotated[
        int | None, option(LIMITS, "Tokens of the whole generation at most, in and out.")
    ] = None,
    answer_tokens: Annotated[int, option(LIMITS, "Tokens of one answer at most.")] = 16384,
    device: DeviceOption = "auto",
    threads: ThreadsOption = 0,
    budget: BudgetOption = 2.0,
    timeout: TimeoutOption = 60.0,
    profile_depth: Annotated[
        str,
        option(
            HOW,
            "What the profile of a correct attempt may spend: none, gate, standard, full. Default: standard on a "
            "GPU, else gate.",
        ),
    ] = "",
    at_once: Annotated[int, option(HOW, "Operations that the model is asked about at the same time.")] = 4,
    resume: Annotated[
        Path | None,
        option(
            OUT,
            "Go on with the generation in this folder, by its own settings; limits may be others.",
            "FOLDER",
        ),
    ] = None,
    run_id: Annotated[str, option(OUT, "The name of its folder. Default: run_ and the time.", "NAME")] = "",
    output: OutputOption = Path("generated_kernels"),
    details: DetailsOption = False,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
) -> None:
    """Let a language model write kernels: each is tested, timed and profiled, and the model gets the result."""
    typed = dict(locals())
    from profkit.cli.progress import progress_for
    from profkit.core.types import GenerationLimits
    from profkit.generation.model import ModelOptions
    from profkit.generation.request import GenerationOptions
    from profkit.generation.run import NamedAgain, generate_kernels, resume_generation
    from profkit.kernels.evaluation.request import PairOptions

    limits = GenerationLimits(max_attempts, max_tokens)
    progress = progress_for(quiet=quiet)
    if resume is not None:
        chosen = typed_beside_resume(context, WITH_RESUME, "a generation")
        folder = resume
        named = NamedAgain(base_url, key_env, command, tuple(typed_options(context, ("suite", "traces"))))
        document = resume_generation(resume, _changed(limits, chosen), named, progress)
    else:
        options = taken(GenerationOptions, typed, timing=PairOptions(budget), limits=limits)
        asked = ModelOptions(provider, model, base_url, key_env, command, answer_tokens)
        document, folder = generate_kernels(options, asked, ("profkit", *sys.argv[1:]), progress)
    _show(document, folder, format, details=details)
    raise typer.Exit(0 if all(each.best is not None for each in document.operations) else 1)


def _changed(limits: GenerationLimits, typed: frozenset[str]) -> dict[str, object]:
    """The limits that were typed, by the name of their field."""
    named = {"max_attempts": "attempts", "max_tokens": "tokens"}
    return {field: getattr(limits, field) for option, field in named.items() if option in typed}


def _show(document: GenerationDocument, folder: Path, format: OutputFormat, *, details: bool) -> None:
    if format is OutputFormat.json:
        from profkit.kernels.generation_document import generation_text

        print_result(generation_text(document, folder))
    else:
        from profkit.reporting.views.kernels.generation import view

        print_view(view(document, folder), format, details=details)

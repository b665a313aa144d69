"""`profkit generate`: a language model writes kernels, and their evaluation tells it what to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli import options
from profkit.cli.options import HOW, LIMITS, OUT, TESTS, option

if TYPE_CHECKING:
    from profkit.core.types import GenerationDocument, GenerationLimits

EXAMPLES = """
Example:  profkit generate --suite smoke --ops relu,add,mul --max-attempts 5 --run-id first
--provider anthropic --model MODEL

A server of your own (vLLM, llama.cpp, a gateway):
profkit generate --ops relu --provider openai --base-url http://localhost:8000/v1 --model MODEL

An agent that is no API; it reads one file and writes the other:
profkit generate --ops relu --command "my-agent {prompt} {output}"

After a Ctrl-C, or with more attempts:  profkit generate --resume generated_kernels/first --max-attempts 8

Keys are read from ANTHROPIC_API_KEY or OPENAI_API_KEY, or the variable that --key-env names.

Exit codes: 0 every operation has a correct kernel; 1 one has none; 2 wrong usage; 3 this machine cannot do it, or the
model cannot be asked; 130 interrupted, every finished attempt is kept.
"""
MORE = ("max_attempts", "max_tokens", "base_url", "key_env", "command")
WITH_RESUME = ("resume", *MORE, *options.SHOWN)


def generate(
    context: typer.Context,
    language: Annotated[
        str,
        option(
            TESTS,
            "triton, cuda, cpp, pytorch, helion, any. Default: triton on a GPU, else cpp.",
            None,
            "--language",
            "--dsl",
        ),
    ] = "",
    tests: options.TestChoice = options.TESTED,
    chosen: options.ModelChoice = options.ANY_MODEL,
    max_tokens: Annotated[int | None, option(LIMITS, "Tokens of all of it at most, in and out.")] = None,
    answer_tokens: Annotated[int, option(LIMITS, "Tokens of one answer at most.")] = 16384,
    budget: options.BudgetOption = 2.0,
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
        Path | None, option(OUT, "Go on in this folder, by its own settings; limits may be others.", "FOLDER")
    ] = None,
    run_id: Annotated[str, option(OUT, "The name of its folder. Default: run_ and the time.", "NAME")] = "",
    output: options.OutputOption = Path("generated_kernels"),
    details: options.DetailsOption = False,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Let a language model write kernels: each is tested, timed and profiled, and it gets the result."""
    typed = {**locals(), **vars(tests)}
    from profkit.cli.progress import progress_for
    from profkit.core.types import GenerationLimits
    from profkit.generation.model import ModelOptions
    from profkit.generation.request import GenerationOptions
    from profkit.generation.run import generate_kernels, resume_generation
    from profkit.kernels.evaluation.request import PairOptions

    limits = GenerationLimits(tests.max_attempts, max_tokens)
    progress = progress_for(quiet=quiet)
    if resume is not None:
        settled = options.typed_beside_resume(context, WITH_RESUME, "a generation")
        folder = resume
        document = resume_generation(
            resume, _changed(limits, settled), ModelOptions(**vars(chosen)), progress
        )
    else:
        settings = options.judge_settings(typed, timing=PairOptions(budget))
        asked = options.taken(GenerationOptions, typed, limits=limits)
        model = ModelOptions(**vars(chosen), answer_tokens=answer_tokens)
        document, folder = generate_kernels(settings, asked, model, ("profkit", *sys.argv[1:]), progress)
    _show(document, folder, format, details=details)
    raise typer.Exit(0 if all(each.best is not None for each in document.operations) else 1)


def _changed(limits: GenerationLimits, typed: frozenset[str]) -> dict[str, object]:
    """The limits that were typed, by the name of their field."""
    named = {"max_attempts": "attempts", "max_tokens": "tokens"}
    return {field: getattr(limits, field) for option, field in named.items() if option in typed}


def _show(document: GenerationDocument, folder: Path, format: options.OutputFormat, *, details: bool) -> None:
    from profkit.kernels.generation_document import generation_text
    from profkit.reporting.views.kernels.generation import view

    options.print_as(
        format, lambda: generation_text(document, folder), lambda: view(document, folder), details=details
    )

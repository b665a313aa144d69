"""Options that say which language model is asked."""

from __future__ import annotations

from typing import Annotated

import typer

LIMITS = "Limits"
MODELS = "The model"
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        help="Whose interface is spoken: anthropic, or openai and whatever speaks like it. Default: by the key that is "
        "there; with --base-url openai.",
        metavar="[anthropic|openai]",
        rich_help_panel=MODELS,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", help="The model, as its provider names it.", metavar="NAME", rich_help_panel=MODELS
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="The server, where it is not the provider's own (vLLM, llama.cpp, a gateway): http://localhost:8000/v1.",
        metavar="URL",
        rich_help_panel=MODELS,
    ),
]
KeyEnvOption = Annotated[
    str | None,
    typer.Option(
        "--key-env",
        help="The environment variable with the key. Default: ANTHROPIC_API_KEY, OPENAI_API_KEY.",
        metavar="NAME",
        rich_help_panel=MODELS,
    ),
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--command",
        help="A program in place of a model: {prompt} is a file that it reads, {output} one that it writes.",
        metavar="WORDS",
        rich_help_panel=MODELS,
    ),
]
MaxAttemptsOption = Annotated[
    int,
    typer.Option(
        "--max-attempts",
        "--llm-attempts",
        "--llm-max-attempts",
        help="Attempts of the model at each operation at most.",
        rich_help_panel=LIMITS,
    ),
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(help="Tokens of the whole generation at most, in and out.", rich_help_panel=LIMITS),
]
MaxCostOption = Annotated[
    float | None, typer.Option(help="What it may cost, by --prices.", rich_help_panel=LIMITS)
]
PricesOption = Annotated[
    str,
    typer.Option(
        help="Prices of a million tokens that go in, and that come out.",
        metavar="IN,OUT",
        rich_help_panel=LIMITS,
    ),
]


def parse_prices(text: str) -> tuple[float, float] | None:
    """`3,15` as two prices of a million tokens; None for nothing. Raises UsageError for what is none."""
    from profkit.core.errors import UsageError

    if not text:
        return None
    try:
        first, second = (float(word) for word in text.split(","))
    except ValueError:
        first = second = -1.0
    if not (0 <= first < float("inf") and 0 <= second < float("inf")):
        raise UsageError(
            f"--prices {text} are not two prices", "--prices 3,15: of a million tokens in, and out"
        )
    return first, second

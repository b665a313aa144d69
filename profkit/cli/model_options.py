"""Options that say which language model is asked."""

from __future__ import annotations

from typing import Annotated

import typer

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

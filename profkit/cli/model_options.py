"""Options that say which language model is asked."""

from __future__ import annotations

from typing import Annotated

import typer

MODELS = "Language model"
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        help="Whose interface is spoken, or `command` (default: by the key that is there; with --base-url openai).",
        metavar="[anthropic|openai|command]",
        rich_help_panel=MODELS,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", help="The model, by its name at the service.", metavar="NAME", rich_help_panel=MODELS
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="Another server that speaks the interface: vLLM, llama.cpp, a gateway.",
        metavar="URL",
        rich_help_panel=MODELS,
    ),
]
KeyEnvOption = Annotated[
    str | None,
    typer.Option(
        "--key-env",
        help="The variable that holds the key (default: ANTHROPIC_API_KEY, OPENAI_API_KEY).",
        metavar="NAME",
        rich_help_panel=MODELS,
    ),
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--command",
        help="A program instead of a model, such as 'my-agent {prompt} {output}': paths of the prompt's file and of "
        "the one that it writes.",
        metavar="WORDS",
        rich_help_panel=MODELS,
    ),
]

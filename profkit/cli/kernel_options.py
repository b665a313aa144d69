"""Options of the verbs that run many kernels, each said once: sweep, evaluate, generate; and those of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from profkit.cli.profile import DepthOption

T = TypeVar("T")
HOW, OUT, LIMITS, MODELS = "Measurement", "Output", "Limits", "The model"


def option(panel: str, help: str, metavar: str | None = None, *names: str) -> Any:
    """What typer takes as an option's declaration; `names` where it has others than its parameter."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


def taken(kind: type[T], typed: Mapping[str, Any], **more: Any) -> T:
    """The frozen options of a verb: fields that are called as what was typed, and `more`."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in typed.items() if name in known}, **more)


SUITES = "smoke, opinfo, torchbench, traced"
TracesOption = Annotated[
    Path | None,
    option(
        "Tests and kernels", "The suite's own file: operator traces, or a Python file with tests.", "PATH"
    ),
]
OpsOption = Annotated[
    str, option("Tests and kernels", "Operations: relu, add.Tensor, or patterns: add*.", "A,B")
]
DtypeOption = Annotated[
    str, option("Tests and kernels", "float32, float16, bfloat16, float64. Default: the suite's.")
]
DeviceOption = Annotated[str, option(HOW, "auto (cuda where there is one), cuda, cpu.")]
ThreadsOption = Annotated[int, option(HOW, "torch's threads; 0: as many as it takes.")]
BudgetOption = Annotated[float, option(HOW, "Seconds of timing per test at most.", "SECONDS")]
TimeoutOption = Annotated[
    float, option(HOW, "Seconds that a call or a case may take, compiling included.", "SECONDS")
]
GpusOption = Annotated[str, option(HOW, "Numbers of the GPUs that share it, a process each: 0,1,2,3.", "N,N")]
ProfileDepthOption = Annotated[DepthOption, option(HOW, "What each of those may spend.")]
QuietOption = Annotated[bool, option(OUT, "No progress on standard error.", None, "--quiet", "-q")]
DetailsOption = Annotated[
    bool, option(OUT, "In the terminal: every table with all its rows.", None, "--details")
]
OutputOption = Annotated[Path, option(OUT, "Folder in which its own folder is made.", "FOLDER")]
NameOption = Annotated[str, option(OUT, "Its name in its folder, in history and in compare.", "NAME")]

ProviderOption = Annotated[
    str | None,
    option(
        MODELS,
        "Whose interface is spoken: anthropic, or openai and whatever speaks like it. Default: by the key that is "
        "there; with --base-url openai.",
        "[anthropic|openai]",
        "--provider",
    ),
]
ModelOption = Annotated[str | None, option(MODELS, "The model, as its provider names it.", "NAME", "--model")]
BaseUrlOption = Annotated[
    str | None,
    option(
        MODELS,
        "The server, where it is not the provider's own (vLLM, llama.cpp, a gateway): http://localhost:8000/v1.",
        "URL",
        "--base-url",
    ),
]
KeyEnvOption = Annotated[
    str | None,
    option(
        MODELS,
        "The environment variable with the key; of --command several (A,B). Default: ANTHROPIC_API_KEY, "
        "OPENAI_API_KEY.",
        "NAME",
        "--key-env",
    ),
]
CommandOption = Annotated[
    str | None,
    option(
        MODELS,
        "A program in place of a model: {prompt} is a file that it reads, {output} one that it writes.",
        "WORDS",
        "--command",
    ),
]
MaxAttemptsOption = Annotated[
    int,
    option(
        LIMITS,
        "Attempts of the model at each operation at most.",
        None,
        "--max-attempts",
        "--llm-attempts",
        "--llm-max-attempts",
    ),
]

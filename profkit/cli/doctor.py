"""`profkit doctor`: what this machine can measure, what is in the way, the line that fixes it."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.cli.options import (
    MODELS,
    BackendOption,
    BaseUrlOption,
    CommandOption,
    FormatOption,
    KeyEnvOption,
    ModelOption,
    OnOption,
    OnPythonOption,
    OutputFormat,
    ProviderOption,
    QuietOption,
    places_of,
    print_result,
    print_view,
)

EXAMPLES = """
Example:  profkit doctor --backend cpu

Another machine:  profkit doctor --on ssh:gpu1

A language model:  profkit doctor --llm --model NAME

Exit codes: 0 the backend can be profiled, or the model answers; 3 it cannot be profiled at all here, or does not
answer.
"""


def doctor(
    backend: BackendOption = "auto",
    on: OnOption = None,
    on_python: OnPythonOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
    llm: Annotated[
        bool,
        typer.Option(
            "--llm", help="Ask a language model one short question, and nothing else.", rich_help_panel=MODELS
        ),
    ] = False,
    provider: ProviderOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    key_env: KeyEnvOption = None,
    command: CommandOption = None,
) -> None:
    """Try every tool with a tiny measurement and say what it can do here."""
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.profiling.doctor import blocking_reason, diagnose
    from profkit.reporting import json
    from profkit.reporting.views.plan import checks_view as view

    elsewhere = places_of(on, on_python)
    asked = {
        "provider": provider,
        "model": model,
        "base_url": base_url,
        "key_env": key_env,
        "command": command,
    }
    if llm:
        if elsewhere is not None:
            raise UsageError("a language model is asked from this machine: leave --on out")
        from profkit.generation.choose_model import try_model
        from profkit.generation.model import ModelOptions

        checks = try_model(ModelOptions(provider, model, base_url, key_env, command))
    elif given := [name for name, value in asked.items() if value is not None]:
        raise UsageError(f"--{given[0].replace('_', '-')} is of a language model", "profkit doctor --llm ...")
    elif elsewhere is None:
        checks = diagnose(backend, progress_for(quiet=quiet))
    else:
        from profkit.profiling.elsewhere import diagnose_elsewhere

        checks = diagnose_elsewhere(backend, *elsewhere, progress_for(quiet=quiet))
    if format is OutputFormat.json:
        print_result(json.checks(checks))
    else:
        print_view(view(checks), format)
    if llm and any(check.state == "refused" for check in checks):
        raise typer.Exit(3)
    if not llm and backend != "auto" and blocking_reason(backend, checks) is not None:
        raise typer.Exit(3)

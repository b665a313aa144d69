"""Whether a user's model can be asked: one short question, before a night is spent on it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import replace

from profkit.core.errors import MachineError
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Check
from profkit.generation.clients.client import Answer, Message
from profkit.generation.clients.registry import ClientOptions, MadeClient, make_client

QUESTION = "Answer with one word: ready"
ANSWER_TOKENS = 16
_SECONDS = 60.0  # whoever asks sits before it


def try_model(options: ClientOptions, report: Callable[[str], None] = lambda _: None) -> tuple[Check, ...]:
    """Ask the model one short question; the check says what came of it, and the line that fixes what did not.

    Raises UsageError for options that do not go together, or name no model.
    """
    short = replace(
        options,
        answer_tokens=ANSWER_TOKENS,
        timeout=_SECONDS,
        command_timeout=_SECONDS,
        retries=2,
    )
    try:
        made = make_client(short)
        answer = made.client.ask([Message("user", QUESTION)], report)
    except MachineError as error:
        return (Check("model", "refused", error.message, error.fix),)
    return (_check(made, answer),)


def _check(made: MadeClient, answer: Answer) -> Check:
    client = made.client
    place = f" at {made.server}" if made.server else ""
    parts = [f"{client.model} answers in {format_quantity(answer.seconds, 's')}"]
    if answer.input_tokens is not None and answer.output_tokens is not None:
        tokens = f"{plural(answer.input_tokens, 'token')} in, {answer.output_tokens} out"
        parts.append(f"{tokens} (estimated: the service counts none)" if answer.estimated else tokens)
    if answer.retries:
        parts.append(f"after {plural(answer.retries, 'further try', 'further tries')}")
    version = None
    if client.provider != "command":
        version = f"{client.provider} {importlib.metadata.version(client.provider)}"
    if answer.stop == "refused":
        return Check(
            "model", "limited", f"{client.provider}{place}: {client.model} refuses to answer", version=version
        )
    detail = f"{client.provider}{place}: {'; '.join([', '.join(parts), *made.notes])}"
    return Check("model", "ok", detail, version=version)

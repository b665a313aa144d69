"""The model that a user's options mean, ready to be asked; and whether it answers at all."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from profkit.core.errors import MachineError, UsageError
from profkit.core.formatting import format_quantity, joined, plural
from profkit.core.types import Check, GenerationLimits
from profkit.generation.clients.api_client import BEARER, AnthropicClient, Asking, OpenAIClient
from profkit.generation.clients.client import Answer, Ledger, Message, ModelClient, ModelFailed, StoredAnswers
from profkit.generation.clients.command_client import CommandClient
from profkit.generation.clients.keys import (
    SERVERS,
    Key,
    find_key,
    hide_all_secrets,
    hide_keys,
    is_local,
    learn_address,
    learn_secret,
    server_of,
    without_secrets,
)

Provider = Literal["openai", "anthropic", "command"]
_KEYS = {"openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY", BEARER)}
_ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_MOST_NAMES = 8
QUESTION, ANSWER_TOKENS = "Answer with one word: ready", 16
_TRIAL_SECONDS = 60.0  # whoever asks sits before it
_NO_KEY = "none"  # what a server on this machine gets where the user has no key for it


@dataclass(frozen=True)
class ClientOptions:
    """Which model is asked, how, and for how much.

    None is what the environment says, or no limit. Seconds: `timeout` for an answer, `command_timeout` for a run of
    `command`. `retries` of a request at most. `spent` are the tokens, in and out, of what goes on here.
    """

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None  # the variable that holds the key
    command: str | None = None
    answer_tokens: int = 16384
    temperature: float | None = None
    timeout: float = 600.0
    command_timeout: float = 1800.0
    retries: int = 8
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    spent: tuple[int, int] = (0, 0)
    answers: Path | None = None  # the folder that keeps them


@dataclass(frozen=True)
class MadeClient:
    """A model that can be asked.

    `server` is its host and port, empty for a command; `address` what to store of it, empty for a provider's own: from
    --base-url or the environment, without a user, a password or what is asked for.
    """

    client: ModelClient
    ledger: Ledger
    server: str = ""
    address: str = ""
    notes: tuple[str, ...] = ()  # what was decided for the user


def make_client(options: ClientOptions) -> MadeClient:
    """The model that the options mean. Keys leave the environment of this process.

    Raises UsageError for options that do not go together, MachineError where a package is missing, and ModelFailed
    where there is no key, or no model by that name can be chosen.
    """
    check_options(options)
    ledger = Ledger(options.limits, options.spent)
    provider = provider_of(options)
    if provider == "command":
        hide_all_secrets(options.key_env)
        client: ModelClient = CommandClient(options.command or "", options.command_timeout, options.key_env)
        made = MadeClient(client, ledger)
        asked_with: dict[str, object] = {"command": options.command}
    else:
        made = _make_api_client(provider, options, ledger)
        asked_with = {
            "server": made.server,
            "answer_tokens": options.answer_tokens,
            "temperature": options.temperature,
        }
    if options.answers is None:
        return made
    return replace(made, client=StoredAnswers(made.client, options.answers, asked_with))


def check_options(options: ClientOptions) -> None:
    """Raises UsageError for options that contradict each other, or mean nothing."""
    if options.provider is not None and options.provider not in get_args(Provider):
        raise UsageError(
            f"no provider is called {options.provider}", f"--provider {'|'.join(get_args(Provider))}"
        )
    if options.command is not None:
        if options.provider not in (None, "command"):
            raise UsageError(f"--command is asked, and not --provider {options.provider}: give one of them")
        if options.model or options.base_url:
            raise UsageError("--command chooses its model itself: leave --model and --base-url out")
        if options.limits.tokens is not None or options.limits.cost is not None:
            raise UsageError("how many tokens a --command takes nobody says: limit it with --max-attempts")
    elif options.provider == "command":
        raise UsageError("--provider command needs the command", '--command "my-agent {prompt} {output}"')
    if options.base_url is not None:
        _check_address("--base-url", options.base_url)


def _check_address(name: str, address: str) -> None:
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise UsageError(f"{name} is no address of a server", "--base-url http://HOST:PORT/v1")


def provider_of(options: ClientOptions) -> Provider:
    """Who is asked: what the user says, or else by the address, or else by the key that is there."""
    if options.command is not None:
        return "command"
    if options.provider is not None:
        return cast(Provider, options.provider)
    if options.base_url is not None:
        parts = urlsplit(options.base_url)
        theirs = (parts.hostname or "").endswith("anthropic.com") or "anthropic" in parts.path.split("/")
        return "anthropic" if theirs else "openai"
    if options.key_env is not None:
        return "anthropic" if "ANTHROPIC" in options.key_env.upper() else "openai"
    provider: Provider
    for provider in ("anthropic", "openai"):
        if find_key(*_KEYS[provider]):
            return provider
    if os.environ.get("OPENAI_BASE_URL"):
        return "openai"
    raise ModelFailed(
        "no model can be asked: there is no ANTHROPIC_API_KEY, no OPENAI_API_KEY, no --base-url and no --command",
        "export ANTHROPIC_API_KEY=...",
    )


def _make_api_client(provider: str, options: ClientOptions, ledger: Ledger) -> MadeClient:
    given = options.base_url or os.environ.get(_ADDRESSES[provider]) or None
    if given is not None:
        _check_address(_ADDRESSES[provider] if options.base_url is None else "--base-url", given)
    url = None if given is None else complete_address(provider, given)
    (address,) = without_secrets([url or ""])
    server = SERVERS[provider] if url is None else server_of(url)
    key = _key_of(provider, options, url, server)
    learn_secret(key.value)
    learn_address(url or "")
    make = OpenAIClient if provider == "openai" else AnthropicClient
    asking = Asking(
        options.model or "",
        server,
        key.variable,
        options.answer_tokens,
        options.temperature,
        options.timeout,
        options.retries,
    )
    client = make(asking, key, url, ledger)
    hide_keys(*filter(None, [options.key_env]))  # after the package has read its own variables
    if options.model:
        return MadeClient(client, ledger, server, address)
    names = client.list_models()
    if url is None or len(names) != 1:
        listed = joined(names[:_MOST_NAMES]) + (" and others" if len(names) > _MOST_NAMES else "")
        raise UsageError(f"name the model: {server} has {listed or 'a list of none'}", "--model NAME")
    note = f"{names[0]} is the only model that {server} lists"
    client.asking = replace(asking, model=names[0])
    return MadeClient(client, ledger, server, address, (note,))


def complete_address(provider: str, address: str) -> str:
    """The address as the package wants it: OpenAI's dialect stands below /v1, the other package adds that itself."""
    parts = urlsplit(address)
    path = parts.path.rstrip("/")
    for end in ("/chat/completions", "/messages"):
        path = path.removesuffix(end)
    if provider == "anthropic":
        path = path.removesuffix("/v1")
    return parts._replace(path=path or ("/v1" if provider == "openai" else "")).geturl()


def _key_of(provider: str, options: ClientOptions, url: str | None, server: str) -> Key:
    variables = (options.key_env,) if options.key_env else _KEYS[provider]
    key = find_key(*variables)
    if key is not None:
        if not (key.value.isascii() and key.value.isprintable()) or " " in key.value:
            raise ModelFailed(
                f"what {key.variable} holds is no key: it has characters that none has",
                f"export {key.variable}=...",
            )
        return key
    if url is not None and is_local(url) and not options.key_env:
        return Key(variables[0], _NO_KEY)
    raise ModelFailed(
        f"there is no key for {server}: {variables[0]} is not set", f"export {variables[0]}=..."
    )


def try_model(options: ClientOptions, report: Callable[[str], None] = lambda _: None) -> tuple[Check, ...]:
    """Ask the model one short question; the check says what came of it, and the line that fixes what did not.

    Raises UsageError for options that do not go together, or name no model.
    """
    short = replace(
        options,
        answer_tokens=ANSWER_TOKENS,
        timeout=_TRIAL_SECONDS,
        command_timeout=_TRIAL_SECONDS,
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

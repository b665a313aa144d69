"""Choose the model that a user's options mean, and check whether it answers at all."""

from __future__ import annotations

import os
import socket
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from profkit.core.errors import UsageError
from profkit.generation.api_client import BEARER, AnthropicModel, OpenAIModel
from profkit.generation.keys import (
    Key,
    find_key,
    hide_secrets,
    is_local,
    learn_address,
    learn_secret,
    server_of,
)
from profkit.generation.model import Ledger, Model, ModelFailed, ModelOptions, ProgramModel

Provider = Literal["openai", "anthropic", "command"]
_KEYS = {"openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY", BEARER)}
_ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_CONNECT_SECONDS = 5.0  # to a server on this machine
_NO_KEY = "none"  # what a server on this machine gets where the user has no key for it


def make_model(options: ModelOptions) -> Model:
    """Make the model that the options mean, and take secrets out of this process's environment.

    Raises UsageError for options that do not go together, MachineError if a package is missing, and ModelFailed
    if there is no key.
    """
    check_options(options)
    provider = provider_of(options)
    if provider == "command":
        program = ProgramModel(options.command or "", options.timeout, options.key_env)
        hide_secrets(options.key_env)
        return program
    if not options.model:
        raise UsageError("name the model", "--model NAME")
    url = options.base_url or os.environ.get(_ADDRESSES[provider]) or None
    if url is not None:
        _check_address("--base-url" if options.base_url else _ADDRESSES[provider], url)
    key = _key_of(provider, options, url)
    learn_secret(key.value)
    learn_address(url or "")
    make = OpenAIModel if provider == "openai" else AnthropicModel
    model = make(options, key, url, Ledger(options.limits, options.spent))
    hide_secrets(options.key_env)  # after the package has read its own variables
    return model


def check_listening(url: str) -> None:
    """Raise ModelFailed if nothing listens at an address of this machine.

    The package would try for half a minute.
    """
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError as error:
        sentence = f"{server_of(url)} cannot be reached ({error.strerror or error})"
        raise ModelFailed(sentence, "--base-url http://HOST:PORT/v1", permanent=True) from None


def check_options(options: ModelOptions) -> None:
    """Raise UsageError for options that contradict each other, or mean nothing."""
    if options.provider is not None and options.provider not in get_args(Provider):
        raise UsageError(
            f"no provider is called {options.provider}", f"--provider {'|'.join(get_args(Provider))}"
        )
    if options.command is not None:
        if options.provider not in (None, "command") or options.model or options.base_url:
            raise UsageError(
                "--command chooses its model itself: leave --provider, --model and --base-url out"
            )
        if options.limits.tokens is not None:
            raise UsageError("how many tokens a --command takes nobody says: limit it with --max-attempts")
    elif options.provider == "command":
        raise UsageError("--provider command needs the command", '--command "my-agent {prompt} {output}"')


def _check_address(name: str, address: str) -> None:
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or parts.query:
        raise UsageError(f"{name} is not an address of a server", "--base-url http://HOST:PORT/v1")


def provider_of(options: ModelOptions) -> Provider:
    """Return the provider: the one named, or else by the key that is set; OpenAI's dialect with an address alone.

    Raises UsageError if --key-env is given without a provider, ModelFailed if there is neither.
    """
    if options.command is not None:
        return "command"
    if options.provider is not None:
        return cast(Provider, options.provider)
    if options.base_url is not None:
        return "openai"
    if options.key_env is not None:
        raise UsageError("--key-env does not say who is asked with the key", "--provider openai|anthropic")
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


def _key_of(provider: str, options: ModelOptions, url: str | None) -> Key:
    variables = (options.key_env,) if options.key_env else _KEYS[provider]
    key = find_key(*variables)
    if key is not None:
        if not (key.value.isascii() and key.value.isprintable()) or " " in key.value:
            raise ModelFailed(
                f"what {key.variable} holds is not a key: it has characters that none has",
                f"export {key.variable}=...",
            )
        return key
    if url is not None and is_local(url) and not options.key_env:
        return Key(variables[0], _NO_KEY)
    place = provider if url is None else server_of(url)
    raise ModelFailed(f"there is no key for {place}: {variables[0]} is not set", f"export {variables[0]}=...")

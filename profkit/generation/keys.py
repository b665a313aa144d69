"""Keep a user's secrets, keys and parts of addresses, out of the environment and of every text."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from profkit.kernels.evaluation.worker.isolation import shield
from profkit.runtime.passes.secrets import is_secret_variable

_OF_MODELS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
# What the packages read by themselves: a gateway's key may stand in it.
_HEADERS = ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")  # which others need, too
_LIBRARIES = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2")
_USER = re.compile(r"(\w://)[^/?#\s]*@")
_QUERY = re.compile(r"(://[^?\s]*)\?\S*")
_SHORTEST = 4  # characters: a shorter text is no secret, and is a part of many words
_PART = 8  # characters of a key in a row that are taken out, too
_GONE = "[key]"


@dataclass(frozen=True)
class Key:
    """A key, and the variable that holds it."""

    variable: str
    value: str = field(repr=False)


class _Vault:
    """What was taken out of this process's environment, and what no text may show."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken: dict[str, str] = {}
        self.secrets: set[str] = set()


_vault = _Vault()


def find_key(*variables: str) -> Key | None:
    """Return the first of these variables that holds a key, in the environment or already taken out of it."""
    for variable in variables:
        if value := os.environ.get(variable, _vault.taken.get(variable, "")).strip():
            return Key(variable, value)
    return None


def hide_secrets(named: str | None = None) -> None:
    """Take whatever may be secret, and the variables that are `named` (A,B), out of this process's environment.

    So no kernel and no program inherits one. A process on Linux shows the environment that it began with, so
    other processes of this user are kept from reading it. What the packages would log has headers in it: they log
    faults alone.
    """
    shown_nowhere = (*_OF_MODELS, *_HEADERS, *_names(named))
    with _vault.lock:
        for name, value in [*os.environ.items()]:
            if name in shown_nowhere or is_secret_variable(name, value):
                _vault.taken[name] = os.environ.pop(name)
            if name in shown_nowhere:  # not of all: a value like "true" stands in many texts
                _learn(value.strip())
                for line in value.split("\n"):  # headers
                    _learn(line.partition(":")[2].strip())
    for name in _PROXIES:
        learn_address(os.environ.get(name, "") or os.environ.get(name.lower(), ""))
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    shield()


def _names(named: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (named or "").split(",") if name.strip())


def learn_secret(value: str) -> None:
    """Keep `value` out of every text from now on."""
    with _vault.lock:
        _learn(value)


def learn_address(url: str) -> None:
    """Keep the user and the password of an address out of every text from now on."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        for value in filter(None, (parts.username, parts.password)):
            learn_secret(value)
            learn_secret(unquote(value))


def _learn(value: str) -> None:
    if len(value) >= _SHORTEST:
        _vault.secrets |= {value, quote(value, safe="")}


def command_keys(named: str | None) -> dict[str, str]:
    """Return the keys for a program of `--command`: those of `--key-env`, else the models' usual ones; no others."""
    names = _names(named) or _OF_MODELS
    return {name: _vault.taken[name] for name in names if name in _vault.taken}


def without_keys(text: str) -> str:
    """Remove keys from a text, whole ones and long parts of them."""
    for secret in sorted(_vault.secrets, key=len, reverse=True):
        text = text.replace(secret, _GONE)
        if len(secret) > _PART:
            text = _without_parts(text, secret)
    return text


def _without_parts(text: str, secret: str) -> str:
    """Remove every run of at least 8 characters that also stands in the secret."""
    pieces = []
    place = start = 0
    while place + _PART <= len(text):
        end = place + _PART
        if text[place:end] not in secret:
            place += 1
            continue
        while end < len(text) and text[place : end + 1] in secret:
            end += 1
        pieces += [text[start:place], _GONE]
        place = start = end
    return "".join([*pieces, text[start:]])


def server_of(url: str) -> str:
    """Return host and port of an address: never a user or a password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """Remove user, password and query from the addresses in a command line."""
    return tuple(_QUERY.sub(r"\1", _USER.sub(r"\1", word)) for word in words)


def is_local(url: str) -> bool:
    """Return whether an address is of this machine."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def http_options(url: str | None) -> dict[str, Any]:
    """Return options for the HTTP library: no redirects, so that a key goes nowhere else.

    No proxy for local servers.
    """
    options: dict[str, Any] = {"follow_redirects": False}
    if url is not None and is_local(url):
        host = urlsplit(url).hostname or ""
        options["mounts"] = {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    return options

"""What is secret of a user's accounts: keys and parts of addresses, taken out of the environment and of every text."""

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
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from profkit.kernels.evaluation.candidate.confinement import shield
from profkit.runtime.passes.secrets import is_secret_variable

# What the packages read by themselves, too: a gateway's key may stand in the headers of CUSTOM_HEADERS.
_VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_ADMIN_KEY",
    "OPENAI_CUSTOM_HEADERS",
    "OPENAI_WEBHOOK_SECRET",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY",
)
_OF_MODELS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")  # which others need, too
_LIBRARIES = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2")
_USER = re.compile(r"(\w://)[^/?#\s]*@")
_QUERY = re.compile(r"(://[^?\s]*)\?\S*")
SERVERS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}  # without --base-url
_SHORTEST = 4  # characters: what is shorter is no secret, and stands in many words
_PART = 8  # characters of a key in a row that are taken out, too
_GONE = "[key]"


@dataclass(frozen=True)
class Key:
    """A key, and the variable that holds it."""

    variable: str
    value: str = field(repr=False)


class _Vault:
    """What was taken out of the environment of this process, and what no text may show."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken: dict[str, str] = {}
        self.secrets: set[str] = set()
        self.logs_are_cleaned = False


_vault = _Vault()


def find_key(*variables: str) -> Key | None:
    """The first of these variables that holds a key, in the environment or taken out of it already."""
    for variable in variables:
        if value := os.environ.get(variable, _vault.taken.get(variable, "")).strip():
            return Key(variable, value)
    return None


def hide_keys(*variables: str) -> None:
    """Take all keys, and what these variables hold, out of this process's environment; nobody may look into it.

    A process on Linux shows the environment that it began with, so others of this user are kept from reading it.
    """
    with _vault.lock:
        for variable in (*_VARIABLES, *variables):
            if value := os.environ.pop(variable, ""):
                _vault.taken[variable] = value
                _learn(value.strip())
                for line in value.split("\n"):  # headers
                    _learn(line.partition(":")[2].strip())
    for variable in _PROXIES:
        learn_address(os.environ.get(variable, "") or os.environ.get(variable.lower(), ""))
    _clean_logs()
    shield()


def hide_all_secrets(named: str | None) -> None:
    """Take out of the environment whatever may be secret in it, before a program of somebody else starts from it."""
    hide_keys(*_names(named))
    with _vault.lock:  # nothing of theirs can come back in a text, and a value like "true" stands in many
        for name in [name for name, value in os.environ.items() if is_secret_variable(name, value)]:
            _vault.taken[name] = os.environ.pop(name)


def _names(named: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (named or "").split(",") if name.strip())


def learn_secret(value: str) -> None:
    """From now on no text shows `value`."""
    with _vault.lock:
        _learn(value)


def learn_address(url: str) -> None:
    """From now on no text shows the user, the password, or what is asked for with `?`, of an address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    values = [parts.username, parts.password, *re.split("[&=]", parts.query)[1::2]]
    with _vault.lock:
        for value in filter(None, values):
            _learn(value)
            _learn(unquote(value))


def _learn(value: str) -> None:
    if len(value) >= _SHORTEST:
        _vault.secrets |= {value, quote(value, safe="")}


def command_keys(named: str | None) -> dict[str, str]:
    """The keys that a program of `--command` gets: those of `--key-env`, else what asks a model; no other key."""
    names = _names(named) or _OF_MODELS
    return {name: _vault.taken[name] for name in names if name in _vault.taken}


def without_keys(text: str) -> str:
    """A text without keys: neither whole, nor as services echo them (`sk-12345*******6789`), nor long parts of one."""
    for secret in sorted(_vault.secrets, key=len, reverse=True):
        text = text.replace(secret, _GONE)
        if len(secret) > _PART:
            text = _without_echoes(_without_parts(text, secret), secret)
    return text


def _without_parts(text: str, secret: str) -> str:
    """Every run of at least 8 characters that the secret has, too, is taken out."""
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


def _without_echoes(text: str, secret: str) -> str:
    """The ends of a key around stars or dots: its first characters, its last ones, or both."""

    def shorten(match: re.Match[str]) -> str:
        head, tail = match["head"], match["tail"]
        if not any((head and secret.startswith(head), tail and secret.endswith(tail), _GONE in head + tail)):
            return match[0]
        return _GONE

    return re.sub(r"(?P<head>[\w\-[\]]*)(?:\*{2,}|\.{3,}|…)(?P<tail>[\w\-[\]]*)", shorten, text)


def _clean_logs() -> None:
    """What the packages log is cleaned before any handler has it: a user may have turned their logs on."""
    with _vault.lock:
        if _vault.logs_are_cleaned:
            return
        _vault.logs_are_cleaned = True
    make = logging.getLogRecordFactory()

    def make_clean(*arguments: object, **fields: object) -> logging.LogRecord:
        record = make(*arguments, **fields)
        if record.name.partition(".")[0] in _LIBRARIES:
            record.msg, record.args, record.exc_info = without_keys(record.getMessage()), (), None
        return record

    logging.setLogRecordFactory(make_clean)


def server_of(url: str) -> str:
    """Host and port of an address: never a user, a password or what is asked for."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{parts.port}" if parts.port is not None else host


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """A command line whose addresses have no user, password or query."""
    return tuple(_QUERY.sub(r"\1", _USER.sub(r"\1", word)) for word in words)


def is_local(url: str) -> bool:
    """Whether an address is of this machine."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def http_options(url: str | None) -> dict[str, Any]:
    """How the HTTP library is to be used: a key goes nowhere but where the user sends it, and here past any proxy."""
    options: dict[str, Any] = {"follow_redirects": False}
    if url is not None and is_local(url):
        host = urlsplit(url).hostname or ""
        options["mounts"] = {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    return options


def address_options(url: str | None) -> dict[str, Any]:
    """How the packages take an address: they put their own paths behind it, so what is asked for stands apart."""
    if url is None:
        return {"base_url": None}
    parts = urlsplit(url)
    return {"base_url": parts._replace(query="").geturl(), "default_query": dict(parse_qsl(parts.query))}

"""Addresses of services: what of one may be shown, and what it asks of the HTTP library."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_USER = re.compile(r"(\w://)[^/?#\s]*@")
_QUERY = re.compile(r"(://[^?\s]*)\?\S*")
SERVERS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}  # without --base-url


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

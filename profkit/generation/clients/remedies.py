"""Faults of services as sentences, each with the line that helps."""

from __future__ import annotations

from profkit.core.formatting import format_quantity, plural
from profkit.generation.clients.addresses import SERVERS
from profkit.generation.clients.asking import Asking
from profkit.generation.clients.client import ModelFailed
from profkit.generation.clients.faults import FaultKind, RequestFault

_SENTENCES: dict[FaultKind, str] = {
    "rate-limit": "{server} limits the rate of requests",
    "overloaded": "{server} is overloaded",
    "server": "{server} has an error of its own",
    "connection": "the connection to {server} fails",
    "silence": "{server} does not answer",
    "cut": "{server} cuts its answers off",
    "absent": "nobody answers at {server}",
    "certificate": "the certificate of {server} is not trusted here",
    "key": "{server} refuses the key of {variable}",
    "permission": "{server} does not allow it with the key of {variable}",
    "quota": "the account at {server} has nothing left to spend",
    "model": "{server} has no model {model}",
    "address": "{server} does not speak the dialect of {provider} at this address",
    "context": "the conversation is too long for {model}",
    "length": "{model} does not give answers of {answer_tokens:,} tokens",
    "request": "{server} refuses the request",
}
_FIXES: dict[FaultKind, str] = {
    "absent": "--base-url {example}",
    "certificate": "export SSL_CERT_FILE=CERTIFICATES.pem",
    "key": "export {variable}=...",
    "permission": "export {variable}=...",
    "model": "--model NAME",
    "address": "--base-url {example}",
    "length": "--answer-tokens {fewer}",
}
EXAMPLES = {"openai": "http://HOST:PORT/v1", "anthropic": "http://HOST:PORT"}


def failure_of(fault: RequestFault, tries: int, provider: str, asking: Asking) -> ModelFailed:
    """The failure that a user sees. It is permanent, but where a shorter conversation, or time, may help."""
    values = {
        "server": asking.server,
        "variable": asking.key_variable,
        "model": asking.model,
        "provider": provider,
        "answer_tokens": asking.answer_tokens,
        "example": EXAMPLES[provider],
        "fewer": asking.answer_tokens // 4,
    }
    sentence = _SENTENCES[fault.kind].format(**values)
    if tries > 1:
        sentence += f", after {plural(tries, 'try', 'tries')}"
    if fault.passes and fault.wait:
        sentence += f", and asks to wait {format_quantity(fault.wait, 's')}"
    words = f"{fault.status}: {fault.detail}" if fault.status else fault.detail
    fix = _FIXES.get(fault.kind)
    if fault.kind in ("absent", "address") and asking.server == SERVERS[provider]:
        fix = "export HTTPS_PROXY=http://HOST:PORT"  # nothing but the way there can be wrong
    return ModelFailed(
        f"{sentence} ({words})" if words else sentence,
        fix.format(**values) if fix else None,
        permanent=not fault.passes and fault.kind != "context",
    )

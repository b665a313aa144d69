"""What an error of a service means: whether it passes, how long the service asks to wait, and what the user can do."""

from __future__ import annotations

import email.utils
import json
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from profkit.core.formatting import shorten
from profkit.generation.clients.keys import without_keys

FaultKind = Literal[
    "rate-limit",
    "overloaded",
    "server",  # an error of its own
    "connection",
    "silence",  # nothing came for too long
    "cut",  # the stream ended before the answer did
    "absent",  # nobody listens there, or there is no such host
    "certificate",
    "key",
    "permission",
    "quota",
    "model",
    "address",
    "context",  # the conversation is too long for the model
    "length",  # the model gives no answer as long as is asked for
    "request",
]
PASSING: frozenset[FaultKind] = frozenset(
    {"rate-limit", "overloaded", "server", "connection", "silence", "cut"}
)
_LONGEST = 300  # characters of a server's own words
_TYPES: dict[str, FaultKind] = {
    "rate_limit_error": "rate-limit",
    "rate_limit_exceeded": "rate-limit",
    "overloaded_error": "overloaded",
    "api_error": "server",
    "server_error": "server",
    "internal_server_error": "server",
    "timeout_error": "server",
    "authentication_error": "key",
    "invalid_api_key": "key",
    "permission_error": "permission",
    "billing_error": "quota",
    "insufficient_quota": "quota",
    "model_not_found": "model",
    "context_length_exceeded": "context",
    "exceed_context_size_error": "context",
    "request_too_large": "context",
}
_STATUSES: dict[int, FaultKind] = {
    401: "key",
    402: "quota",
    403: "permission",
    404: "address",
    405: "address",
    408: "server",
    409: "server",
    413: "context",
    429: "rate-limit",
    503: "overloaded",
    529: "overloaded",
}
# What has no type of its own, by the words of the services.
_WORDS: tuple[tuple[str, FaultKind], ...] = (
    (r"credit balance|insufficient.{0,8}(quota|funds|credit)", "quota"),
    (
        r"max_(completion_)?tokens.{0,40}(too large|must be|maximum|at most|exceed|>)|completion tokens",
        "length",
    ),
    (
        r"prompt is too long|context.{0,8}(length|window|size)|too many (input )?tokens|maximum.{0,12}tokens",
        "context",
    ),
    (r"model.{0,200}(not found|not exist|unknown|not available)|unknown model|invalid model", "model"),
)
# What no waiting helps against, though it is said with the status of a rate limit.
_WORDS_OF_LIMITS: tuple[tuple[str, FaultKind], ...] = (
    (r"credit balance|insufficient.{0,8}(quota|funds|credit)", "quota"),
    (r"request too large", "context"),
)
# It is the answer that does not fit where the conversation alone would.
_NUMBERS = re.compile(r"maximum context length is (\d+).*?(\d+) in the (?:messages|prompt)", re.DOTALL)


@dataclass
class RequestFault(Exception):
    """One request that brought no answer. `wait` is in seconds, as the service asks; `spent` tokens, in and out."""

    kind: FaultKind
    detail: str = ""  # the service's own words, without keys
    status: int | None = None
    wait: float | None = None
    body: str = ""
    spent: tuple[int, int] = (0, 0)

    @property
    def passes(self) -> bool:
        """Whether another request may bring an answer."""
        return self.kind in PASSING


def fault_of(error: BaseException, *, was_there: bool) -> RequestFault | None:
    """What an exception of a package, or of the library below it, means; None for one that is our own defect.

    `was_there`: the service has answered before, so it will be there again.
    """
    status = getattr(error, "status_code", None)
    module = type(error).__module__.partition(".")[0]
    if isinstance(status, int) or hasattr(error, "body"):
        body = getattr(error, "body", None)
        response = getattr(error, "response", None)
        if isinstance(status, int) or body is not None:
            headers: Mapping[str, str] = getattr(response, "headers", {})
            return fault_of_response(status if isinstance(status, int) else 200, body, headers, str(error))
    causes = list(_causes(error))
    detail = _clean(str(causes[-1]) or type(error).__name__)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return RequestFault("certificate", detail)
    if any(isinstance(cause, (ConnectionRefusedError, socket.gaierror)) for cause in causes):
        return RequestFault("connection" if was_there else "absent", detail)
    if module in ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2") or isinstance(
        error, OSError
    ):
        silent = any("Timeout" in type(cause).__name__ for cause in causes)
        return RequestFault("silence" if silent else "connection", detail)
    if isinstance(error, (json.JSONDecodeError, KeyError)):
        return RequestFault("cut", "the answer is not as this interface has it")
    return None


def fault_of_response(status: int, body: object, headers: Mapping[str, str], text: str) -> RequestFault:
    """What an answer that is an error means, by its type, its status and, where these say nothing, its words."""
    error = _error_of(body)
    words = str(error.get("message") or text)
    names = [str(error.get(name)) for name in ("code", "type") if error.get(name)]
    if isinstance(error.get("code"), int) and status == 200:  # in a stream, as some servers send it
        status = error["code"]
    kinds = (_TYPES[name] for name in names if name in _TYPES)
    kind = next(kinds, None)
    if kind in (None, "server"):  # many an error has that type
        kind = _STATUSES.get(status, kind)
    if kind == "rate-limit":
        kind = _kind_by_words(_WORDS_OF_LIMITS, words) or kind
    elif kind in (None, "address") or status in (400, 413, 422):
        kind = _kind_by_words(_WORDS, words) or kind
    if kind == "context" and (numbers := _NUMBERS.search(words)) and int(numbers[2]) < int(numbers[1]):
        kind = "length"
    if kind is None:
        kind = "server" if status >= 500 or status == 200 else "address" if status < 400 else "request"
    return RequestFault(
        kind,
        _clean(words),
        None if status == 200 else status,
        asked_wait(headers),
        json.dumps(body, default=str) + words,
    )


def _kind_by_words(words_of: Sequence[tuple[str, FaultKind]], words: str) -> FaultKind | None:
    fitting = (kind for pattern, kind in words_of if re.search(pattern, words, re.IGNORECASE | re.DOTALL))
    return next(fitting, None)


def _error_of(body: object) -> Mapping[str, Any]:
    """The error within an answer: below `error` as both dialects have it, or the answer itself."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            return inner
        return {"message": inner}
    return {}


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a service asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    milliseconds, seconds = headers.get("retry-after-ms"), headers.get("retry-after")
    for text, unit in ((milliseconds, 1e-3), (seconds, 1.0)):
        try:
            value = float(text or "") * unit
        except ValueError:
            continue
        if math.isfinite(value) and value >= 0:
            return value
    date = email.utils.parsedate_tz(seconds or "")
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it came from, the first cause last."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _clean(text: str) -> str:
    return shorten(" ".join(without_keys(text).split()), _LONGEST)

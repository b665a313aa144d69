"""A model behind an HTTP interface, asked with its vendor's package: that waits, tries again and types its errors.

OpenAI's interface for chats, which vLLM, llama.cpp and most gateways speak too, and Anthropic's. Requests of all
clients run in one event loop, so that `close` ends them at once, also between two tries.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import inspect
import json
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from profkit.core.errors import MachineError
from profkit.core.formatting import format_quantity, shorten
from profkit.generation.clients.client import Answer, Cancelled, Ledger, Message, ModelFailed, StopCause
from profkit.generation.clients.keys import SERVERS, Key, address_options, http_options, without_keys

_STOPS: dict[str, StopCause] = {
    "length": "length",
    "content_filter": "refused",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
BEARER = "ANTHROPIC_AUTH_TOKEN"  # is sent as `Authorization: Bearer`, as gateways want it
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Some servers know only the one, and some models of OpenAI only the other.
_LENGTHS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_CHARACTERS_PER_TOKEN = 4
_REPORT_SECONDS = 1.0
_LIST_SECONDS = 20.0
_LONGEST = 300  # characters of a server's own words
_EXAMPLES = {"openai": "http://HOST:PORT/v1", "anthropic": "http://HOST:PORT"}
_NO_MONEY = ("insufficient_quota", "billing_error")  # codes and types of errors
T = TypeVar("T")


@dataclass(frozen=True)
class Asking:
    """How a model is asked. `temperature` is the service's own where it is None; `seconds` are those of one try.

    `retries` of the package: after as long as the service asks for, else after waits that double, of 8 s at most.
    """

    model: str
    server: str  # host and port
    key_variable: str
    answer_tokens: int = 16384
    temperature: float | None = None
    seconds: float = 600.0
    retries: int = 8


@dataclass(frozen=True)
class _Fault:
    """What an error means to the user. `permanent`: another conversation would not be answered either."""

    sentence: str
    fix: str | None = None
    permanent: bool = False


# By the classes of errors, which both packages name alike.
_FAULTS = {
    "AuthenticationError": _Fault("{server} refuses the key of {variable}", "export {variable}=...", True),
    "PermissionDeniedError": _Fault(
        "{server} does not allow it with the key of {variable}", "export {variable}=...", True
    ),
    "NotFoundError": _Fault(
        "{server} has no model {model}, or does not speak the dialect of {provider} at this address",
        "--model NAME, or --base-url {example}",
        True,
    ),
    "RateLimitError": _Fault("{server} limits the rate of requests"),
    "InternalServerError": _Fault("{server} has an error of its own"),
    "APITimeoutError": _Fault("{server} does not answer"),
    "APIConnectionError": _Fault("{server} cannot be reached", "--base-url {example}", True),
    "APIStatusError": _Fault("{server} refuses the request"),
}
_OTHER_DIALECT = _Fault("{server} does not speak the dialect of {provider}", "--base-url {example}", True)
_QUOTA = _Fault("the account at {server} has nothing left to spend", None, True)


class NoAnswer(Exception):
    """What came is no answer of this interface."""


class ApiClient(ABC):
    """What the clients of all services have in common. `api` is the package's own client."""

    def __init__(self, provider: str, asking: Asking, ledger: Ledger) -> None:
        self._provider, self.asking, self._ledger = provider, asking, ledger
        self.api: Any = None
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._under_way: set[concurrent.futures.Future[Any]] = set()

    @property
    def provider(self) -> str:
        """openai or anthropic."""
        return self._provider

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.asking.model

    def ask(self, messages: Sequence[Message], report: Callable[[str], None] = lambda _: None) -> Answer:
        """Its answer; see `ModelClient`. What was set aside for a request whose end nobody knows is spent."""
        reserved = self._ledger.reserve(messages, self.asking.answer_tokens, self._closed)
        start, spent = time.monotonic(), reserved
        try:
            answer = self._wait(self._ask(messages), report)
            spent = answer.input_tokens or 0, answer.output_tokens or 0
            return replace(answer, seconds=time.monotonic() - start)
        except Cancelled:
            raise
        except Exception as error:
            if not any(kind.__name__ == "APITimeoutError" for kind in type(error).__mro__):
                spent = (0, 0)
            raise self._failure(error) from None  # its causes hold requests with their keys
        finally:
            self._ledger.settle(reserved, spent)

    def close(self) -> None:
        """Ends what is being asked, by whichever thread."""
        with self._lock:
            self._closed.set()
            under_way = list(self._under_way)
        for future in under_way:
            future.cancel()

    def list_models(self) -> list[str]:
        """The names that the service lists, its newest first where it says so. Raises ModelFailed."""
        try:
            return self._wait(self._list_models(), lambda _: None)
        except Cancelled:
            raise
        except Exception as error:
            raise self._failure(error) from None

    @abstractmethod
    async def request(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; the package's raw response."""

    @abstractmethod
    def read(self, document: Any, messages: Sequence[Message]) -> Answer:
        """The answer in what the package read. Raises NoAnswer."""

    async def _ask(self, messages: Sequence[Message]) -> Answer:
        raw = await self.request(messages)
        document = raw.parse()
        if inspect.isawaitable(document):  # by the package's version
            document = await document
        return replace(self.read(document, messages), retries=raw.retries_taken)

    async def _list_models(self) -> list[str]:
        # Whoever asks sits before it
        page = await self.api.with_options(max_retries=1).models.list(timeout=_LIST_SECONDS)
        if isinstance(page, str):
            raise NoAnswer
        return [str(model.id) for model in page.data]

    def _wait(self, request: Coroutine[Any, Any, T], report: Callable[[str], None]) -> T:
        """What the event loop makes of a request. Raises what the request raises, Cancelled after `close`."""
        with self._lock:
            if self._closed.is_set():
                request.close()
                raise Cancelled
            future = asyncio.run_coroutine_threadsafe(request, _event_loop())
            self._under_way.add(future)
        start = time.monotonic()
        try:
            while not concurrent.futures.wait([future], _REPORT_SECONDS).done:
                report(f"no answer for {format_quantity(time.monotonic() - start, 's')}")
            return future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled from None
        finally:
            with self._lock:
                self._under_way.discard(future)

    def _failure(self, error: Exception) -> Exception:
        """The failure that a user sees; the error itself where it is our own defect."""
        names = [kind.__name__ for kind in type(error).__mro__]
        fault = next((_FAULTS[name] for name in names if name in _FAULTS), None)
        status, words = getattr(error, "status_code", None), str(error.__cause__ or error)
        if status is not None:
            body = getattr(error, "body", None)
            inner = body.get("error", body) if isinstance(body, dict) else {}
            stated = inner if isinstance(inner, dict) else {}
            words = f"{status}: {stated.get('message') or words}"
            if status == 402 or {stated.get("code"), stated.get("type")} & {*_NO_MONEY}:
                fault = _QUOTA
            elif status < 400 or status == 405:
                fault = _OTHER_DIALECT
        elif isinstance(error, (NoAnswer, json.JSONDecodeError)):
            fault = _OTHER_DIALECT
        if fault is None:
            return error
        fix = fault.fix
        if fault is _FAULTS["APIConnectionError"] and self.asking.server == SERVERS[self._provider]:
            fix = "export HTTPS_PROXY=http://HOST:PORT"  # nothing but the way there can be wrong
        values = {
            "server": self.asking.server,
            "variable": self.asking.key_variable,
            "model": self.asking.model,
            "provider": self._provider,
            "example": _EXAMPLES[self._provider],
        }
        words = shorten(" ".join(without_keys(words).split()), _LONGEST)
        sentence = fault.sentence.format(**values)
        return ModelFailed(
            f"{sentence} ({words})" if words else sentence,
            fix.format(**values) if fix else None,
            permanent=fault.permanent,
        )


def _package_options(package: ModuleType, asking: Asking, base_url: str | None) -> dict[str, Any]:
    """How both packages are used: they follow no redirection, and use no proxy on this machine."""
    return {
        "max_retries": asking.retries,
        "timeout": package.Timeout(asking.seconds, connect=30.0),
        "http_client": package.DefaultAsyncHttpxClient(**http_options(base_url)),
    }


def _load_package(name: str) -> ModuleType:
    """A package of the extra `llm`: loaded when a model is asked, never before. Raises MachineError without it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise MachineError(
            f"{missing} is not installed, and models are asked with it", "pip install 'profkit[llm]'"
        ) from error


def _make_answer(
    text: str,
    stop: StopCause,
    counted: tuple[int | None, int | None],
    messages: Sequence[Message],
) -> Answer:
    """An answer; tokens in and out are estimated by the lengths of the texts where the service counts none."""
    went_in = counted[0] or _tokens(sum(len(message.text) for message in messages))
    came_out = _tokens(len(text)) if counted[1] is None else counted[1]
    return Answer(text, stop, went_in, came_out, estimated=not counted[0] or counted[1] is None)


def _tokens(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


@lru_cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, in a thread that ends with it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="model requests", daemon=True).start()
    return loop


class OpenAIClient(ApiClient):
    """A model that is asked with the package `openai`. `base_url` is None for OpenAI's own service."""

    def __init__(self, asking: Asking, key: Key, base_url: str | None, ledger: Ledger) -> None:
        super().__init__("openai", asking, ledger)
        self._package = _load_package("openai")
        self.api = self._package.AsyncOpenAI(
            api_key=key.value,
            **address_options(base_url),
            **_package_options(self._package, asking, base_url),
        )
        self._length = "max_completion_tokens" if base_url is None else "max_tokens"

    async def request(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; once more, with the option's other name, where the server refuses the one."""
        length = self._length
        try:
            return await self._create(messages, length)
        except self._package.BadRequestError as error:
            if error.code != "unsupported_parameter" or error.param != length:
                raise
        self._length = _LENGTHS[length]
        return await self._create(messages, self._length)

    def read(self, document: Any, messages: Sequence[Message]) -> Answer:
        """The answer in what the package read. Raises NoAnswer."""
        if not getattr(document, "choices", None):
            raise NoAnswer
        choice, usage = document.choices[0], document.usage
        refusal = getattr(choice.message, "refusal", None)
        stop: StopCause = "refused" if refusal else _STOPS.get(choice.finish_reason or "", "end")
        counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        return _make_answer(choice.message.content or refusal or "", stop, counted, messages)

    async def _create(self, messages: Sequence[Message], length: str) -> Any:
        fields: dict[str, Any] = {length: self.asking.answer_tokens}
        if self.asking.temperature is not None:
            fields["temperature"] = self.asking.temperature
        return await self.api.chat.completions.with_raw_response.create(
            model=self.asking.model,
            messages=[{"role": message.role, "content": message.text} for message in messages],
            **fields,
        )


class AnthropicClient(ApiClient):
    """A model that is asked with the package `anthropic`. `base_url` is None for Anthropic's own service."""

    def __init__(self, asking: Asking, key: Key, base_url: str | None, ledger: Ledger) -> None:
        super().__init__("anthropic", asking, ledger)
        package = _load_package("anthropic")
        self.api = package.AsyncAnthropic(
            **{"auth_token" if key.variable == BEARER else "api_key": key.value},
            **address_options(base_url),
            **_package_options(package, asking, base_url),
        )

    async def request(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; what the system says is no message of it here."""
        fields: dict[str, Any] = {}
        if system := "\n\n".join(message.text for message in messages if message.role == "system"):
            fields["system"] = system
        if self.asking.temperature is not None:
            # Version 2 of the package has no parameter for it; the models that know it take it all the same
            fields["extra_body"] = {"temperature": self.asking.temperature}
        return await self.api.messages.with_raw_response.create(
            model=self.asking.model,
            max_tokens=self.asking.answer_tokens,
            messages=[
                {"role": message.role, "content": message.text}
                for message in messages
                if message.role != "system"
            ],
            timeout=self.api.timeout,  # named, or the package refuses answers that could take longer than ten minutes
            **fields,
        )

    def read(self, document: Any, messages: Sequence[Message]) -> Answer:
        """The answer in what the package read, with the tokens that the service has stored. Raises NoAnswer."""
        if getattr(document, "content", None) is None:
            raise NoAnswer
        text = "".join(getattr(block, "text", None) or "" for block in document.content)
        counted = sum(getattr(document.usage, name, None) or 0 for name in _INPUT)
        return _make_answer(
            text,
            _STOPS.get(document.stop_reason or "", "end"),
            (counted, getattr(document.usage, "output_tokens", None)),
            messages,
        )

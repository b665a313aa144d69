"""Models behind an HTTP interface, called with their vendor's package, which waits and retries.

OpenAI's interface for chats, which vLLM, llama.cpp and most gateways speak too, and Anthropic's. All requests
run in one event loop, so that `close` ends them at once, also between two tries.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import inspect
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any

from profkit.core.errors import MachineError
from profkit.core.formatting import format_quantity, shorten
from profkit.generation.keys import Key, http_options, server_of, without_keys, without_secrets
from profkit.generation.model import (
    Answer,
    Cancelled,
    ChatMessage,
    Ledger,
    Model,
    ModelFailed,
    ModelOptions,
    StopCause,
)

BEARER = "ANTHROPIC_AUTH_TOKEN"  # is sent as `Authorization: Bearer`, as gateways want it
_STOPS: dict[str, StopCause] = {
    "length": "length",
    "content_filter": "refused",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_SERVERS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}  # without --base-url
_ANSWER_SECONDS, _REPORT_SECONDS = 600.0, 1.0
_LONGEST = 300  # characters of a server's own words
# By the classes of errors, which both packages name alike: the sentence, its fix, and whether another conversation
# would not be answered either.
_FAULTS: dict[str, tuple[str, str | None, bool]] = {
    "AuthenticationError": ("{server} refuses the key of {key}", "export {key}=...", True),
    "PermissionDeniedError": ("{server} does not allow it with the key of {key}", "export {key}=...", True),
    "NotFoundError": (
        "{server} has no model {model}, or does not speak the dialect of {provider} at this address",
        "--model NAME, or --base-url {example}",
        True,
    ),
    "APITimeoutError": ("{server} does not answer", None, False),
    "APIConnectionError": ("{server} cannot be reached", "--base-url {example}", True),
    "APIStatusError": ("{server} answers with an error", None, False),
    # What is no JSON, or no answer of this interface.
    "APIError": ("{server} does not speak the dialect of {provider}", "--base-url {example}", True),
    "ValueError": ("{server} does not speak the dialect of {provider}", "--base-url {example}", True),
}
_EXAMPLES = {"openai": "http://HOST:PORT/v1", "anthropic": "http://HOST:PORT"}


class ApiModel(Model):
    """What the models of all services have in common. `url` is None for the provider's own service.

    Raises MachineError if the package is not installed.
    """

    def __init__(self, options: ModelOptions, key: Key, url: str | None, ledger: Ledger) -> None:
        self.name, self.server = options.model or "", server_of(url) if url else _SERVERS[self.provider]
        (self.address,) = without_secrets([url or ""])
        self._options, self._key, self._ledger = options, key, ledger
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._under_way: set[concurrent.futures.Future[Answer]] = set()
        try:
            package = importlib.import_module(self.provider)
        except ModuleNotFoundError as error:
            missing = error.name or self.provider
            raise MachineError(
                f"{missing} is not installed, and models are asked with it", "pip install 'profkit[llm]'"
            ) from error
        # They wait as long as the service asks for, else twice as long each time, 8 s at most.
        self._api = self._make_api(
            package,
            base_url=url,
            max_retries=options.retries,
            timeout=package.Timeout(options.timeout or _ANSWER_SECONDS, connect=30.0),
            http_client=package.DefaultAsyncHttpxClient(**http_options(url)),
        )

    @abstractmethod
    def _make_api(self, package: Any, **how: Any) -> Any:
        """Make the package's own client."""

    @abstractmethod
    async def _request(self, messages: Sequence[ChatMessage]) -> Any:
        """Send a conversation, and return the package's raw response."""

    @abstractmethod
    def _read(self, document: Any) -> Answer:
        """Extract the answer from the parsed response. Raises ValueError if there is none."""

    def ask(self, messages: Sequence[ChatMessage], report: Callable[[str], None] = lambda _: None) -> Answer:
        """Return its answer; see `Model`. If a request timed out, all the tokens reserved for it count as spent."""
        reserved = self._ledger.reserve(messages, self._options.answer_tokens, self._closed)
        spent = reserved
        try:
            answer = self._wait(self._ask(messages), report)
            if answer.input_tokens is not None and answer.output_tokens is not None:
                spent = answer.input_tokens, answer.output_tokens
            return answer
        except Cancelled:
            raise
        except Exception as error:
            if "APITimeoutError" not in _class_names(error):
                spent = (0, 0)
            raise self._failure(error) from None  # its causes hold requests with their keys
        finally:
            self._ledger.settle(reserved, spent)

    def close(self) -> None:
        """End the requests under way, whichever thread waits for them."""
        with self._lock:
            self._closed.set()
            under_way = list(self._under_way)
        for future in under_way:
            future.cancel()

    async def _ask(self, messages: Sequence[ChatMessage]) -> Answer:
        raw = await self._request(messages)
        document = raw.parse()
        if inspect.isawaitable(document):  # by the package's version
            document = await document
        return self._read(document)

    def _wait(self, request: Coroutine[Any, Any, Answer], report: Callable[[str], None]) -> Answer:
        """Wait for a request in the event loop. Raises what the request raises, and Cancelled after `close`."""
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
        """Convert an error to the failure that a user sees; return it unchanged if it is a defect of profkit."""
        name = next((name for name in _class_names(error) if name in _FAULTS), None)
        if name is None:
            return error
        sentence, fix, permanent = _FAULTS[name]
        words, status = str(error.__cause__ or error), getattr(error, "status_code", None)
        if status is not None:
            body = getattr(error, "body", None)
            inner = body.get("error", body) if isinstance(body, dict) else {}
            stated = inner.get("message") if isinstance(inner, dict) else None
            # Who refuses a key may say parts of it.
            words = str(status) if name == "AuthenticationError" else f"{status}: {stated or words}"
        values = {
            "server": self.server,
            "key": self._key.variable,
            "model": self.name,
            "provider": self.provider,
            "example": _EXAMPLES[self.provider],
        }
        words = shorten(" ".join(without_keys(words).split()), _LONGEST)
        message = sentence.format(**values) + (f" ({words})" if words else "")
        return ModelFailed(message, fix.format(**values) if fix else None, permanent=permanent)


def _class_names(error: Exception) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


@lru_cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """Return this process's loop, which runs in a thread that ends with it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="model requests", daemon=True).start()
    return loop


class OpenAIModel(ApiModel):
    """A model called with the package `openai`."""

    provider = "openai"

    def _make_api(self, package: Any, **how: Any) -> Any:
        return package.AsyncOpenAI(api_key=self._key.value, **how)

    async def _request(self, messages: Sequence[ChatMessage]) -> Any:
        # OpenAI's newer models know only the one name of it, and most other servers only the other.
        length = "max_tokens" if self.address else "max_completion_tokens"
        return await self._api.chat.completions.with_raw_response.create(
            model=self.name,
            messages=[{"role": message.role, "content": message.text} for message in messages],
            **{length: self._options.answer_tokens},
        )

    def _read(self, document: Any) -> Answer:
        if not getattr(document, "choices", None):
            raise ValueError("no choices")
        choice, usage = document.choices[0], document.usage
        refusal = getattr(choice.message, "refusal", None)
        stop: StopCause = "refused" if refusal else _STOPS.get(choice.finish_reason or "", "end")
        counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        return Answer(choice.message.content or refusal or "", stop, *counted)


class AnthropicModel(ApiModel):
    """A model called with the package `anthropic`."""

    provider = "anthropic"

    def _make_api(self, package: Any, **how: Any) -> Any:
        key = {"auth_token" if self._key.variable == BEARER else "api_key": self._key.value}
        return package.AsyncAnthropic(**key, **how)

    async def _request(self, messages: Sequence[ChatMessage]) -> Any:
        # What the system says is no message of the conversation here.
        fields: dict[str, Any] = {}
        if system := "\n\n".join(message.text for message in messages if message.role == "system"):
            fields["system"] = system
        return await self._api.messages.with_raw_response.create(
            model=self.name,
            max_tokens=self._options.answer_tokens,
            messages=[
                {"role": message.role, "content": message.text}
                for message in messages
                if message.role != "system"
            ],
            timeout=self._api.timeout,  # named, or the package refuses answers that could take longer than ten minutes
            **fields,
        )

    def _read(self, document: Any) -> Answer:
        if getattr(document, "content", None) is None:
            raise ValueError("no content")
        text = "".join(getattr(block, "text", None) or "" for block in document.content)
        usage = document.usage
        counted = getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)
        return Answer(text, _STOPS.get(document.stop_reason or "", "end"), *counted)

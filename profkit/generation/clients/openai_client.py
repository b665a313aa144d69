"""Models behind OpenAI's interface for chats, which vLLM, llama.cpp and most gateways speak, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from profkit.generation.clients.addresses import address_options, http_options
from profkit.generation.clients.api_client import ApiClient
from profkit.generation.clients.asking import Asking
from profkit.generation.clients.client import Message, StopCause
from profkit.generation.clients.faults import RequestFault, fault_of
from profkit.generation.clients.keys import Key
from profkit.generation.clients.packages import load_package
from profkit.generation.clients.pieces import AnswerPiece
from profkit.generation.clients.spending import Ledger

_STOPS: dict[str, StopCause] = {"length": "length", "content_filter": "refused"}
_BROKEN_OFF = ("error", "abort", "network_error")  # reasons of servers and gateways that gave up
# Some servers know only the one, and some models of OpenAI only the other.
_LENGTHS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class OpenAIClient(ApiClient):
    """A model that is asked with the package `openai`. `base_url` is None for OpenAI's own service."""

    def __init__(self, asking: Asking, key: Key, base_url: str | None, ledger: Ledger) -> None:
        super().__init__("openai", asking, ledger)
        self._api = open_api(key, base_url, asking)
        self._length = "max_completion_tokens" if base_url is None else "max_tokens"
        self._asks_for_usage = True

    @property
    def api(self) -> Any:
        """The package's own client."""
        return self._api

    def open_stream(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; once more, without or with another name, where the server refuses an option."""
        for _ in range(3):
            fields: dict[str, Any] = {self._length: self.asking.answer_tokens}
            if self.asking.temperature is not None:
                fields["temperature"] = self.asking.temperature
            if self._asks_for_usage:
                fields["stream_options"] = {"include_usage": True}
            try:
                return self._api.chat.completions.create(
                    model=self.asking.model,
                    messages=[{"role": message.role, "content": message.text} for message in messages],
                    stream=True,
                    **fields,
                )
            except Exception as error:
                fault = fault_of(error, was_there=True)
                if fault is None or not self._can_do_without(fault, fields):
                    raise
        raise RequestFault("request", "it refuses every way to ask")

    def _can_do_without(self, fault: RequestFault, fields: dict[str, Any]) -> bool:
        """Whether an option is refused that can be left out, or has another name; from then on it is."""
        if fault.status not in (400, 422):
            return False
        if "stream_options" in fields and re.search("stream_options|include_usage", fault.body):
            self._asks_for_usage = False
            return True
        unknown = rf"(unsupported|unknown|unrecogni[sz]ed|unexpected|extra|not (supported|permitted)).*{self._length}\b"
        if self._length in fields and re.search(
            f"{unknown}|{self._length}\\b.*not (supported|permitted)|use '{_LENGTHS[self._length]}'",
            fault.body,
            re.IGNORECASE | re.DOTALL,
        ):
            self._length = _LENGTHS[self._length]
            return True
        return False

    def pieces(self, stream: Any) -> Iterator[AnswerPiece]:
        """What its stream holds: the tokens come after the reason why the text ends."""
        for chunk in stream:
            usage = getattr(chunk, "usage", None)
            if usage is not None:
                yield _counted(usage.prompt_tokens, usage.completion_tokens)
            for choice in (chunk.choices or ())[:1]:
                delta = choice.delta
                if delta is not None:
                    thinking = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
                    refusal = getattr(delta, "refusal", None)
                    yield AnswerPiece(
                        delta.content or refusal or "", str(thinking or ""), "refused" if refusal else None
                    )
                if choice.finish_reason in _BROKEN_OFF:
                    raise RequestFault("cut", f"the server gave up ({choice.finish_reason})")
                if choice.finish_reason:
                    yield AnswerPiece(stop=_STOPS.get(choice.finish_reason, "end"))

    def pieces_of_whole(self, document: Any) -> Iterator[AnswerPiece]:
        """The same of an answer in one piece."""
        usage = document.get("usage") or {}
        yield _counted(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        for choice in document["choices"][:1]:
            message = choice["message"]
            text, refusal = message.get("content"), message.get("refusal")
            stop: StopCause = "refused" if refusal else _STOPS.get(choice.get("finish_reason") or "", "end")
            yield AnswerPiece(text or refusal or "", stop=stop)


def _counted(input_tokens: int | None, output_tokens: int | None) -> AnswerPiece:
    """Tokens as a server counts them; one that does not count says 0."""
    return AnswerPiece(input_tokens=input_tokens or None, output_tokens=output_tokens or None)


def open_api(key: Key, base_url: str | None, asking: Asking) -> Any:
    """The package's own client: it tries nothing again, follows no redirection, and uses no proxy on this machine."""
    openai = load_package("openai")
    return openai.OpenAI(
        api_key=key.value,
        **address_options(base_url),
        max_retries=0,
        timeout=openai.Timeout(asking.first_seconds + 5, connect=30.0),
        http_client=openai.DefaultHttpxClient(**http_options(base_url)),
    )

"""Models behind Anthropic's interface for messages, which some gateways speak, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from profkit.generation.clients.addresses import address_options, http_options
from profkit.generation.clients.api_client import ApiClient
from profkit.generation.clients.asking import Asking
from profkit.generation.clients.client import Message, StopCause
from profkit.generation.clients.keys import Key
from profkit.generation.clients.packages import load_package
from profkit.generation.clients.pieces import AnswerPiece
from profkit.generation.clients.spending import Ledger

_STOPS: dict[str, StopCause] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
BEARER = "ANTHROPIC_AUTH_TOKEN"  # is sent as `Authorization: Bearer`, as gateways want it
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicClient(ApiClient):
    """A model that is asked with the package `anthropic`. `base_url` is None for Anthropic's own service."""

    def __init__(self, asking: Asking, key: Key, base_url: str | None, ledger: Ledger) -> None:
        super().__init__("anthropic", asking, ledger)
        anthropic = load_package("anthropic")
        self._api = anthropic.Anthropic(
            **{"auth_token" if key.variable == BEARER else "api_key": key.value},
            **address_options(base_url),
            max_retries=0,
            timeout=anthropic.Timeout(asking.first_seconds + 5, connect=30.0),
            http_client=anthropic.DefaultHttpxClient(**http_options(base_url)),
        )

    @property
    def api(self) -> Any:
        """The package's own client."""
        return self._api

    def open_stream(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; what the system says is no message of it here."""
        fields: dict[str, Any] = {}
        if system := "\n\n".join(message.text for message in messages if message.role == "system"):
            fields["system"] = system
        if self.asking.temperature is not None:
            # Version 2 of the package has no parameter for it; the models that know it take it all the same
            fields["extra_body"] = {"temperature": self.asking.temperature}
        return self._api.messages.create(
            model=self.asking.model,
            max_tokens=self.asking.answer_tokens,
            messages=[
                {"role": message.role, "content": message.text}
                for message in messages
                if message.role != "system"
            ],
            stream=True,
            **fields,
        )

    def pieces(self, stream: Any) -> Iterator[AnswerPiece]:
        """What its stream holds: why the text ends counts only once the message is said to be over."""
        stop: StopCause = "end"
        for event in stream:
            if event.type == "message_start":
                usage = getattr(event.message, "usage", None)
                yield AnswerPiece(input_tokens=_input_tokens(_counts(usage)))
            elif event.type == "content_block_delta":
                delta = event.delta
                yield AnswerPiece(getattr(delta, "text", None) or "", getattr(delta, "thinking", None) or "")
            elif event.type == "message_delta":
                stop = _STOPS.get(event.delta.stop_reason or "", "end")
                counts = _counts(event.usage)
                yield AnswerPiece(
                    input_tokens=_input_tokens(counts), output_tokens=counts.get("output_tokens")
                )
            elif event.type == "message_stop":
                yield AnswerPiece(stop=stop, is_last=True)

    def pieces_of_whole(self, document: Any) -> Iterator[AnswerPiece]:
        """The same of an answer in one piece."""
        usage = document.get("usage") or {}
        yield AnswerPiece(input_tokens=_input_tokens(usage), output_tokens=usage.get("output_tokens"))
        texts = [block.get("text", "") for block in document["content"]]
        yield AnswerPiece(
            "".join(texts), stop=_STOPS.get(document.get("stop_reason") or "", "end"), is_last=True
        )


def _counts(usage: object) -> dict[str, Any]:
    """What the package's object says, also in fields that its version does not know."""
    return {name: getattr(usage, name, None) for name in (*_INPUT, "output_tokens")}


def _input_tokens(usage: Mapping[str, Any]) -> int | None:
    """All tokens that went in, with those that the service had stored or stores; None where it does not count them.

    Gateways say 0 at the beginning and the number at the end.
    """
    return sum(usage.get(name) or 0 for name in _INPUT) or None

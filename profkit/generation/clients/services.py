"""Models behind OpenAI's interface for chats, which vLLM, llama.cpp and most gateways speak too, and Anthropic's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profkit.generation.clients.addresses import address_options
from profkit.generation.clients.api_client import (
    ApiClient,
    Asking,
    NoAnswer,
    load_package,
    make_answer,
    package_options,
)
from profkit.generation.clients.client import Answer, Message, StopCause
from profkit.generation.clients.keys import Key
from profkit.generation.clients.spending import Ledger

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


class OpenAIClient(ApiClient):
    """A model that is asked with the package `openai`. `base_url` is None for OpenAI's own service."""

    def __init__(self, asking: Asking, key: Key, base_url: str | None, ledger: Ledger) -> None:
        super().__init__("openai", asking, ledger)
        self._package = load_package("openai")
        self.api = self._package.AsyncOpenAI(
            api_key=key.value, **address_options(base_url), **package_options(self._package, asking, base_url)
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
        return make_answer(choice.message.content or refusal or "", stop, counted, messages)

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
        package = load_package("anthropic")
        self.api = package.AsyncAnthropic(
            **{"auth_token" if key.variable == BEARER else "api_key": key.value},
            **address_options(base_url),
            **package_options(package, asking, base_url),
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
        return make_answer(
            text,
            _STOPS.get(document.stop_reason or "", "end"),
            (counted, getattr(document.usage, "output_tokens", None)),
            messages,
        )

"""An answer is put together from the pieces of its stream, with the tokens that it took until then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profkit.generation.clients.asking import CHARACTERS_PER_TOKEN, estimate_tokens
from profkit.generation.clients.client import Answer, Message, StopCause


@dataclass(frozen=True)
class AnswerPiece:
    """A part of a streamed answer: some text, or what became known of it."""

    text: str = ""
    thinking: str = ""  # that is no part of the answer
    stop: StopCause | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    is_last: bool = False  # the service said that it is over


class PartialAnswer:
    """What has come of an answer to a conversation."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._texts: list[str] = []
        self._input: int | None = None
        self._output: int | None = None
        self._thought = 0
        self.length = 0  # characters of its text
        self.stop: StopCause | None = None

    def add(self, piece: AnswerPiece) -> None:
        """One more piece; a number of tokens replaces the one before."""
        self._texts.append(piece.text)
        self.length += len(piece.text)
        self._thought += len(piece.thinking)
        self.stop = piece.stop or self.stop
        self._input = self._input if piece.input_tokens is None else piece.input_tokens
        self._output = self._output if piece.output_tokens is None else piece.output_tokens

    @property
    def progress(self) -> str:
        """How much there is; empty where nothing is."""
        if self.length:
            return f"{self.length:,} characters"
        return f"thinking, {self._thought:,} characters" if self._thought else ""

    def spent(self) -> tuple[int, int]:
        """Tokens in and out until now: what the service counted, or what the lengths say where that is more."""
        return self._input or estimate_tokens(self._messages), max(self._output or 0, self._came_out())

    def answer(self, stop: StopCause) -> Answer:
        """The whole answer. Tokens are estimated by the lengths where the service counts none."""
        return Answer(
            "".join(self._texts),
            stop,
            estimate_tokens(self._messages) if self._input is None else self._input,
            self._came_out() if self._output is None else self._output,
            estimated=self._input is None or self._output is None,
        )

    def _came_out(self) -> int:
        return math.ceil((self.length + self._thought) / CHARACTERS_PER_TOKEN)

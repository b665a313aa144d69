"""What a model is to the rest of profkit: messages in; a text, its tokens, why it ends, and seconds out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from profkit.core.errors import MachineError

Role = Literal["system", "user", "assistant"]
StopCause = Literal["end", "length", "refused"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True)
class Answer:
    """What a model answered. Tokens are None where nobody says and they cannot be estimated."""

    text: str
    stop: StopCause = "end"
    input_tokens: int | None = None
    output_tokens: int | None = None
    estimated: bool = False  # the tokens, by the length of the texts
    seconds: float = 0.0  # wall time, with what was waited for
    retries: int = 0
    stored: bool = False  # it was there already, and nobody was asked


class ModelClient(Protocol):
    """A model that can be asked, by several threads at once."""

    @property
    def provider(self) -> str:
        """openai, anthropic or command."""

    @property
    def model(self) -> str:
        """The name of the model; of a command its program."""

    def ask(self, messages: Sequence[Message], report: Callable[[str], None] = lambda _: None) -> Answer:
        """Its answer to a conversation, of which the last message is a user's.

        `report` gets how it goes, a few words at a time: `no answer for 20 s`. Raises
        ModelFailed where it cannot be asked, or does not answer after all retries; Cancelled after `close`.
        """

    def close(self) -> None:
        """Ends what is being asked, by whichever thread."""


class ModelFailed(MachineError):
    """A model cannot be asked, or does not answer. `permanent`: nor would it answer another request."""

    def __init__(self, message: str, fix: str | None = None, *, permanent: bool = True) -> None:
        super().__init__(message, fix)
        self.permanent = permanent


class BudgetSpent(Exception):
    """Another request could cost more than is left of the tokens or the money."""


class Cancelled(Exception):
    """The client was closed while it was asked."""

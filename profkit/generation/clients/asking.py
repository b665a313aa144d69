"""How a model is asked: which one, for how long an answer, with how much patience; and how long a conversation is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from profkit.generation.clients.client import Message

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Patience:
    """How often a request is tried, and how long after its first fault another try may begin; times in seconds."""

    tries: int = 8
    seconds: float = 600.0
    first_wait: float = 1.0  # doubled each time, where the service asks for nothing
    longest_wait: float = 60.0


@dataclass(frozen=True)
class Asking:
    """How a model is asked. `temperature` is the service's own where it is None.

    `first_seconds` may pass until the first piece of an answer comes, since a model may think and a server load it;
    `seconds` between two pieces.
    """

    model: str
    server: str  # host and port
    key_variable: str
    answer_tokens: int = 16384
    temperature: float | None = None
    first_seconds: float = 600.0
    seconds: float = 120.0
    patience: Patience = field(default_factory=Patience)


def estimate_tokens(messages: Sequence[Message]) -> int:
    """How many tokens a conversation has, by its length."""
    return math.ceil(sum(len(message.text) for message in messages) / CHARACTERS_PER_TOKEN)

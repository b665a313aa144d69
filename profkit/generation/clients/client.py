"""What a model is to the rest of profkit: messages in; a text, its tokens, why it ends, and seconds out.

Around it: a ledger that refuses a request which could pass a limit, and answers that are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from profkit.core.errors import MachineError
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import GenerationLimits
from profkit.core.whole_files import replacing

VERSION = 1  # of the files of kept answers
Role = Literal["system", "user", "assistant"]
StopCause = Literal["end", "length", "refused"]
Tokens: TypeAlias = tuple[int, int]  # that go in, and that come out
_FEWEST_CHARACTERS = 3  # of a token: what is set aside is rather too much than too little
_LOOK_SECONDS = 0.2


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


class Ledger:
    """Tokens and cost of all requests; used by several threads. `before` is what earlier sessions took, in and out."""

    def __init__(
        self,
        limits: GenerationLimits = GenerationLimits(),  # noqa: B008 - frozen
        before: Tokens = (0, 0),
    ) -> None:
        self.limits, self.spent = limits, before  # of requests that failed, too
        self._reserved: list[Tokens] = []
        self._changed = threading.Condition()

    def reserve(self, messages: Sequence[Message], answer_tokens: int, closed: threading.Event) -> Tokens:
        """Set aside what a request may take; waits where only what others have set aside is in its way.

        Raises BudgetSpent where it could pass a limit, Cancelled once `closed` is set.
        """
        characters = sum(len(message.text) for message in messages)
        wanted = math.ceil(characters / _FEWEST_CHARACTERS), answer_tokens
        with self._changed:
            while True:
                if closed.is_set():
                    raise Cancelled
                if passed := self._passed([wanted]):
                    raise BudgetSpent(passed)
                if not self._passed([*self._reserved, wanted]):
                    self._reserved.append(wanted)
                    return wanted
                self._changed.wait(_LOOK_SECONDS)

    def settle(self, reserved: Tokens, took: Tokens) -> None:
        """Replace what was set aside by what the request took."""
        with self._changed:
            self._reserved.remove(reserved)
            self.spent = self.spent[0] + took[0], self.spent[1] + took[1]
            self._changed.notify_all()

    def _passed(self, more: Sequence[Tokens]) -> str:
        """The limit that could be passed with these on top of what is spent, in words; empty where none could."""
        limits, spent = self.limits, sum(self.spent)
        wanted = sum(map(sum, more))
        if limits.tokens is not None and spent + wanted > limits.tokens:
            return f"{spent:,} of {limits.tokens:,} tokens are spent, and a request may take {wanted:,}"
        before, then = cost_of(limits.prices, self.spent), cost_of(limits.prices, self.spent, *more)
        if limits.cost is not None and before is not None and then is not None and then > limits.cost:
            return f"{before:.4g} of {limits.cost:.4g} are spent, and a request may take {then - before:.4g}"
        return ""


def cost_of(prices: tuple[float, float] | None, *requests: Tokens) -> float | None:
    """In the unit of the prices of a million tokens; None without prices. Discounts of a service are not known here."""
    if prices is None:
        return None
    return sum(into * prices[0] + out * prices[1] for into, out in requests) / 1e6


class StoredAnswers:
    """A client around another one that keeps its answers in a folder, one file each.

    An answer is known by the model, where it is served, how it is asked, and the whole conversation. Who asks the same
    several times gets several answers, and after an interruption the same ones in the same order.
    """

    def __init__(self, client: ModelClient, folder: Path, asked_with: Mapping[str, object]) -> None:
        self._client, self._folder, self._asked_with = client, folder, dict(asked_with)
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def provider(self) -> str:
        """Of the client that asks."""
        return self._client.provider

    @property
    def model(self) -> str:
        """Of the client that asks."""
        return self._client.model

    def ask(self, messages: Sequence[Message], report: Callable[[str], None] = lambda _: None) -> Answer:
        """The answer that is there, or the one that the model gives; see `ModelClient`."""
        path = self._path(messages)
        stored = _read(path)
        if stored is not None:
            report("stored answer")
            return stored
        answer = self._client.ask(messages, report)
        with contextlib.suppress(OSError):  # a full disk costs this answer's second use, and not the answer
            self._folder.mkdir(parents=True, exist_ok=True)
            document = {"version": VERSION, "asked_with": self._asked_with, "answer": asdict(answer)}
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return answer

    def close(self) -> None:
        """Ends what is being asked, by whichever thread."""
        self._client.close()

    def _path(self, messages: Sequence[Message]) -> Path:
        asked = [self.provider, self.model, self._asked_with, [[m.role, m.text] for m in messages]]
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        with self._lock:
            self._asked[digest] += 1
            number = self._asked[digest]
        return self._folder / (f"{digest}.json" if number == 1 else f"{digest}-{number}.json")


def _read(path: Path) -> Answer | None:
    """A stored answer, which took no time; None where there is none, or its file is damaged."""
    try:
        document = json.loads(read_bounded_text(path))
        answer = Answer(**document["answer"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = document.get("version") == VERSION and isinstance(answer.text, str)
    return replace(answer, seconds=0.0, retries=0, stored=True) if whole else None

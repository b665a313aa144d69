"""The interface of a model: messages in; a text, its tokens and the reason for its end out.

Also a ledger, which refuses a request that could exceed a limit; and the model that is a program of the
user's instead of an interface: `--command "my-agent {prompt} {output}"`.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from profkit.core.errors import Interrupted, MachineError, UsageError
from profkit.core.files.regular import read_start
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.formatting import format_quantity, shorten
from profkit.core.process import ProcessOutcome, run
from profkit.core.types import GenerationLimits
from profkit.generation.keys import command_keys, without_keys

Role = Literal["system", "user", "assistant"]
StopCause = Literal["end", "length", "refused"]
Tokens: TypeAlias = tuple[int, int]  # that go in, and that come out
_FEWEST_CHARACTERS = 3  # of a token: what is set aside is rather too much than too little
_LOOK_SECONDS = 0.2
_RUN_SECONDS = 1800.0
MAX_BYTES = 16 * 1024 * 1024  # of an answer of a program
_LAST_LINES, _LONGEST = 5, 400  # of what a program says of its failure


@dataclass(frozen=True)
class ModelOptions:
    """Which model is asked, how, and for how much.

    None is what the environment says, or no limit. `timeout`: seconds for an answer. `retries` of a request at
    most. `spent` are the tokens, in and out, of earlier sessions.
    """

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None  # the variable that holds the key
    command: str | None = None
    answer_tokens: int = 16384
    timeout: float | None = None
    retries: int = 8
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    spent: Tokens = (0, 0)


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True)
class Answer:
    """A model's answer. Tokens are None if nobody reports them."""

    text: str
    stop: StopCause = "end"
    input_tokens: int | None = None
    output_tokens: int | None = None


class Model(ABC):
    """A model that can be asked, by several threads at once.

    `provider` is openai, anthropic or command; `name` of a command its program. `server` is its host and port,
    empty for a command; `address` what to store of it, empty for a provider's own.
    """

    provider: str
    name: str
    server = ""
    address = ""

    @abstractmethod
    def ask(self, messages: Sequence[ChatMessage], report: Callable[[str], None] = lambda _: None) -> Answer:
        """Return its answer to a conversation, whose last message is a user's.

        `report` gets the progress, a few words at a time: `no answer for 20 s`. Raises ModelFailed if it cannot be
        asked, or does not answer after all retries; Cancelled after `close`.
        """

    @abstractmethod
    def close(self) -> None:
        """End the requests under way, whichever thread waits for them."""


class ModelFailed(MachineError):
    """A model cannot be asked, or does not answer. `permanent`: nor would it answer another request."""

    def __init__(self, message: str, fix: str | None = None, *, permanent: bool = True) -> None:
        super().__init__(message, fix)
        self.permanent = permanent


class BudgetSpent(Exception):
    """Another request could take more tokens than are left."""


class Cancelled(Exception):
    """The model was closed while it was asked."""


class Ledger:
    """Tokens of all requests; used by several threads. `before` is what earlier sessions took, in and out."""

    def __init__(
        self,
        limits: GenerationLimits = GenerationLimits(),  # noqa: B008 - frozen
        before: Tokens = (0, 0),
    ) -> None:
        self.limits, self.spent = limits, before  # of requests that failed, too
        self._reserved: list[Tokens] = []
        self._changed = threading.Condition()

    def reserve(self, messages: Sequence[ChatMessage], answer_tokens: int, closed: threading.Event) -> Tokens:
        """Reserve what a request may take; wait if only other reservations are in its way.

        Raises BudgetSpent if it could exceed the limit, Cancelled once `closed` is set.
        """
        characters = sum(len(message.text) for message in messages)
        wanted = math.ceil(characters / _FEWEST_CHARACTERS), answer_tokens
        with self._changed:
            while True:
                if closed.is_set():
                    raise Cancelled
                if not self._fits([wanted]):
                    raise BudgetSpent
                if self._fits([*self._reserved, wanted]):
                    self._reserved.append(wanted)
                    return wanted
                self._changed.wait(_LOOK_SECONDS)

    def settle(self, reserved: Tokens, took: Tokens) -> None:
        """Replace a reservation by what the request took."""
        with self._changed:
            self._reserved.remove(reserved)
            self.spent = self.spent[0] + took[0], self.spent[1] + took[1]
            self._changed.notify_all()

    def _fits(self, more: Sequence[Tokens]) -> bool:
        """Return whether these, on top of what is spent, stay within the limit."""
        most = self.limits.tokens
        return most is None or sum(map(sum, [self.spent, *more])) <= most


def words_of(command: str) -> tuple[str, ...]:
    """Split a command into words without a shell. Raises UsageError if it lacks {prompt}, or quotes are open."""
    example = '--command "my-agent {prompt} {output}"'
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--command cannot be split into words: {error}".lower(), example) from error
    if not any("{prompt}" in word for word in words[1:]):
        raise UsageError(
            "--command needs {prompt}, which is replaced by the path of the prompt's file", example
        )
    return words


class ProgramModel(Model):
    """A program that answers: each conversation is one run in the current directory, with `command_keys`.

    {prompt} is the path of a file with the conversation, {output} the path of one that the program writes;
    without {output} in the command its standard output counts. A program that writes more than `MAX_BYTES` is
    ended at once, and so is one that takes too long. Nobody reports how many tokens it takes.
    """

    provider = "command"

    def __init__(self, command: str, seconds: float | None = None, key_env: str | None = None) -> None:
        self.words = words_of(command)
        self.name = Path(self.words[0]).name
        self._seconds, self._key_env = seconds or _RUN_SECONDS, key_env
        self._closed = threading.Event()

    def ask(self, messages: Sequence[ChatMessage], report: Callable[[str], None] = lambda _: None) -> Answer:
        """Run the program and return what it writes; see `Model`.

        After a failure, another conversation may succeed.
        """
        with TemporaryFolder() as folder:
            prompt, output, printed = (Path(folder, name) for name in ("prompt.md", "kernel.py", "printed"))
            prompt.write_text(conversation_text(messages), encoding="utf-8")
            words = [
                word.replace("{prompt}", str(prompt)).replace("{output}", str(output)) for word in self.words
            ]
            writes = any("{output}" in word for word in self.words)
            answer = output if writes else printed

            def look(seconds: float) -> None:
                _check_size(answer)
                report(f"runs for {format_quantity(seconds, 's')}")

            outcome = self._run(words, printed, look)
            text = _read(answer) if outcome.ok else ""
            if text.strip():
                return Answer(text)
            what = "wrote nothing to {output}" if writes else "printed nothing"
            ending = what if outcome.ok else outcome.ending()
            lines = [line.strip() for line in outcome.output_tail.splitlines() if line.strip()]
            last = shorten(without_keys(" / ".join(lines[-_LAST_LINES:])), _LONGEST)
            raise ModelFailed(f"{self.name} {ending}{': ' if last else ''}{last}", permanent=False)

    def close(self) -> None:
        """End all its runs, with what they started."""
        self._closed.set()

    def _run(self, words: Sequence[str], printed: Path, look: Callable[[float], None]) -> ProcessOutcome:
        try:
            return run(
                words,
                env=command_keys(self._key_env),
                timeout=self._seconds,
                tick=look,
                cancel=self._closed,
                printed=printed,
            )
        except Interrupted as error:
            raise Cancelled from error
        except UsageError as error:
            raise ModelFailed(f"--command {without_keys(error.message)}", error.fix) from None


def conversation_text(messages: Sequence[ChatMessage]) -> str:
    """Join a conversation to one text; a single message stays as it is."""
    if len(messages) == 1:
        return messages[0].text
    return "\n\n".join(f"# {message.role.capitalize()}\n\n{message.text}" for message in messages) + "\n"


def _read(path: Path) -> str:
    _check_size(path)
    try:
        return read_start(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _check_size(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size > MAX_BYTES:
            raise ModelFailed(
                f"an answer of more than {MAX_BYTES >> 20} MiB is not a kernel", permanent=False
            )

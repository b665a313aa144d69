"""A program of the user's instead of a model's interface: `--command "my-agent {prompt} {output}"`."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from profkit.core.errors import Interrupted, UsageError
from profkit.core.files.regular import read_start
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.formatting import format_quantity, shorten
from profkit.core.process import ProcessOutcome, run
from profkit.generation.clients.client import Answer, Cancelled, Message, ModelFailed
from profkit.generation.clients.keys import command_keys, without_keys

MOST_BYTES = 16 * 1024 * 1024  # of an answer
_LAST_LINES, _LONGEST = 5, 400  # of what it says of its failure


def words_of(command: str) -> tuple[str, ...]:
    """The words of a command, which no shell sees. Raises UsageError for one without {prompt}, or with open quotes."""
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


class CommandClient:
    """Each conversation is one run of the program, in the current directory, with `command_keys`.

    {prompt} is the path of a file with the conversation, {output} the path of one that the program writes; without
    {output} in the command its standard output counts. How many tokens it takes nobody says.
    """

    def __init__(self, command: str, seconds: float = 1800.0, key_env: str | None = None) -> None:
        self.words = words_of(command)
        self._seconds, self._key_env = seconds, key_env
        self._closed = threading.Event()

    @property
    def provider(self) -> str:
        """Always command."""
        return "command"

    @property
    def model(self) -> str:
        """The name of the program."""
        return Path(self.words[0]).name

    def ask(self, messages: Sequence[Message], report: Callable[[str], None] = lambda _: None) -> Answer:
        """What it writes; see `ModelClient`. A program that fails may do better with another conversation."""
        with TemporaryFolder() as folder:
            prompt, output, printed = (Path(folder, name) for name in ("prompt.md", "kernel.py", "printed"))
            prompt.write_text(conversation_text(messages), encoding="utf-8")
            places = {"{prompt}": str(prompt), "{output}": str(output)}
            writes = any("{output}" in word for word in self.words)
            start = time.monotonic()
            outcome = self._run([_replace(word, places) for word in self.words], printed, start, report)
            if not outcome.ok:
                raise ModelFailed(f"{self.model} {outcome.ending()}{_last_lines(outcome)}", permanent=False)
            text = _read(output if writes else printed)
            if not text.strip():
                what = "wrote nothing to {output}" if writes else "printed nothing"
                raise ModelFailed(f"{self.model} {what}{_last_lines(outcome)}", permanent=False)
            return Answer(text, seconds=time.monotonic() - start)

    def close(self) -> None:
        """Ends all its runs, with what they started."""
        self._closed.set()

    def _run(
        self, words: Sequence[str], printed: Path, start: float, report: Callable[[str], None]
    ) -> ProcessOutcome:
        def tick(_: float) -> None:
            report(f"runs for {format_quantity(time.monotonic() - start, 's')}")

        try:
            return run(
                words,
                env=command_keys(self._key_env),
                timeout=self._seconds,
                tick=tick,
                cancel=self._closed,
                printed=printed,
            )
        except Interrupted as error:
            raise Cancelled from error
        except UsageError as error:
            raise ModelFailed(f"--command {without_keys(error.message)}", error.fix) from None


def conversation_text(messages: Sequence[Message]) -> str:
    """A conversation as one text; one message alone as it is."""
    if len(messages) == 1:
        return messages[0].text
    return "\n\n".join(f"# {message.role.capitalize()}\n\n{message.text}" for message in messages) + "\n"


def _replace(word: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        word = word.replace(name, path)
    return word


def _read(path: Path) -> str:
    try:
        content = read_start(path, MOST_BYTES + 1)
    except OSError:
        return ""
    if len(content) > MOST_BYTES:
        raise ModelFailed(f"an answer of more than {MOST_BYTES >> 20} MiB is no kernel", permanent=False)
    return content.decode("utf-8", "replace")


def _last_lines(outcome: ProcessOutcome) -> str:
    lines = [line.strip() for line in outcome.output_tail.splitlines() if line.strip()][-_LAST_LINES:]
    return f": {shorten(without_keys(' / '.join(lines)), _LONGEST)}" if lines else ""

"""A model behind an HTTP interface: a conversation is streamed, watched, tried again, and ended from elsewhere.

Each try reads its stream on a thread of its own: whoever asks is never held by a socket, so that silence has its limit
and `close` works at once, also while a name is looked up or a server thinks.
"""

from __future__ import annotations

import contextlib
import math
import queue
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from profkit.generation.clients.asking import CHARACTERS_PER_TOKEN, Asking, estimate_tokens
from profkit.generation.clients.client import Answer, Cancelled, Message, ModelFailed, StopCause
from profkit.generation.clients.faults import RequestFault, fault_of
from profkit.generation.clients.remedies import failure_of
from profkit.generation.clients.retries import GaveUp, ask_again

_REPORT_SECONDS = 0.2


@dataclass(frozen=True)
class Piece:
    """A part of a streamed answer: some text, or what became known of it."""

    text: str = ""
    thinking: str = ""  # that is no part of the answer
    stop: StopCause | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    is_last: bool = False  # the service said that it is over


class ApiClient(ABC):
    """What the clients of all services have in common."""

    def __init__(self, provider: str, asking: Asking) -> None:
        self._provider, self.asking = provider, asking
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._under_way: set[_Reading] = set()
        self._was_there = False

    @property
    def provider(self) -> str:
        """openai or anthropic."""
        return self._provider

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.asking.model

    def ask(self, messages: Sequence[Message], report: Callable[[str], None] = lambda _: None) -> Answer:
        """Its answer; see `ModelClient`. Tokens hold those of tries that were cut off, too."""
        try:
            return ask_again(
                lambda: self._ask_once(messages, report), self.asking.patience, self._closed, report
            )
        except GaveUp as error:
            failure: ModelFailed = failure_of(error.fault, error.tries, self._provider, self.asking)
            failure.spent = error.spent
            raise failure from None  # its causes hold requests with their keys

    def close(self) -> None:
        """Ends what is being asked, by whichever thread."""
        self._closed.set()
        with self._lock:
            under_way = list(self._under_way)
        for reading in under_way:
            reading.end()

    @abstractmethod
    def open_stream(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; a stream of the package, with the `response` that it reads."""

    @abstractmethod
    def pieces(self, stream: Any) -> Iterator[Piece]:
        """What a stream holds."""

    def _ask_once(self, messages: Sequence[Message], report: Callable[[str], None]) -> Answer:
        reading = _Reading(self, messages)
        with self._lock:
            self._under_way.add(reading)
        try:
            if self._closed.is_set():
                raise Cancelled
            reading.start()
            return self._collect(messages, reading, report)
        finally:
            reading.end()
            with self._lock:
                self._under_way.discard(reading)

    def _collect(
        self, messages: Sequence[Message], reading: _Reading, report: Callable[[str], None]
    ) -> Answer:
        """The answer out of the pieces; raises RequestFault, or Cancelled, with what it cost until then."""
        texts: list[str] = []
        stop: StopCause | None = None
        went_in: int | None = None
        came_out: int | None = None
        length = thought = 0
        reported = 0.0
        limit = self.asking.first_seconds
        while True:
            piece = reading.next(limit)
            if isinstance(piece, Piece):
                self._was_there = True
                limit = self.asking.seconds
                texts.append(piece.text)
                length, thought = length + len(piece.text), thought + len(piece.thinking)
                stop = piece.stop or stop
                went_in = went_in if piece.input_tokens is None else piece.input_tokens
                came_out = came_out if piece.output_tokens is None else piece.output_tokens
                if length + thought and time.monotonic() - reported > _REPORT_SECONDS:
                    reported = time.monotonic()
                    report(f"{length:,} characters" if length else f"thinking, {thought:,} characters")
                if not piece.is_last:
                    continue
            text = "".join(texts)
            guess_in, guess_out = (
                estimate_tokens(messages),
                math.ceil((length + thought) / CHARACTERS_PER_TOKEN),
            )
            if (piece is None or isinstance(piece, Piece)) and stop is not None:
                known = went_in is not None and came_out is not None
                return Answer(
                    text,
                    stop,
                    guess_in if went_in is None else went_in,
                    guess_out if came_out is None else came_out,
                    estimated=not known,
                )
            ending = RequestFault("cut", f"after {length:,} characters") if piece is None else piece
            if reading.was_open and isinstance(ending, RequestFault) and ending.kind == "connection":
                ending.kind = "cut"
            if reading.was_open and isinstance(ending, RequestFault):
                ending.input_tokens, ending.output_tokens = went_in or guess_in, max(came_out or 0, guess_out)
            elif reading.was_open and isinstance(ending, Cancelled):
                ending.spent = went_in or guess_in, max(came_out or 0, guess_out)
            assert not isinstance(ending, Piece)
            raise ending

    def read(self, messages: Sequence[Message]) -> Iterator[Any]:
        """Its stream, and then its pieces; raises RequestFault. For the thread that reads."""
        try:
            stream = self.open_stream(messages)
            yield stream
            yield from self.pieces(stream)
        except Exception as error:
            fault = fault_of(error, was_there=self._was_there)
            if fault is None:
                raise
            raise fault from None


class _Reading:
    """One request and its stream, read by a thread of its own."""

    def __init__(self, client: ApiClient, messages: Sequence[Message]) -> None:
        self._client, self._messages = client, messages
        self._pieces: queue.SimpleQueue[Piece | BaseException | None] = queue.SimpleQueue()
        self._stream: Any = None
        self._ended = threading.Event()
        self.was_open = False  # the service has taken the request

    def start(self) -> None:
        # It ends with the process: a read that nobody waits for any more must hold nothing up
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, seconds: float) -> Piece | BaseException | None:
        """The next piece, None at the end of the stream, or what ended it; a fault after `seconds` of silence."""
        try:
            return self._pieces.get(timeout=seconds)
        except queue.Empty:
            return RequestFault("silence", f"nothing came for {seconds:.0f} s")

    def end(self) -> None:
        """End it; the thread that waits for a piece gets Cancelled."""
        self._ended.set()
        self._pieces.put(Cancelled())
        self._hang_up()

    def _read(self) -> None:
        try:
            for piece in self._client.read(self._messages):
                if self._stream is None:
                    self._stream, self.was_open = piece, True
                else:
                    self._pieces.put(piece)
                if self._ended.is_set():
                    break
            self._pieces.put(None)
        except BaseException as error:
            self._pieces.put(error)
        finally:
            if self._stream is not None:
                with contextlib.suppress(Exception):
                    self._stream.close()

    def _hang_up(self) -> None:
        """Wake a thread that reads from the socket: to close it would not, and a service that is not left goes on."""
        with contextlib.suppress(Exception):
            network = self._stream.response.extensions["network_stream"]
            network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

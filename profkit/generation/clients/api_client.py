"""A model behind an HTTP interface: a conversation is streamed, watched, tried again, and ended from elsewhere.

Each try reads its stream on a thread of its own: whoever asks is never held by a socket, so that silence has its limit
and `close` works at once, also while a name is looked up or a server thinks.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from profkit.generation.clients.asking import Asking
from profkit.generation.clients.client import Answer, Cancelled, Message, ModelFailed
from profkit.generation.clients.faults import RequestFault, fault_of
from profkit.generation.clients.pieces import AnswerPiece, PartialAnswer
from profkit.generation.clients.remedies import failure_of
from profkit.generation.clients.retries import GaveUp, ask_again
from profkit.generation.clients.spending import Ledger

_REPORT_SECONDS = 0.2
_LIST_SECONDS = 20.0


class ApiClient(ABC):
    """What the clients of all services have in common."""

    def __init__(self, provider: str, asking: Asking, ledger: Ledger) -> None:
        self._provider, self.asking, self._ledger = provider, asking, ledger
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

    def list_models(self) -> list[str]:
        """The names that the service lists, its newest first where it says so. Raises ModelFailed."""
        try:
            return [str(model.id) for model in self.api.models.list(timeout=_LIST_SECONDS).data]
        except Exception as error:
            fault = fault_of(error, was_there=False)
            if fault is None:
                raise
            raise failure_of(fault, 1, self._provider, self.asking) from None

    @property
    @abstractmethod
    def api(self) -> Any:
        """The package's own client."""

    @abstractmethod
    def open_stream(self, messages: Sequence[Message]) -> Any:
        """Send a conversation; a stream of the package, with the `response` that it reads."""

    @abstractmethod
    def pieces(self, stream: Any) -> Iterator[AnswerPiece]:
        """What a stream holds."""

    @abstractmethod
    def pieces_of_whole(self, document: Any) -> Iterator[AnswerPiece]:
        """What the answer of a server holds that streams none, though it is asked to."""

    def _ask_once(self, messages: Sequence[Message], report: Callable[[str], None]) -> Answer:
        reserved = self._ledger.reserve(messages, self.asking.answer_tokens, self._closed)
        reading, partial = _Reading(self, messages), PartialAnswer(messages)
        answer: Answer | None = None
        with self._lock:
            self._under_way.add(reading)
        try:
            if self._closed.is_set():
                raise Cancelled
            reading.start()
            answer = self._collect(partial, reading, report)
            return answer
        except (RequestFault, Cancelled) as ending:
            ending.spent = partial.spent() if reading.was_open else (0, 0)
            raise
        finally:
            if answer is not None:
                spent = answer.input_tokens or 0, answer.output_tokens or 0
            else:
                spent = partial.spent() if reading.was_open else (0, 0)
                reading.end()
            self._ledger.settle(reserved, *spent)
            with self._lock:
                self._under_way.discard(reading)

    def _collect(self, partial: PartialAnswer, reading: _Reading, report: Callable[[str], None]) -> Answer:
        """The answer out of the pieces; raises what ends it before its time."""
        limit, reported = self.asking.first_seconds, 0.0
        while True:
            piece = reading.next(limit)
            if isinstance(piece, AnswerPiece):
                self._was_there, limit = True, self.asking.seconds
                partial.add(piece)
                if partial.progress and time.monotonic() - reported > _REPORT_SECONDS:
                    reported = time.monotonic()
                    report(partial.progress)
                if not piece.is_last:
                    continue
            elif isinstance(piece, RequestFault) and piece.kind == "connection" and reading.was_open:
                piece.kind = "cut"
            if isinstance(piece, BaseException):
                raise piece
            if partial.stop is None:
                raise RequestFault("cut", f"after {partial.length:,} characters")
            return partial.answer(partial.stop)

    def read(self, messages: Sequence[Message]) -> Iterator[Any]:
        """Its stream, and then its pieces; raises RequestFault. For the thread that reads."""
        try:
            stream = self.open_stream(messages)
            yield stream
            if stream.response.headers.get("content-type", "").startswith("application/json"):
                yield from self.pieces_of_whole(json.loads(stream.response.read()))
            else:
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
        self._pieces: queue.SimpleQueue[AnswerPiece | BaseException | None] = queue.SimpleQueue()
        self._stream: Any = None
        self._ended = threading.Event()
        self._is_read = False
        self.was_open = False  # the service has taken the request

    def start(self) -> None:
        # It ends with the process: a read that nobody waits for any more must hold nothing up
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, seconds: float) -> AnswerPiece | BaseException | None:
        """The next piece, None at the end of the stream, or what ended it; a fault after `seconds` of silence."""
        try:
            return self._pieces.get(timeout=seconds)
        except queue.Empty:
            return RequestFault("silence", f"nothing came for {seconds:.0f} s")

    def end(self) -> None:
        """End it before its time; the thread that waits for a piece gets Cancelled."""
        self._ended.set()
        self._pieces.put(Cancelled())
        if not self._is_read:  # else its connection may be another request's by now
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
            self._is_read = True
            self._pieces.put(None)
        except BaseException as error:
            self._is_read = True
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

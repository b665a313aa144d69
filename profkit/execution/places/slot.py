"""This side of a slot: a worker of a pool whose process runs at another place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from profkit.core.types import Json
from profkit.execution.child import WorkerEnded
from profkit.execution.job import Batch, JobStatus
from profkit.execution.places.connection import Connection, PlaceLost

LONGEST_NOTE = 500  # characters


class PlaceWorker:
    """A worker behind a connection that was started with `relay`. What it raises tells apart who is gone.

    WorkerEnded: its process there; the slot goes on. PlaceLost: the connection; the slot is gone. `note` gets what it
    has to say meanwhile.
    """

    def __init__(self, connection: Connection, note: Callable[[str], None] = lambda _: None) -> None:
        self._connection, self._note = connection, note
        self.running = False

    @property
    def title(self) -> str:
        """Its place."""
        return self._connection.place.title

    @property
    def host(self) -> str:
        """What tells its machine from others, by whatever names and containers it is reached."""
        return str(self._connection.hello.get("host") or self.title)

    @property
    def was_lost(self) -> bool:
        """Whether its place went away: it may come back."""
        return self._connection.ended

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """As WorkerClient does. Raises also PlaceLost."""
        self._connection.ask({"ask": "open", "settings": dict(settings), "timeout": timeout})
        about: Json = self._answer("opened").get("about")
        self.running = True
        return about

    def run(self, batch: Batch, timeout: float) -> Iterator[dict[str, Any]]:
        """As WorkerClient does. Raises also PlaceLost."""
        jobs = [[job.key, job.data] for job in batch.jobs]
        self._connection.ask({"ask": "run", "shared": batch.shared, "jobs": jobs, "timeout": timeout})
        while (answer := self._answer("said", "done"))["event"] != "done":
            message = answer.get("message")
            if not isinstance(message, dict) or not isinstance(message.get("event"), str):
                raise PlaceLost(f"{self.title} said what is no answer")
            yield message

    def finish(self) -> None:
        """No more work."""
        self.running = False
        self._connection.finish()

    def kill(self) -> None:
        """Its process has ended already, or answered what it was not asked: then the slot is gone."""
        if self.running:
            self.close()

    def close(self) -> None:
        """No worker any more, and none after it."""
        self.running = False
        self._connection.close()

    def _answer(self, *expected: str) -> dict[str, Any]:
        while (answer := self._connection.answer())["event"] == "progress":
            if isinstance(words := answer.get("words"), list) and answer.get("call") == "note":
                self._note(f"{self.title}: {' '.join(map(str, words))[:LONGEST_NOTE]}")
        if answer["event"] == "ended":
            self.running = False
            known = answer.get("status") in {status.value for status in JobStatus}
            status = JobStatus(answer["status"]) if known else JobStatus.crash
            raise WorkerEnded(status, str(answer.get("reason"))[:2000])
        if answer["event"] not in expected:
            raise PlaceLost(f"{self.title} said {answer['event']!r}, which was not asked")
        return answer

"""This side of a slot: a worker of a pool whose process runs at another place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any

from profkit.core.errors import UnreadableReport
from profkit.core.types import Json
from profkit.execution.child import WorkerEnded
from profkit.execution.job import Batch, JobStatus
from profkit.execution.places.connection import Connection, PlaceLost
from profkit.execution.places.place import quote_lines

LONGEST_NOTE = 500  # characters


def believe_all(about: Json, first: bool, title: str) -> Json:  # noqa: ARG001
    """Where nobody reads what a worker says of itself."""
    return about


class PlaceWorker:
    """A worker behind a connection that was started with `relay`. What it raises tells apart who is gone.

    WorkerEnded: its process there; the slot goes on. PlaceLost: the connection; the slot is gone. `note` gets what it
    has to say meanwhile. `check` gets what it says of itself, whether it is the first, and its title, and gives what
    is to be believed of it. It raises UnreadableReport for what none of ours would say.
    """

    def __init__(
        self,
        connection: Connection,
        note: Callable[[str], None] = lambda _: None,
        check: Callable[[Json, bool, str], Json] = believe_all,
    ) -> None:
        self._connection, self._note, self._check = connection, note, check
        self.running = self._refused = False

    @property
    def title(self) -> str:
        """Its place."""
        return self._connection.place.title

    @property
    def host(self) -> str:
        """What tells its machine from others, by whatever names and containers it is reached."""
        return self._connection.hello.host or self.title

    @property
    def was_lost(self) -> bool:
        """Whether its place went away: it may come back."""
        return self._connection.ended

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """As WorkerClient does. Raises also PlaceLost."""
        if self._refused:
            raise PlaceLost(f"{self.title} answered what it was not asked")
        self._connection.ask({"ask": "open", "settings": dict(settings), "timeout": timeout})
        try:
            about: Json = self._answer("opened").get("about")
        except WorkerEnded as ended:
            raise WorkerEnded(ended.status, f"{self.title}: {ended.reason}") from ended
        try:
            about = self._check(about, bool(settings.get("first")), self.title)
        except UnreadableReport as error:
            raise PlaceLost(
                f"{self.title} does not answer as a worker of profkit does: {error.message}"
            ) from error
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
            if not isinstance(message.get("key", ""), (str, NoneType)) or not isinstance(
                message.get("reason", ""), str
            ):
                raise PlaceLost(f"{self.title} said what is no answer of a job")
            yield message

    def finish(self) -> None:
        """No more work."""
        self.running = False
        self._connection.finish()

    def kill(self) -> None:
        """Its process has ended already, or answered what it was not asked: then the slot is gone."""
        if self.running:
            self._refused = True
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
            status = next((each for each in JobStatus if each.value == answer.get("status")), JobStatus.crash)
            raise WorkerEnded(status, quote_lines(str(answer.get("reason"))[:2000]))
        if answer["event"] not in expected:
            raise PlaceLost(f"{self.title} said {answer['event'][:40]!r}, which was not asked")
        return answer

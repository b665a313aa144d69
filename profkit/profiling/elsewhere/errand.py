"""One piece of work at a place, and the next place where the first cannot.

One that cannot be reached is passed over; where the connection is lost, the work is done once more at the next place,
and only once: what makes two machines go away is more likely the work.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from profkit.core.codec import is_finite_number
from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.progress import Progress
from profkit.core.types import Json
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import ReceivedFiles, Sending, Tree
from profkit.execution.places.kinds import ExecutionPlace

_T = TypeVar("_T")
_CALLS = {"begin": (str, str), "tick": (float,), "move": (str,), "end": (str,), "note": (str,)}
_LIKE_OURS = re.compile(r"\s*(?:error|fix)\b", re.IGNORECASE)  # how our own last words begin
_ROOM = 1000  # characters of a line of progress


@dataclass(frozen=True)
class Errand:
    """One piece of work for a place. `function` of `at_place` gets `data`; `work` is laid out there before."""

    function: str
    data: Json
    work: Tree | None
    name: str
    sending: Sending
    parts: Collection[str] = ()  # the names that what comes back may have


def try_places(
    places: Sequence[ExecutionPlace],
    ask: Callable[[ExecutionPlace], _T],
    locally: Callable[[], _T],
    progress: Progress,
) -> _T:
    """What the first place gives that can. Raises what the last one raised."""
    lost = False
    for place, others in zip(places, range(len(places) - 1, -1, -1), strict=True):
        try:
            return locally() if place.is_local else ask(place)
        except (PlaceUnreachable, PlaceLost) as fault:
            if not others or (lost and isinstance(fault, PlaceLost)):
                raise
            lost = lost or isinstance(fault, PlaceLost)
            progress.end("lost" if isinstance(fault, PlaceLost) else "not reached")
            progress.note(f"{fault.message}; the next place is tried")
    raise UsageError("--on names no place", "--on ssh:HOST")


def do_errand(errand: Errand, place: ExecutionPlace, progress: Progress, arrived: Path | None) -> Json:
    """Carry out the errand; files that come back go into `arrived`, those of a fault, too. The result."""
    with TemporaryFolder("place") as folder, contextlib.ExitStack() as ends:
        connection = Connection(place, Path(folder, "log"), errand.sending.python)
        ends.callback(connection.close)
        files = None
        if arrived is not None:
            files = ReceivedFiles(arrived, errand.parts, place.title)
            ends.callback(files.close)
        progress.begin("connect", place.title)
        connection.open(progress)
        version = ".".join(map(str, connection.hello.version))
        progress.end(f"{place.title}: Python {version}")
        connection.start(
            f"profkit.profiling.elsewhere.at_place:{errand.function}",
            errand.data,
            work=errand.work,
            name=errand.name,
            env=errand.sending.env,
            progress=progress,
        )
        try:
            value = _listen(connection, files, progress)
        except (PlaceLost, UnreadableReport):
            raise
        except ProfkitError:
            if files is not None:
                files.finish()
            raise
        if files is not None:
            files.finish()
        return value


def _listen(connection: Connection, files: ReceivedFiles | None, progress: Progress) -> Json:
    """The result, and until then progress and the files that come."""
    title = connection.place.title
    for event in connection.events():
        if event["event"] == "progress":
            _show(event, title, progress)
        elif event["event"] == "data" and files is not None:
            files.take(event)
        elif event["event"] == "result":
            if connection.ended_because:
                progress.note(connection.ended_because)
            value: Json = event.get("value")
            return value
        else:
            raise PlaceLost(f"{title} said {event['event'][:40]!r}, which was not asked")
    raise PlaceLost(f"{title} said no result")


def _show(event: Mapping[str, Any], title: str, progress: Progress) -> None:
    """Progress there is progress here; anything else that calls itself so is passed over."""
    call, words = event.get("call"), event.get("words")
    kinds = _CALLS.get(call) if isinstance(call, str) else None
    if kinds is None or not isinstance(words, list) or len(words) != len(kinds):
        return
    if not all(
        is_finite_number(word) if kind is float else isinstance(word, str)
        for word, kind in zip(words, kinds, strict=True)
    ):
        return
    shown = (
        f"{title}: {word[:_ROOM]}" if isinstance(word, str) and _LIKE_OURS.match(word) else word
        for word in words
    )
    getattr(progress, str(call))(*(word[:_ROOM] if isinstance(word, str) else word for word in shown))

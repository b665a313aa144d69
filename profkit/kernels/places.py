"""Workers of a sweep or an evaluation at other places: one at each, or one for each environment (GPU)."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from profkit.core.errors import Progress, Silent
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.formatting import who_goes_on
from profkit.core.types import Json
from profkit.execution.places.connection import Connection, PlaceWorker
from profkit.execution.places.files import Sending, Tree, workload_tree
from profkit.execution.places.kinds import ExecutionPlace

RELAY = "profkit.execution.places.there:relay"
SHOWN_WHOLE = {"local", "ssh", "srun", "modal", "ray"}  # kinds whose title is all that was typed
TICK_SECONDS = 0.2


@dataclass(frozen=True)
class SlotWork:
    """The work of each slot: the factory of its handler, its arguments, and an environment per slot of a place.

    `files` and folders are sent; `from_here` gives the path of a file there. `there.OUT` is a folder there.
    `locks`: each slot has its GPU to itself. `check` is that of PlaceWorker.
    """

    factory: str
    arguments: tuple[Json, ...]
    environments: tuple[Mapping[str, str], ...] = ({},)
    files: tuple[str, ...] = ()
    locks: bool = False
    check: Callable[[Json, str], Json] = lambda about, _: about


@dataclass
class PlaceSlots:
    """Places that share a sweep. `workers` are those that were reached, in that order."""

    places: Sequence[ExecutionPlace]
    sending: Sending
    workers: list[PlaceWorker] = field(default_factory=list)
    _tree: Tree | None = None
    _opening: set[Connection] = field(default_factory=set)
    _folder: TemporaryFolder = field(default_factory=lambda: TemporaryFolder("place"))  # for logs
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _note: Callable[[str], None] = lambda _: None

    @property
    def options(self) -> str:
        """Return the options that name these places on a command line, as far as they may be shown."""
        titles = [place.title for place in self.places]
        whole = all(place.kind in SHOWN_WHOLE for place in self.places)
        python = f" --on-python {shlex.quote(self.sending.python)}" if self.sending.python else ""
        return f"--on {shlex.quote(','.join(titles)) if whole else 'PLACES'}{python}"

    def connect(self, work: SlotWork, progress: Progress) -> None:
        """Start the slots, those of all places at once; a place that cannot be reached is left out.

        Raises what the last place raised if none can be reached.
        """
        paths = [*map(Path, work.files), *self.sending.paths]
        # Files of the user's own, with what git tracks beside them: they may import it.
        self._tree = workload_tree((), paths) if paths else None
        self._note = progress.note
        begun, threads = monotonic(), ThreadPoolExecutor(len(self.places))
        progress.begin("connect", ", ".join(place.title for place in self.places))
        connecting = [threads.submit(self._connect_place, place, work) for place in self.places]
        while wait(connecting, TICK_SECONDS).not_done:
            progress.tick(monotonic() - begun)
        progress.end(", ".join(worker.title for worker in self.workers) or "not reached")
        faults = [fault for each in connecting if (fault := each.exception()) is not None]
        others = len(self.places) - len(faults)
        for fault in faults if self.workers else faults[:-1]:  # without any worker the last one is raised
            progress.note(f"{fault}; {who_goes_on(others)}" if others else str(fault))
        if faults and not self.workers:
            raise faults[-1]

    def _connect_place(self, place: ExecutionPlace, work: SlotWork) -> None:
        """Start the slots of one place."""
        common: dict[str, Json] = {
            "factory": work.factory,
            "arguments": [*work.arguments],
            "locks": work.locks,
        }
        for env in work.environments:
            data: Json = {**common, "env": {**env}}
            connection = self._start(place, data, _Notes(place.title, self._note))
            self.workers.append(PlaceWorker(connection, lambda text: self._note(text), work.check))

    def close(self) -> None:
        """Close all slots."""
        ends: list[PlaceWorker | Connection] = [*self.workers, *self._opening]
        for end in ends:
            end.close()
        self._folder.cleanup()

    def _start(self, place: ExecutionPlace, data: Json, progress: Progress) -> Connection:
        """Open a connection to a place and start a slot there."""
        log = Path(self._folder.name, f"{next(self._numbers)}.log")
        python = self.sending.python
        if place.is_local:  # a worker like all others
            place, python = replace(place, start=("sh",), inherits=True), python or sys.executable
        connection = Connection(place, log, python)
        self._opening.add(connection)
        try:
            connection.open(progress)
            connection.start(RELAY, data, work=self._tree, name="slot", env=self.sending.env)
        except BaseException:
            connection.close()
            raise
        finally:
            self._opening.discard(connection)
        return connection


class _Notes(Silent):
    """A progress that shows what a place reports until it answers, as a queue does, and nothing else."""

    def __init__(self, title: str, note: Callable[[str], None]) -> None:
        self._title, self._note = title, note

    def note(self, text: str) -> None:
        """Show a note with the place's title."""
        self._note(f"{self._title}: {text}")


def from_here(file: str) -> str:
    """Return the path relative to the working directory, which is the working directory there, too."""
    return os.path.relpath(file)

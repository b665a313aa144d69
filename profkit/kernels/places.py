"""Workers of a sweep or an evaluation at other places: one at each, or one for each environment, as for each GPU."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.core.progress import Progress
from profkit.core.types import Json
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import Sending, Tree, workload_tree
from profkit.execution.places.place import ExecutionPlace
from profkit.execution.places.slot import PlaceWorker

RELAY = "profkit.execution.places.relay:relay"


@dataclass(frozen=True)
class SlotWork:
    """What each slot does: the factory of its handler, with its arguments; an environment for each slot of a place.

    `files` and folders are sent; `from_here` says what an argument calls one. `relay.OUT` is a folder there.
    """

    factory: str
    arguments: tuple[Json, ...]
    environments: tuple[Mapping[str, str], ...] = ({},)
    files: tuple[str, ...] = ()


@dataclass
class PlaceSlots:
    """Places that share a sweep. `workers` are those that were reached, once `connect` was called."""

    places: Sequence[ExecutionPlace]
    sending: Sending
    workers: list[PlaceWorker] = field(default_factory=list)
    _logs: list[Path] = field(default_factory=list)

    def connect(self, work: SlotWork, progress: Progress) -> None:
        """Start the slots; a place that is not reached is passed over. Raises what the last one raised if all are."""
        paths = [*map(Path, work.files), *self.sending.paths]
        # Files of the user's own, with what git tracks beside them: they may import it.
        tree = workload_tree((), paths) if paths else None
        missed: PlaceUnreachable | PlaceLost | None = None
        for place in self.places:
            for number, env in enumerate(work.environments):
                progress.begin("connect", place.title + (f", worker {number}" if number else ""))
                data: Json = {"factory": work.factory, "arguments": [*work.arguments], "env": {**env}}
                try:
                    self.workers.append(PlaceWorker(self._start(place, tree, data, progress)))
                except (PlaceUnreachable, PlaceLost) as fault:
                    missed = fault
                    progress.end("not reached")
                    progress.note(f"{fault.message}; the others go on")
                    break
                progress.end(place.title)
        if missed is not None and not self.workers:
            raise missed

    def close(self) -> None:
        """No slots any more."""
        for worker in self.workers:
            worker.close()
        for log in self._logs:
            log.unlink(missing_ok=True)

    def _start(self, place: ExecutionPlace, work: Tree | None, data: Json, progress: Progress) -> Connection:
        handle, name = tempfile.mkstemp(prefix="profkit-", suffix=".log")
        os.close(handle)
        self._logs.append(Path(name))
        python = self.sending.python
        if place.is_local:  # a worker like all others
            place, python = replace(place, start=("sh",), inherits=True), python or sys.executable
        connection = Connection(place, Path(name), python)
        try:
            connection.open()
            connection.stage(work, progress)
            connection.start(RELAY, data, work=work, name="slot", env=self.sending.env)
        except BaseException:
            connection.close()
            raise
        return connection


def from_here(file: str) -> str:
    """A path of this machine as one from the folder one is in, which is the folder there, too."""
    return os.path.relpath(file)

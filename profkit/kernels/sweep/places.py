"""The workers of a sweep at other places: one for each place, or one for each GPU that was named, at each of them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.core.progress import Progress
from profkit.core.types import Json
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import Sending, Tree, workload_tree
from profkit.execution.places.place import Place
from profkit.execution.places.slot import PlaceWorker
from profkit.kernels.sweep.request import SweepRequest

RELAY = "profkit.execution.places.relay:relay"


@dataclass
class PlaceSlots:
    """Places that share a sweep. `workers` are those that were reached, once `connect` was called."""

    places: Sequence[Place]
    sending: Sending
    workers: list[PlaceWorker] = field(default_factory=list)
    _logs: list[Path] = field(default_factory=list)

    def connect(self, request: SweepRequest, factory: str, progress: Progress) -> None:
        """Start a slot for each; what is not reached is passed over. Raises what the last one raised if none is."""
        work = self._work_tree(request)
        arguments = [
            "cuda:0" if request.device == "cuda" else request.device,
            *map(_from_here, request.files),
        ]
        missed: PlaceUnreachable | PlaceLost | None = None
        for place in self.places:
            for gpu in request.gpus or (None,):
                progress.begin("connect", place.title + (f", GPU {gpu}" if gpu is not None else ""))
                env = {} if gpu is None and request.device == "cuda" else {"CUDA_VISIBLE_DEVICES": gpu or ""}
                data: Json = {"factory": factory, "arguments": [*arguments], "env": {**env}}
                try:
                    self.workers.append(PlaceWorker(self._start(place, work, data, progress)))
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

    def _start(self, place: Place, work: Tree | None, data: Json, progress: Progress) -> Connection:
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
            connection.start(RELAY, data, work=work, name="sweep", env=self.sending.env)
        except BaseException:
            connection.close()
            raise
        return connection

    def _work_tree(self, request: SweepRequest) -> Tree | None:
        """Files of the user's own, with what git tracks beside them: they may import it. None where there are none."""
        paths = [*map(Path, request.files), *self.sending.paths]
        return workload_tree((), paths) if paths else None


def _from_here(file: str) -> str:
    """A path of this machine as one from the folder one is in, which is the folder there, too."""
    return os.path.relpath(file)

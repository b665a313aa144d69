"""Workers of a sweep or an evaluation at other places: one at each, or one for each environment, as for each GPU."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep

from profkit.core.errors import MachineError, UsageError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.progress import Progress, Silent
from profkit.core.types import Json
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import Sending, Tree, workload_tree
from profkit.execution.places.place import ExecutionPlace
from profkit.execution.places.slot import PlaceWorker, believe_all

RELAY = "profkit.execution.places.relay:relay"
SHOWN_WHOLE = {"local", "ssh", "srun", "modal", "ray"}  # kinds whose title is all that was typed
AGAIN_SECONDS = 30.0  # between two tries to reach a place that is missing
GATHER_SECONDS = 3.0  # that the first worker waits for others out of a queue
TICK_SECONDS = 0.2
PASSED_OVER = "{}; the others go on, and it is tried again"


@dataclass(frozen=True)
class SlotWork:
    """What each slot does: the factory of its handler, with its arguments; an environment for each slot of a place.

    `files` and folders are sent; `from_here` says what an argument calls one. `relay.OUT` is a folder there. `locks`:
    each slot has its GPU to itself. `check`: of PlaceWorker.
    """

    factory: str
    arguments: tuple[Json, ...]
    environments: tuple[Mapping[str, str], ...] = ({},)
    files: tuple[str, ...] = ()
    locks: bool = False
    check: Callable[[Json, bool, str], Json] = believe_all


@dataclass
class _Slot:
    """One worker of a place, which may be missing for now."""

    place: ExecutionPlace
    number: int
    data: Json
    worker: PlaceWorker | None = None
    fault: MachineError | None = None  # why it was not reached the last time

    @property
    def is_missing(self) -> bool:
        """Whether it may come, or come back: it was not reached, or its connection was lost."""
        return self.worker is None or self.worker.was_lost


@dataclass
class PlaceSlots:
    """Places that share a sweep. `workers` are those that were reached, in the order in which that was."""

    places: Sequence[ExecutionPlace]
    sending: Sending
    workers: list[PlaceWorker] = field(default_factory=list)
    _tree: Tree | None = None
    _slots: list[_Slot] = field(default_factory=list)
    _opening: set[Connection | PlaceWorker] = field(default_factory=set)
    _folder: TemporaryFolder = field(default_factory=lambda: TemporaryFolder("place"))  # for logs
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _closed: threading.Event = field(default_factory=threading.Event)
    _joining: threading.Lock = field(default_factory=threading.Lock)
    _gathering: bool = True  # who comes before the pool is made is in it from the beginning
    _may_join: threading.Event = field(default_factory=threading.Event)
    _add: Callable[[PlaceWorker], bool] = lambda _: False
    _note: Callable[[str], None] = lambda _: None
    _check: Callable[[Json, bool, str], Json] = believe_all

    @property
    def options(self) -> str:
        """What names these places on a command line, as far as it may be shown."""
        return format_places(self.places, self.sending)

    def connect(self, work: SlotWork, progress: Progress) -> None:
        """Start the slots; a place that is not reached is passed over. Raises what the last one raised if all are.

        Raises also UsageError where GPUs are named for a place that is given its own.
        """
        paths = [*map(Path, work.files), *self.sending.paths]
        # Files of the user's own, with what git tracks beside them: they may import it.
        self._tree = workload_tree((), paths) if paths else None
        self._note, self._check = progress.note, work.check
        for place in self.places:
            if any(env.get("CUDA_VISIBLE_DEVICES") for env in work.environments):
                place.refuse_devices()
            if place.rent is not None and len(work.environments) > 1:
                raise UsageError(
                    f"each worker of {place.title} would rent a container of its own with all of its GPUs",
                    "--on modal:H100,modal:H100 without --gpus: two containers with a GPU each",
                )
            self._slots += [_Slot(place, *each) for each in enumerate(_data_of_slots(work))]
        by_place = [*self._by_place()]
        for place, slots in by_place:
            if place.queues:  # one that is served late lets no other wait
                self._begin_to_join(place, slots, at_once=True)
        for place, slots in by_place:
            if place.cost is not None:
                progress.note(place.cost)
            if not place.queues:
                self._connect_place(place, slots, progress)
        self._gather([slots[0] for place, slots in by_place if place.queues], progress)
        with self._joining:
            self._gathering = False
        faults = [slot.fault for slot in self._slots if slot.fault is not None]
        if faults and not self.workers:
            raise faults[-1]

    def _connect_place(self, place: ExecutionPlace, slots: Sequence[_Slot], progress: Progress) -> None:
        for slot in slots:
            progress.begin("connect", place.title + (f", worker {slot.number}" if slot.number else ""))
            try:
                worker = self._start(place, slot.data, progress)
            except (PlaceUnreachable, PlaceLost) as fault:
                slot.fault = fault
                progress.end("not reached")
                progress.note(PASSED_OVER.format(fault.message))
                break
            self._let_in(slot, worker)
            progress.end(place.title)

    def _gather(self, queued: Sequence[_Slot], progress: Progress) -> None:
        """Wait until the first worker is there, and some seconds more: others may come at once, or in hours."""
        begun = came = monotonic()
        if queued:
            progress.begin("connect", ", ".join(slot.place.title for slot in queued))
        while waiting := [slot for slot in queued if slot.worker is None and slot.fault is None]:
            came = came if self.workers else monotonic()
            if monotonic() - came > GATHER_SECONDS:
                break
            progress.tick(monotonic() - begun)
            sleep(TICK_SECONDS)
        missed = [slot.fault.message for slot in queued if slot.fault is not None]
        if queued:
            there = sum(slot.worker is not None for slot in queued)
            later = f", {len(waiting)} in the queue" if waiting else ""
            progress.end(f"{there} of {len(queued)}{later}")
        for message in missed:
            progress.note(PASSED_OVER.format(message))

    def let_join(self, add: Callable[[PlaceWorker], bool], note: Callable[[str], None]) -> None:
        """From now on try places that are missing again and again, until `close`; `add` gets each worker that comes.

        It says whether the worker is taken. A thread for each place: one that does not answer delays no other.
        """
        self._add, self._note = add, note
        self._may_join.set()
        for place, slots in self._by_place():
            if not place.is_local and not place.queues:
                self._begin_to_join(place, slots, at_once=False)

    def close(self) -> None:
        """No slots any more."""
        self._closed.set()
        self._may_join.set()
        with self._joining:
            ends: list[PlaceWorker | Connection] = [*self.workers, *self._opening]
        for end in ends:
            end.close()
        self._folder.cleanup()

    def _by_place(self) -> Iterator[tuple[ExecutionPlace, list[_Slot]]]:
        each = len(self._slots) // max(1, len(self.places))
        for number, place in enumerate(self.places):
            yield place, self._slots[number * each : (number + 1) * each]

    def _begin_to_join(self, place: ExecutionPlace, slots: Sequence[_Slot], *, at_once: bool) -> None:
        arguments = (place, slots, at_once)
        threading.Thread(target=self._join, args=arguments, name="join", daemon=True).start()

    def _join(self, place: ExecutionPlace, slots: Sequence[_Slot], at_once: bool) -> None:
        """The thread lives until all is closed: a process may end with the thread that started it."""
        progress = _Notes(place.title, lambda text: self._note(text)) if place.queues else Silent()
        while not self._closed.wait(0.0 if at_once else AGAIN_SECONDS):
            at_once = False
            for slot in slots:
                if not slot.is_missing:
                    continue
                try:
                    worker = self._start(place, slot.data, progress)
                except MachineError as fault:  # as before; what it is was said then
                    slot.fault = fault
                    break
                if not self._let_in(slot, worker):
                    return

    def _let_in(self, slot: _Slot, worker: PlaceWorker) -> bool:
        """It shares the work, now or as soon as there is a pool; False where none is left."""
        with self._joining:
            if self._gathering and not self._closed.is_set():
                self.workers.append(worker)
                slot.worker = worker
                return True
            self._opening.add(worker)
        self._may_join.wait()
        with self._joining:  # a worker's number in the pool is that in `workers`
            self._opening.discard(worker)
            self.workers.append(worker)
            if self._closed.is_set() or not self._add(worker):
                self.workers.pop()
                worker.close()
                return False
        slot.worker = worker
        self._note(f"{slot.place.title} has joined")
        return True

    def _start(self, place: ExecutionPlace, data: Json, progress: Progress) -> PlaceWorker:
        log = Path(self._folder.name, f"{next(self._numbers)}.log")
        python = self.sending.python
        if place.is_local:  # a worker like all others
            place, python = replace(place, start=("sh",), inherits=True), python or sys.executable
        connection = Connection(place, log, python)
        self._opening.add(connection)
        try:
            connection.open(progress)
            connection.stage(self._tree, progress)
            connection.start(RELAY, data, work=self._tree, name="slot", env=self.sending.env)
        except BaseException:
            connection.close()
            raise
        finally:
            self._opening.discard(connection)
        return PlaceWorker(connection, lambda text: self._note(text), self._check)


class _Notes(Silent):
    """What a queue says, and nothing else."""

    def __init__(self, title: str, note: Callable[[str], None]) -> None:
        self._title, self._note = title, note

    def note(self, text: str) -> None:
        """As a Progress does."""
        self._note(f"{self._title}: {text}")


def format_places(places: Sequence[ExecutionPlace], sending: Sending) -> str:
    """The options of a command line that name these places, as far as they may be shown."""
    titles = [place.title for place in places]
    whole = all(place.kind in SHOWN_WHOLE for place in places)
    python = f" --on-python {shlex.quote(sending.python)}" if sending.python else ""
    return f"--on {shlex.quote(','.join(titles)) if whole else 'PLACES'}{python}"


def _data_of_slots(work: SlotWork) -> list[Json]:
    """What `relay` gets, for each slot of a place."""
    common: dict[str, Json] = {
        "factory": work.factory,
        "arguments": [*work.arguments],
        "locks": work.locks,
    }
    return [{**common, "env": {**env}} for env in work.environments]


def from_here(file: str) -> str:
    """A path of this machine as one from the folder one is in, which is the folder there, too."""
    return os.path.relpath(file)

"""Carries a grid out: a worker for each device, each case settled once, whatever happens to its worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import MachineError, UnreadableReport
from profkit.core.types import CaseResult, CaseState, GridPoint
from profkit.kernels.operations.compiled import NAME as COMPILED
from profkit.kernels.sweep.ahead import Ahead
from profkit.kernels.sweep.hand import Died, Hand, TookTooLong
from profkit.kernels.sweep.order import Order, Work
from profkit.kernels.sweep.relief import Relief
from profkit.kernels.sweep.wish import Wish

START_SECONDS = 300.0  # torch from a cold disk, and the roofs
MOST_DEATHS = 3  # of a worker before it has answered anything
TICK_SECONDS = 0.2
WAIT_SECONDS = 0.1  # for a compiler, between two looks


class Pool:
    """Workers that share the points of a grid. `settle` is called for each case, by one thread at a time.

    `lost` is told of a device that is gone while others go on. `ahead` compiles for the workers, and `reliefs` take
    their places when they have loaded the compilers: one for each, or none.
    """

    def __init__(
        self,
        hands: Sequence[Hand],
        wish: Wish,
        timeout: float,
        settle: Callable[[CaseResult], None],
        lost: Callable[[str], None] = lambda _: None,
        ahead: Ahead | None = None,
        reliefs: Sequence[Relief] = (),
    ) -> None:
        self._ahead, self._reliefs = ahead or Ahead((), ()), reliefs
        self._hands, self._wish, self._timeout, self._settle, self._lose = hands, wish, timeout, settle, lost
        self._order = Order(())
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._stop, self._go, self._known = threading.Event(), threading.Event(), threading.Event()
        self._about: dict[str, Any] = {}
        self._fault: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._serve, args=(number, hand), name=f"sweep-{number}", daemon=True)
            for number, hand in enumerate(hands)
        ]

    def begin(self) -> None:
        """Start all workers; the first measures the roofs."""
        for thread in self._threads:
            thread.start()
        for relief in self._reliefs:
            relief.begin()

    def about(self, tick: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """What they are on, by the first. Raises MachineError where it cannot be started."""
        while not self._known.wait(TICK_SECONDS) and self._threads[0].is_alive():
            tick()
        if not self._about:
            self.end()
            raise self._fault or MachineError("the process that measures cannot be started")
        self._ahead.begin()  # not before: dozens of processes that load torch and open the device would hold it up
        return self._about

    def run(self, work: Sequence[Work], tick: Callable[[], None]) -> None:
        """Settle all of it, with `tick` a few times a second. What goes wrong in a worker's thread is raised here."""
        self._order = Order(work, COMPILED, len(self._hands))
        self._go.set()
        try:
            while any(thread.is_alive() for thread in self._threads):
                for thread in self._threads:
                    thread.join(TICK_SECONDS / len(self._threads))
                tick()
        finally:
            self.end()
            for thread in self._threads:
                thread.join(5.0)
        if self._fault is not None and (len(self._order) or not isinstance(self._fault, MachineError)):
            raise self._fault

    def end(self) -> None:
        """No more work, and no workers."""
        self._stop.set()
        self._go.set()
        self._ahead.end()
        for one in self._reliefs:
            one.end()
        for hand in self._hands:
            hand.close()

    def _serve(self, number: int, hand: Hand) -> None:
        try:
            self._begin(number, hand)
            self._go.wait()
            while (work := self._next(number)) is not None:
                hand = self._relieved(number, hand)
                self._point(number, hand, *work)
            hand.finish()
        except MachineError as gone:
            self._gone(number, gone)
        except BaseException as error:
            if not self._stop.is_set():
                self._fault = error
                self._stop.set()
        finally:
            hand.close()

    def _next(self, number: int) -> Work | None:
        """What this worker does next; None where nothing is left.

        Where all that is left waits for a compiler it takes the last of it from the helpers, and compiles it itself.
        """
        while not self._stop.is_set():
            with self._turn:
                if not len(self._order):
                    return None
                if (found := self._order.take(lambda point: self._compiles(number, point))) is not None:
                    return found
            if self._coming(number):
                self._reliefs[number].wait(WAIT_SECONDS)
            elif not self._ahead.give_up_last():
                self._ahead.wait(WAIT_SECONDS)
        return None

    def _compiles(self, number: int, point: GridPoint) -> bool:
        """Whether this worker can measure what is compiled, and compile or find it."""
        return not self._coming(number) and self._ahead.ready(point)

    def _coming(self, number: int) -> bool:
        return bool(self._reliefs) and self._reliefs[number].coming

    def _relieved(self, number: int, hand: Hand) -> Hand:
        """The worker that goes on: the relief when it is there. One of them at a time is on the device."""
        if not self._reliefs or (other := self._reliefs[number].take()) is None:
            return hand
        hand.end()
        try:
            self._start(other, roofs=False)
        except MachineError:  # then the first one, once more
            return hand
        return other

    def _begin(self, number: int, hand: Hand) -> None:
        """The worker runs, on the same kind of device as the first one."""
        try:
            told = self._start(hand, roofs=number == 0)
            if number == 0:
                self._about = told
        finally:
            if number == 0:
                self._known.set()
        if number:
            self._known.wait()
            if self._about and told["device"] != self._about["device"]:
                raise MachineError(
                    f"GPU {number} of those asked is {told['device']}, and the first {self._about['device']}",
                    "--gpus with devices of one kind",
                )

    def _gone(self, number: int, gone: MachineError) -> None:
        """A device answers no more: the others go on without it, and the last one takes the sweep with it."""
        if self._stop.is_set():
            return
        others = [t for t in self._threads if t is not threading.current_thread() and t.is_alive()]
        with self._lock:
            self._fault = self._fault or gone
            if others and (number or self._about):
                self._lose(f"worker {number} is gone, the others go on: {gone.message}")
        if not others or (number == 0 and not self._about):
            self._stop.set()

    def _point(self, number: int, hand: Hand, point: GridPoint, names: Sequence[str]) -> None:
        """Every implementation of the point settled; one that kills its worker is settled by that.

        Raises MachineError where no worker can be started; what is left of the point is then work again.
        """
        left = list(names)
        while left and not self._stop.is_set():
            running: str | None = None
            begin = monotonic()
            blamed = not hand.running  # a new worker that dies and has said nothing of the point: it did it
            try:
                if not hand.running:
                    self._start(hand, roofs=False)
                for message in hand.ask(point, left, self._timeout):
                    blamed = False
                    if message["event"] == "begin" and message.get("implementation") in left:
                        running, begin = str(message["implementation"]), monotonic()
                        continue
                    self._tell(_result(message, point, left, number), left)
                    running = None
                if left:
                    raise Died("its process answered less than it was asked")
            except MachineError:
                with self._turn:
                    self._order.put_back(point, tuple(left))
                raise
            except TookTooLong:
                if running is None and not blamed:  # an earlier case left it so that it could not go on
                    continue
                why = f"it took longer than {self._timeout:g} s, and was ended"
                self._lost(point, running, left, "timed out", why, monotonic() - begin, number)
            except Died as died:
                hand.end()
                if self._stop.is_set():
                    return
                if running is None and not blamed:
                    continue
                state: CaseState = "too large" if died.memory else "crashed"
                self._lost(point, running, left, state, str(died), monotonic() - begin, number)

    def _lost(
        self,
        point: GridPoint,
        running: str | None,
        left: list[str],
        state: CaseState,
        why: str,
        spent: float,
        device: int,
    ) -> None:
        """The case that was running, or all of the point where none had begun: its inputs did it."""
        for name in [running] if running is not None else list(left):
            self._tell(CaseResult(point, name, state, why, spent=spent, device=device), left)

    def _tell(self, result: CaseResult, left: list[str]) -> None:
        with self._lock:
            self._settle(result)
        left.remove(result.implementation)

    def _start(self, hand: Hand, *, roofs: bool) -> dict[str, Any]:
        about = {"wish": asdict(self._wish), "roofs": roofs, "share": 1 / len(self._hands)}
        why = ""
        for _ in range(MOST_DEATHS):
            try:
                return hand.start(about, START_SECONDS)
            except Died as died:
                why = str(died)
            except TookTooLong:
                why = f"it said nothing for {START_SECONDS:g} s"
            if self._stop.is_set():
                break
        raise MachineError(f"the process that measures cannot be started: {why}", _fix(why))


def _fix(why: str) -> str | None:
    return "pip install torch" if "No module named 'torch'" in why else None


def _result(message: Mapping[str, Any], point: GridPoint, left: Sequence[str], device: int) -> CaseResult:
    """The result that the message tells. Raises Died for what was not asked: somebody's code wrote it."""
    try:
        found = codec.build(CaseResult, message.get("result"), "result")
    except UnreadableReport as error:
        raise Died(f"its process gave a wrong answer: {error.message}") from error
    if found.point != point or found.implementation not in left:
        raise Died("its process answered what it was not asked")
    return replace(found, device=device)

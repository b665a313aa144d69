"""Samples the Python stacks of one process, and adds them to a file that it shares with all others of the workload.

A thread of our own wakes up two hundred times a second, and up to 650 times until it has two thousand samples of
a program that computes (`times`), waits for the interpreter's lock (`lock_wait`), and looks at the stacks of all others
(`rows`, `tree`). A sample stands
for the moments since the one before: where nobody else could get the interpreter's lock for a while, those that passed
meanwhile are not lost. It weighs as much processor time as its thread used per wall time. Both are kept for each stack.

The file is JSON lines: each is one write of one process, and stands for itself or is passed over. A process that is
killed loses what came after its last write, at most 0.3 s or a fiftieth of its time.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread
from errno import ENOSPC
from io import FileIO
from time import perf_counter, sleep, thread_time

from ..shared_file import json_text
from ..values.tasks import awaited_frames
from ..waits import (
    CollectedLines,
    HeldLoop,
    Stretches,
    SystemCalls,
    block_signals,
    callback_of,
    follow_collector,
    is_in_callback,
    is_in_loop,
    name_thread,
    thread_clock,
    waits_for,
    wake_in_time,
)
from .lock_wait import LockWait
from .rows import rows_after, rows_of, rows_of_thread
from .times import EARLY_COST_SHARE, PAUSE, SamplingSchedule
from .tree import OURS, ROOT, StackTree

TYPE_CHECKING = False  # what every process of the workload loads is kept small: no json, signal or typing
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from types import FrameType
    from typing import Any

SCHEMA = "profkit.stacks/1"
RECENT = 50  # samples: where two threads ran in these, they may compete for the lock, and would change places by it
# After one sample of so many we wait for the lock without asking for it, up to TRIAL_SWITCH seconds. Where we get it
# much sooner (AT_ONCE of that wait), the program gives it away by itself, and all samples may be taken at that call:
# that is noted, and nothing else. A thread that goes on computing meanwhile (GOES_ON of the time that we look) is in a
# long call without the lock, where a sample is right. Where a trial ends the lock is given away, and that is no moment
# of the program: what it lasted belongs to the place where it began. A program that asks SQLite in each turn
# had 10 points of its other lines' time there, as long as the sample after a trial stood for that time.
TRIALS, TRIAL_SWITCH, AT_ONCE, GOES_ON = 8, 1e-3, 0.8, 0.5
LONG_CALL = 2.0  # of that wait: a call of C that keeps us for longer has the time of the trial
KEPT = 50  # microseconds that we sleep with the lock, for a thread without it to go on
TO_LET_GO = 2e-5  # seconds that we sleep, for the program to take the lock
# Threads that compete give the lock away often if GIVEN_SHARE of what they compute is seen at once (of at least
# MIN_COMPUTED seconds).
GIVEN_SHARE, MIN_COMPUTED = 0.1, 0.1
IDLE = 0.1  # of the time: for a main thread that ran less, what it waits for is read, which takes 10 µs
# Of the time: for one that ran more it is not. That reads a file, for which the lock is given away three times, and
# takes a third of what a sample costs.
BUSY = 0.95
SETTLED = 0.1  # seconds: a process that ends sooner is not worth what `SystemCalls` takes
FLUSH_PAUSE, FLUSH_SHARE = 0.3, 0.02  # seconds, and share of the time so far, between two writes
# Before 3.12 the garbage collector begins wherever an object is made, also within `f_back` and `f_locals` of another
# thread's frame. What runs then may hand over the interpreter's lock: that thread leaves the frame, what is made refers
# to memory of something else, and the program crashes. Under `sys._current_frames` it could wait for ever (gh-106883).
COLLECTS_AT_ONCE = sys.version_info < (3, 12)
# Seconds of the stretches in which it is kept what each thread did: at first, and as a share of the time so far; some
# hundred for each time that the program has run e times as long.
STRETCH, STRETCH_SHARE = 0.01, 0.0025
# Of a run that perf samples as well it is kept when each stack was seen, so many times: samples of both are joined.
MOMENTS, MAX_MOMENTS = "PROFKIT_MOMENTS", 60_000
LOOK_EARLY = 0.8  # of a pause: a sample that comes a little sooner looks, too
MAX_THREADS = 64  # shown separately; a program may start one for each task
CERTAIN = ("sleep", "network", "child", "sync")  # kinds of waits
WAITS = ("wait", "join", "_wait_for_tstate_lock")  # of the module threading, as its own code calls them
MAX_WAITING_THREADS = 9  # threads whose reason for waiting is read
MAX_FAILURES = 5  # consecutive samples or writes that failed, for example because of a full disk


class _ThreadState:
    """One thread of the workload between two samples."""

    __slots__ = ("clock", "cpu", "elsewhere", "node", "number", "position", "ran")

    def __init__(self, number: int, clock: int | None, cpu: float) -> None:
        self.number, self.clock, self.cpu = number, clock, cpu
        self.node = ROOT
        self.position: object = None  # where it was, if nothing tells whether it ran
        self.ran = 0  # number of the last sample before which it ran
        # Processor seconds between samples at which it waited: of where it is seen to run next.
        self.elsewhere = 0.0


def _waits_in(frame: FrameType) -> bool:
    """Return whether a thread is in a function that only waits for another one, and needs no other lock for that."""
    code = frame.f_code
    return code.co_name in WAITS and frame.f_globals is getattr(
        sys.modules.get("threading"), "__dict__", None
    )


class StackSampler:
    """The switch of the stacks pass, in one process."""

    task: object = None  # of the part of an event loop that is sampled, and all that there were
    tasks_before: Container[object] = ()
    early_share = EARLY_COST_SHARE

    def __init__(self, out: str) -> None:
        self._out = out
        self._lock_wait = LockWait()
        # For as long as no collection may begin: the thresholds before. `gc.disable` is left to the program: what it
        # switches off meanwhile would be switched on again.
        self._collector: list[tuple[int, int, int]] = []
        self._generation: object = None

    def begin(self) -> None:
        """Sample from here, also in a child that was forked just now: it begins with empty tables."""
        self._collect_again()  # where the fork came within a sample, whose thread is not in this process
        self._lock = allocate_lock()
        self._depth = 0  # regions that the process is in
        self.paused_until = 0.0  # what happened until then belongs to none of the program's lines
        self._entries = 0
        self._tree = self._new_tree()
        self._sums: dict[tuple[int, int, bool], list[float]] = {}
        self._waits: dict[tuple[int, int, str], float] = {}  # stack, thread, and what it waits for
        # Stack of the coroutine that an event loop waits for, and whether that is its only one.
        self._awaited: dict[tuple[int, bool], float] = {}
        self._held = HeldLoop()  # the main thread's event loop
        self._stretch = Stretches()
        self._moments: list[list[int]] = []  # thread, stack and time
        self._more_moments = MAX_MOMENTS if os.environ.get(MOMENTS) else 0
        self._longest: dict[int, float] = {}  # stack -> longest time between two samples
        self._collecting = self._collector_begun = 0.0
        self._collected_lines = CollectedLines()
        self._news: dict[str, list[Any]] = {"threads": [], "natives": []}
        self._cost = 0.0
        self._begun = self._last = self._looked = self._flushed = self._seen = perf_counter()
        self._times = SamplingSchedule(self._begun, self.early_share)
        self._header_written = self._finalizer = self._ended = False
        self._failures, self._failed = 0, ""
        self._key = f"{os.getpid()}.{time.time_ns() // 1_000_000}"
        self._main, main_native = get_ident(), get_native_id()
        self._threads: dict[int, _ThreadState] = {}
        self._thread_count = 0
        self._next_look = self._held_back = 0.0
        self._system = SystemCalls()
        self._samples = RECENT  # and before the first, nobody has run
        self._clocks = thread_clock(main_native) is not None
        self._process_cpu = time.process_time()
        self._trials, self._lone, self._given_often = 0, False, False
        # Stack of the main thread that gave the lock away -> trials in which it stood still then, and went on.
        self._given_at: dict[int, list[int]] = {}
        # Processor seconds of threads that took turns, and what of it was seen only as the lock was given away.
        self._turns = [0.0, 0.0]
        self._soon = 0.0  # what of it was seen at once
        self._movers: list[int] = []  # numbers of the threads that moved last
        state = self._new_thread(main_native, "main")
        state.cpu = self._cpu_of(state)
        self._threads[main_native] = state
        self._main_native = main_native
        follow_collector(self._collected)
        self._lock_wait.begin()
        self._generation = generation = object()
        start_new_thread(self._run, (generation,))

    def finish(self) -> None:
        """Write what is left; nothing is sampled from here on."""
        self._generation = None
        with self._lock:
            self._lock_wait.end()
            if not self._ended:
                self._ended = True
                self._count_last_stretch()
                self._held.end()
                self._flush(last=True)

    def _new_tree(self) -> StackTree:
        return StackTree()

    def enter(self, name: str) -> None:  # noqa: ARG002
        """Begin a region: later samples are inside it."""
        if not self._entries:  # what was collected before it is no part of it
            self._collecting = 0.0
            self._collected_lines.clear()
        self._depth += 1
        self._entries += 1

    def exit(self, name: str) -> None:  # noqa: ARG002
        """End a region: later samples are outside it."""
        self._depth -= 1

    def _collected(self, phase: str, info: object) -> None:  # noqa: ARG002
        """Handle the begin or end of a garbage collection; the collector calls this."""
        if phase == "start":
            self._collector_begun = perf_counter()
        elif self._collector_begun and (self._depth > 0 or not self._entries):
            spent = perf_counter() - self._collector_begun
            self._collecting += spent
            self._collected_lines.add(sys._getframe().f_back, spent)  # None at the end of the interpreter

    def _run(self, generation: object) -> None:
        block_signals()
        name_thread()
        wake_in_time()
        begun = ended = thread_time()
        settled = False
        while self._generation is generation:
            # After a call that gave the lock away it may be due, for a call of C that kept us waiting: what was seen as
            # that ended is the place of this sample, too. To look again, some operations later, would show the next.
            left = self._times.due - perf_counter()
            if left > 0:
                self._call_and_look(sleep, left)
                self._collect_again()
            elif self._seen < self._times.due:
                self._waited = self._lock_wait.keep()
                self._uncollected(self._see_main)
            # What came after that call is of another sample, at once: the lock may have been lost again since.
            now, waited = self._seen, self._waited
            self._at_once = now - self._times.due < AT_ONCE * waited
            self._times.pass_until(now)
            granted = thread_time()
            self._lock_wait.spent(granted - ended)
            with self._lock:
                if self._generation is not generation:
                    return
                try:
                    self._tree.deep = False
                    self._uncollected(self._sample)
                    # By our processor time, and not by the clock: the lock that we give away to read a file is another
                    # thread's meanwhile, for 5 ms where threads compete. Nor what a write takes, in turns with them.
                    self._held_back = thread_time() - granted
                    self._times.note_cost(self._held_back, deep=self._tree.deep)
                    if self._lone and self._times.is_each(TRIALS):
                        self._uncollected(self._try_lock)
                    now = perf_counter()
                    if now - self._flushed > max(FLUSH_PAUSE, FLUSH_SHARE * (now - self._begun)):
                        self._flush()
                except Exception as error:  # the program comes first
                    self._lock_wait.ask()
                    self._failures += 1
                    self._failed = f"{type(error).__name__}: {error}"[:200]
                    if self._failures > MAX_FAILURES:
                        self._generation = None
                        return
                ended = thread_time()
                self._cost = ended - begun
            if not settled and now - self._begun > SETTLED:
                settled = True
                self._system.begin()

    def _uncollected(self, look: Callable[[], None]) -> None:
        """Take a sample, or try, in which no garbage collection begins: see COLLECTS_AT_ONCE."""
        if COLLECTS_AT_ONCE:
            self._collector.append(gc.get_threshold())
            gc.set_threshold(0)
        try:
            look()
        finally:
            self._collect_again()

    def _collect_again(self) -> None:
        """Have garbage collections begin again as they did before a sample."""
        threshold = next((threshold for threshold, *_ in self._collector if threshold), 0)
        if threshold and not gc.get_threshold()[0]:  # else the program has set its own meanwhile
            gc.set_threshold(threshold)
        self._collector.clear()

    def _see_main(self) -> None:
        """Keep where the main thread is, before it can have the lock back, and what it had computed just before."""
        self._main_cpu = self._main_cpu_now()
        self._main_rows = rows_of_thread(self._main)
        self._seen = perf_counter()

    def _call_and_look(self, call: Callable[..., object], *arguments: object) -> object:
        """Make a call that gives the interpreter's lock away, and return its result.

        Where the main thread is as we have the lock back is kept: it may have spent much of the time in a call of C
        that ended just now. No garbage collection begins afterwards: see COLLECTS_AT_ONCE.
        """
        self._collect_again()  # for as long as the program has the lock
        results: list[object] = []
        collector = self._collector if COLLECTS_AT_ONCE else None
        self._main_rows = rows_after(call, arguments, results, self._main, collector)
        self._seen = perf_counter()
        self._waited = self._lock_wait.keep()
        self._main_cpu = self._main_cpu_now()
        return results[0]

    def _main_cpu_now(self) -> float:
        main = self._threads.get(self._main_native)
        return self._cpu_of(main) if main is not None else 0.0

    def _sample(self) -> None:
        now = perf_counter()
        # What we computed with the lock held is no time in which another thread could run.
        elapsed, self._looked = max(1e-6, now - self._looked - self._held_back), now
        began = max(self._last, min(self.paused_until, self._times.moment))
        wall, self._last = self._times.moment - began, self._times.moment
        own = get_ident()
        self._samples += 1
        looks = now >= self._next_look  # at variables: the first some hundred looks at a function are kept
        if looks:
            self._next_look = now + LOOK_EARLY * PAUSE
        known = getattr(sys.modules.get("threading"), "_active", {})
        inside = self._depth > 0
        # The main thread has no frame between the interpreter's start and the first line of the program.
        main = self._threads.get(self._main_native)
        seen: dict[int, _ThreadState] = {self._main_native: main} if main is not None else {}
        most = ran = 0.0
        unclocked: list[tuple[_ThreadState, list[float]]] = []
        sampled: list[tuple[_ThreadState, int, FrameType, float, list[float]]] = []
        moved: list[int] = []
        looped: tuple[object, int] | None = None
        # Before the stacks: what a thread without the lock computes from here on is then seen as time that it ran, and
        # where it was is looked up again.
        clocks = {native: self._cpu_of(state) for native, state in self._threads.items()}
        clocks[self._main_native] = self._main_cpu
        before = {native: state.cpu for native, state in self._threads.items()}
        for ident, frame in sys._current_frames().items():
            if ident == own:
                continue
            thread = known.get(ident)
            if thread is None and frame.f_code.co_name in ("_bootstrap", "_bootstrap_inner"):
                continue  # it begins or ends: threading does not list it, and it has no name of its own
            native = (
                self._main_native if ident == self._main else getattr(thread, "native_id", None) or -ident
            )
            state = self._threads.get(native)
            if state is None:
                state = self._new_thread(native, str(getattr(thread, "name", "")) or "unnamed")
            seen[native] = state
            cpu = clocks[native] if native in clocks else self._cpu_of(state)
            ran_now = state.clock is None or cpu != state.cpu
            if ran_now or state.node in (ROOT, OURS):
                rows = self._main_rows if native == self._main_native else []
                state.node = self._tree.node_of(rows or rows_of(frame))
            if ran_now:
                state.ran = self._samples
                if looks:
                    self._look_at_values(frame)
            if state.node == OURS or self._times.moment <= self.paused_until:
                state.cpu = cpu
                continue
            sums = self._sums.setdefault((state.node, state.number, inside), [0.0, 0.0, 0])
            sums[0] += wall
            used = cpu - state.cpu
            if used > max(2 * PAUSE, self._longest.get(state.node, 0.0)):
                self._longest[state.node] = used
            if ran_now and self._more_moments:
                self._more_moments -= 1
                self._moments.append([state.number, state.node, round((now - self._begun) * 1e6)])
            sampled.append((state, native, frame, used, sums))
            if native == self._main_native and "asyncio.events" in sys.modules:
                looped = callback_of(frame), state.node
            ran += used
            most = max(most, used)
            sums[2] += 1
            state.cpu = cpu
            if state.clock is None:
                unclocked.append((state, sums))
                moved += [state.number] if (id(frame), frame.f_lasti) != state.position else []
                state.position = (id(frame), frame.f_lasti)
        # After all stacks: to ask whether a file of an event loop is ready gives the lock away.
        self._lock_wait.ask()
        if looped is not None:
            self._held.look(*looped, wall, self._call_and_look)
        for state, native, frame, used, sums in sampled:
            self._place(state, native, frame, used, elapsed, wall, sums)
        pause = max(STRETCH, STRETCH_SHARE * (self._times.moment - self._begun))
        if self._stretch.is_due(self._times.moment - self._begun, pause):
            self._stretch.close(self._times.moment - self._begun)
        self._threads = seen
        processors = ran / elapsed if self._clocks else 1.0
        self._times.note_computing(processors, (ran - most) / elapsed, busy=processors >= IDLE)
        alone = not self._times.do_threads_compete() and len(seen) > len(unclocked)
        lone = sum(self._samples - state.ran < RECENT for state in seen.values()) < 2
        self._lone = alone and lone
        if not self._lone:
            self._count_turns(before, clocks, perf_counter() - now)
        self._lock_wait.choose(alone=alone, lone=lone, often=self._given_often, loops=looped is not None)
        self._lock_wait.ask()
        if not self._clocks and unclocked:
            self._movers = moved or self._movers
            self._share_cpu([sums for state, sums in unclocked if state.number in self._movers], wall)
        if not self._finalizer:
            # children of multiprocessing end with os._exit, which skips atexit but not these
            finalize = getattr(sys.modules.get("multiprocessing.util"), "Finalize", None)
            if finalize is not None:  # else nobody has imported it, or not to its end
                self._finalizer = True
                finalize(None, self.finish, exitpriority=-100)

    def _try_lock(self) -> None:
        """Note whether the main thread gives the interpreter's lock away by itself, and where: see TRIALS."""
        main = self._threads.get(self._main_native)
        if main is None or main.clock is None:
            return
        wait, before = min(TRIAL_SWITCH, self._lock_wait.program), self._cpu_of(main)
        self._lock_wait.ask(wait)
        begun = perf_counter()
        self._call_and_look(sleep, TO_LET_GO)
        granted, ran = perf_counter(), self._main_cpu
        soon = granted - begun < AT_ONCE * wait
        if self._main_rows and ran - before >= IDLE * (granted - begun):
            self._trials += 1
            if soon:
                node = self._tree.node_of(self._main_rows)
                goes_on = self._cpu_of(main) - ran > GOES_ON * (perf_counter() - granted)
                if not goes_on:  # on a busy machine we may have the processor that it had
                    ran = self._cpu_of(main)
                    self._system.keep_lock(KEPT)
                    goes_on = self._cpu_of(main) - ran > GOES_ON * KEPT / 1e6
                self._lock_wait.ask()
                if waits_for(self._main_native, calls=self._system) in (
                    "",
                    "lock",
                ):  # not for its input, or asleep
                    self._given_at.setdefault(node, [0, 0])[goes_on] += 1
        self._lock_wait.ask()
        # Where a call of C kept us for much longer, the place that we see now is that of the next sample, which stands
        # for all of this time. As long as its first millisecond belonged to the sample before the trial, a line before
        # a long call had 2 points of it.
        if granted - begun < LONG_CALL * wait and self._times.due <= (until := min(granted, begun + wait)):
            self._times.pass_until(until)
            self._count_until(self._times.moment)
            self._looked, self._held_back = granted, 0.0

    def _count_turns(self, before: dict[int, float], clocks: dict[int, float], spent: float) -> None:
        """Add up what threads that compete for the lock computed, and what of it a sample does not place.

        Such a sample comes when one of them gives the lock away: where the others were before is not known.
        """
        for native, state in self._threads.items():
            ran = clocks.get(native, 0.0) - before.get(native, 0.0)
            if ran > 0 and state.clock is not None:
                self._turns[0] += ran
                self._soon += ran if self._at_once else 0.0
                if self._at_once and self._cpu_of(state) - clocks[native] < GOES_ON * spent:
                    self._turns[1] += ran
        computed = self._turns[0]
        self._given_often = (
            self._given_often or self._soon > GIVEN_SHARE * computed > GIVEN_SHARE * MIN_COMPUTED
        )

    def _look_at_values(self, frame: FrameType) -> None:
        """Look at a thread's variables; what cannot be looked at costs no sample."""
        try:
            self._tree.look_at_values(frame)
        except Exception as error:
            self._failed = f"{type(error).__name__}: {error}"[:200]

    def _place(
        self,
        state: _ThreadState,
        native: int,
        frame: FrameType,
        used: float,
        elapsed: float,
        wall: float,
        sums: list[float],
    ) -> None:
        """Add what a thread did in the last `wall` seconds to the sums of its stack.

        It had a processor for `used` of the `elapsed` seconds between two looks. A thread that is asleep now slept
        where it is seen, whatever it computed before: that is of the lines at which it is seen to run. What is more
        than `wall`, as between a look in time and a late one, is of the next sample: together they hold all of it.
        """
        kind, ran = "", min(1.0, used / elapsed)
        if state.number < MAX_WAITING_THREADS and state.clock is not None and ran < BUSY:
            kind = self._note_wait(state, native, wall, frame, certain=ran >= IDLE)
        if kind and ran >= IDLE:
            state.elsewhere += used
            self._stretch.add(state.number, state.node, kind, wall, 0.0)
            return
        computed = used + state.elsewhere
        state.elsewhere = max(0.0, computed - wall)
        sums[1] += computed - state.elsewhere
        ran_share = 0.0 if kind else ran if state.clock is not None else 1.0
        self._stretch.add(state.number, state.node, kind, wall, wall * ran_share)

    def _note_wait(
        self, state: _ThreadState, native: int, wall: float, frame: FrameType, *, certain: bool
    ) -> str:
        """Count what a thread waits for, and return it; nothing where it runs, or it is not known.

        `certain`: it ran lately, so only what is never a moment's stop on the way, as the lock that we hold is, counts.
        """
        kind = waits_for(native, calls=self._system)
        if not kind or (certain and kind not in CERTAIN and not (kind == "lock" and _waits_in(frame))):
            return ""
        place = (state.node, state.number, kind)
        self._waits[place] = self._waits.get(place, 0.0) + wall
        # A socket that a coroutine reads itself is waited for by the same call as all sockets by the loop.
        # Another thread, as that of a server, waits for its own sockets, and no task for it.
        loops = native == self._main_native or is_in_loop(frame)
        if kind in ("input", "sleep") and loops and "_asyncio" in sys.modules and not is_in_callback(frame):
            known = sys.modules.get("asyncio.tasks")
            scheduled = getattr(known, "_scheduled_tasks", getattr(known, "_all_tasks", None))
            frames, alone = awaited_frames(scheduled, self.task, self.tasks_before)
            if frames:
                coroutine = self._tree.node_of([(frame.f_code, frame.f_lasti) for frame in frames]), alone
                self._awaited[coroutine] = self._awaited.get(coroutine, 0.0) + wall
        return kind

    def _count_last_stretch(self) -> None:
        """Attribute the time since the last sample to the places where each thread was seen then."""
        self._count_until(perf_counter())
        self._stretch.close(self._last - self._begun)

    def _count_until(self, moment: float) -> None:
        """Count the time from the last sample to a moment where each thread was seen in that sample."""
        wall, self._last = moment - self._last, moment
        for state in (state for state in self._threads.values() if state.node not in (ROOT, OURS)):
            sums = self._sums.setdefault((state.node, state.number, self._depth > 0), [0.0, 0.0, 0])
            ran = self._cpu_of(state) - state.cpu
            state.cpu += ran
            sums[0] += wall
            sums[1] += ran + state.elsewhere
            state.elsewhere = 0.0
            self._stretch.add(state.number, state.node, "", wall, min(wall, ran))

    def _new_thread(self, native: int, name: str) -> _ThreadState:
        number = min(self._thread_count, MAX_THREADS)
        if self._thread_count <= MAX_THREADS:
            self._news["threads"].append([number, name[:80] if number < MAX_THREADS else "[more threads]"])
            if self._more_moments and native > 0 and number < MAX_THREADS:
                self._news["natives"].append([number, native])
        self._thread_count += 1
        return _ThreadState(number, thread_clock(native) if self._clocks and native > 0 else None, 0.0)

    @staticmethod
    def _cpu_of(state: _ThreadState) -> float:
        if state.clock is None:
            return state.cpu
        try:
            return time.clock_gettime(state.clock)
        except OSError:  # it has ended
            return state.cpu

    def _share_cpu(self, movers: list[list[float]], wall: float) -> None:
        """Attribute the process's time to the threads last seen to move, if threads have no clocks."""
        total = time.process_time()
        used = max(0.0, total - self._process_cpu - max(0.0, thread_time() - self._cost))
        self._process_cpu = total
        for sums in movers:
            sums[1] += min(wall, used / len(movers))

    # ------------------------------------------------------------ the file

    def _append(self, data: bytes) -> None:
        """Add to the file in one write: the workload may close every descriptor that it does not know, so none is kept.

        A disk may be slow: the lock is given away for the write, which is not that of `os`, since a program may have
        replaced it. Raises OSError where not all of it was written.
        """
        descriptor = self._system.open(self._out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            self._lock_wait.ask()
            file = FileIO(descriptor, "a", closefd=False)
            if self._call_and_look(file.write, data) != len(data):
                raise OSError(ENOSPC, "the disk is full")
        finally:
            self._collect_again()
            self._lock_wait.ask()
            self._system.close(descriptor)

    def _flush(self, last: bool = False) -> None:
        """Add a line to the file: what is new, and the sums since the line before. Times are in microseconds."""
        now = perf_counter()
        line: dict[str, object] = {"schema": SCHEMA, "process": self._key}
        if not self._header_written:
            line |= {
                "pid": os.getpid(),
                "parent": os.getppid(),
                "program": os.path.basename(sys.argv[0] if getattr(sys, "argv", None) else ""),
                "rank": os.environ.get("RANK", ""),
                "python": ".".join(map(str, sys.version_info[:3])),
                "cpu": "thread" if self._clocks else "process",
                "monotonic": round(self._begun, 6),
            }
        news: dict[str, list[Any]] = {
            "functions": self._tree.functions,
            "nodes": self._tree.nodes,
            **self._news,
        }
        line |= {name: rows for name, rows in news.items() if rows}
        line["samples"] = [
            [*key[:2], int(key[2]), round(wall * 1e6), round(cpu * 1e6), count]
            for key, (wall, cpu, count) in self._sums.items()
        ]
        waits = [[*key, round(wall * 1e6)] for key, wall in self._waits.items()]
        awaited = [[node, int(alone), round(wall * 1e6)] for (node, alone), wall in self._awaited.items()]
        longest = [[node, round(wall * 1e6)] for node, wall in self._longest.items()]
        held = [
            [node, times, round(wall * 1e6), round(ready * 1e6)]
            for node, (times, wall, ready) in self._held.sums.items()
        ]
        natives = {state.number: native for native, state in self._threads.items()}
        stretches = self._stretch.taken(natives, self._system)
        line |= {"stretches": stretches} if stretches else {}
        line |= {"moments": self._moments} if self._moments else {}
        line |= {"waits": waits} if waits else {}
        line |= {"awaited": awaited} if awaited else {}
        line |= {"longest": longest} if longest else {}
        line |= {"held": held} if held else {}
        given = [[node, *times] for node, times in self._given_at.items()]
        line |= {"trials": self._trials, "given": given} if given else {}
        line |= {"turns": [round(seconds, 6) for seconds in self._turns]} if self._turns[1] else {}
        line |= {"collecting": round(self._collecting, 6)} if self._collecting or self._entries else {}
        collected = self._collected_lines.rows()
        line |= {"collected": collected} if collected else {}
        line |= {
            "seconds": round(now - self._begun, 6),
            "cost": round(self._cost, 6),
            "entries": self._entries,
        }
        line |= {"end": True, "values": self._tree.values_seen()} if last else {}
        line |= {"failed": self._failed} if self._failed else {}
        # an empty line before it ends one that another process could not finish
        self._flushed = now
        try:
            self._append(b"\n" + json_text(line).encode() + b"\n")
        except OSError:  # said nowhere: this is in the program's own process, whose output is its own
            self._failures += 1
            if self._failures > MAX_FAILURES:
                self._generation = None
            return
        self._header_written, self._failures = True, 0
        self._sums.clear()
        self._moments = []
        for sums in (self._waits, self._awaited, self._longest, self._held.sums):
            sums.clear()
        for rows in news.values():
            rows.clear()

"""`profkit.profile`: a part of the running program, sampled in its own process, as a run like any other.

What reads and judges is loaded when a recording is read.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from profkit.core.process import ipython_shell
from profkit.core.signals import defer_interrupts
from profkit.fronts.recording import CellPart, PartRecording, cell_of

if TYPE_CHECKING:
    from profkit.core.types import RunState
    from profkit.profiling.api import Run

BLOCK = "`with profkit.profile() as run:` has all of them"
F = TypeVar("F", bound=Callable[..., Any])


def start(name: str) -> PartRecording:
    """Sample all threads of this process from now on; `name` is that of the run. Takes a millisecond."""
    return PartRecording(name).begin()


def stop(recording: PartRecording, state: RunState = "complete", failure: str | None = None) -> Run:
    """End it, and the judged run.

    Takes a tenth of a second, and the first one in a process another half, to load what judges; `recording.end()` alone
    takes a millisecond, and this may come later, or never. Raises UnreadableReport where the recording is damaged.
    """
    from profkit.fronts.read_recording import read_recording
    from profkit.profiling.api import Run

    recording.end()
    with uncollected():
        return Run(read_recording(recording, state, failure), recording.folder, recording)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Let no garbage collection begin inside.

    What reads and judges makes many objects and hardly a circle of them, and each collection that these set off would
    go through all that the program holds: with the reports of 20,000 tests a third of the time of the page.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Profiling:
    """What `profkit.profile` gives: a context manager that decorates, too."""

    def __init__(
        self, name: str | None, *, show: bool, cell: CellPart | None = None, every: int | None = None
    ) -> None:
        self._name, self._show, self._cell, self._every = name, show, cell, every

    def __enter__(self) -> Run:
        from profkit.fronts.read_recording import empty_run  # all before it begins, so that it is not sampled

        caller = cell_of(sys._getframe(1).f_code.co_filename)
        name = self._name or caller or Path(getattr(sys, "argv", [""])[0]).stem or "python"
        self._recording = PartRecording(name, self._cell)
        self._run = empty_run(self._recording)
        self._recording.begin()
        return self._run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recording = self._recording
        if not recording.is_here:
            recording.end()
            return
        with defer_interrupts() as hurry:
            try:
                self._run.document = stop(recording, *_ending(error)).document
                if self._show and not recording.reason:
                    self._run.show(file=sys.stderr)
            except Exception as fault:  # the program comes first
                print(f"profkit: no result for {recording.name}: {fault}", file=sys.stderr)
        if hurry.is_set() and error is None:
            raise KeyboardInterrupt

    def __call__(self, function: F) -> F:
        """Profile all calls of a function, as one run."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator: put `with profkit.profile():` around its loop"
            )
        calls = CollectedCalls(self._name or function.__qualname__, show=self._show, every=self._every)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                with calls.call():
                    return await function(*arguments, **named)

            return cast(F, awaited)

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            with calls.call():
                return function(*arguments, **named)

        return cast(F, called)


class CollectedCalls:
    """The calls of one function, which add up to one run: its page comes at the end of the program.

    In IPython, whose program has no end, it comes after the cell; with `every` after so many calls. What other parts
    sample meanwhile, and what a call of another such function holds, is in their pages alone.
    """

    def __init__(self, name: str, *, show: bool, every: int | None) -> None:
        self._name, self._show, self._every = name, show, every
        self._recording: PartRecording | None = None
        self._lock = threading.RLock()
        self._depth = self._count = 0  # calls that run, and those that have ended
        self._seconds = self._begun = 0.0
        self._overlaps = False  # a call ran within or beside another one: of threads, tasks, or a recursion
        self._awaits_end = False

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Count the code inside as one call, if nothing else is being sampled."""
        if not self._enter():
            yield
            return
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> bool:
        with self._lock:
            if self._depth == 0 and not self._goes_on():
                return False
            self._overlaps = self._overlaps or self._depth > 0
            self._depth += 1
            return True

    def _goes_on(self) -> bool:
        if self._recording is None:
            recording = PartRecording(self._name).begin()
            if recording.reason is not None:
                return False
            self._recording = recording
            self._at_the_end()
        elif not self._recording.resume():
            return False
        self._begun = time.perf_counter()
        return True

    def _leave(self) -> None:
        with self._lock:
            self._depth -= 1
            self._count += 1
            if self._depth == 0 and self._recording is not None:
                self._recording.pause()
                self._seconds += time.perf_counter() - self._begun
                if self._every is not None and self._count >= self._every:
                    self._finish()

    def _at_the_end(self) -> None:
        if self._awaits_end:
            return
        self._awaits_end = True
        if (shell := ipython_shell()) is not None:
            shell.events.register("post_run_cell", lambda _: self._finish())
        else:
            atexit.register(self._finish)

    def _finish(self) -> None:
        """Make the run of all calls so far, and print its page."""
        with self._lock:
            recording, self._recording = self._recording, None
            count, seconds, overlaps = self._count, self._seconds, self._overlaps
            self._count, self._seconds, self._overlaps = 0, 0.0, False
        if recording is None:
            return
        recording.end()
        if not recording.is_here or not count:
            return
        recording.calls, recording.seconds, recording.overlaps = count, seconds, overlaps
        with defer_interrupts():
            try:
                if self._show:
                    stop(recording).show(file=sys.stderr, rest=BLOCK)
            except Exception as fault:  # the program comes first
                print(f"profkit: no result for {self._name}: {fault}", file=sys.stderr)


def _ending(error: BaseException | None) -> tuple[RunState, str | None]:
    if error is None or isinstance(error, (SystemExit, GeneratorExit)):
        return "complete", None
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", None
    return "failed", f"{type(error).__name__}: {error}"


@overload
def profile(name: F) -> F:
    """Declare the use as a decorator or a block."""


@overload
def profile(name: str | None = None, *, show: bool = True, every: int | None = None) -> Profiling:
    """Declare the use as a decorator or a block."""


def profile(name: F | str | None = None, *, show: bool = True, every: int | None = None) -> F | Profiling:
    """Sample what runs inside `with profkit.profile() as run:`, or all calls of what `@profkit.profile` decorates.

    At the end the page is printed on standard error, or shown in the notebook; not with `show` False. That of a
    function comes at the end of the program or of the cell, or after `every` so many calls. `run` is then what
    `profkit.load` gives: `run.hot_spots`, `run.insights`, `run.rows()`, `run.show()`, `run.save()`. What is raised
    inside passes through. `name` is that of the run. Raises TypeError for a generator function, and ValueError for
    `every` below 1.
    """
    if every is not None and every < 1:
        raise ValueError(f"every={every} is not a number of calls")
    if callable(name):
        return Profiling(None, show=show, every=every)(name)
    return Profiling(name, show=show, every=every)

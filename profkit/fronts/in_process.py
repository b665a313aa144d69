"""`profkit.profile`: a part of the running program, sampled in its own process, as a run like any other.

What reads and judges is loaded when a recording is read.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from profkit.core.signals import defer_interrupts
from profkit.fronts.recording import PartRecording, cell_of

if TYPE_CHECKING:
    from profkit.core.types import RunState
    from profkit.profiling.api import Run

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
    return Run(read_recording(recording, state, failure), recording.folder, recording)


class Profiling:
    """What `profkit.profile` gives: a context manager that decorates, too."""

    def __init__(self, name: str | None, *, show: bool) -> None:
        self._name, self._show = name, show
        self._short = False  # calls of the decorated function are shorter than a page takes

    def __enter__(self) -> Run:
        from profkit.fronts.read_recording import empty_run  # all before it begins, so that it is not sampled

        caller = cell_of(sys._getframe(1).f_code.co_filename)
        self._recording = PartRecording(
            self._name or caller or Path(getattr(sys, "argv", [""])[0]).stem or "python"
        )
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
        """Profile each call of a function, as long as its calls take longer than their pages."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator: put `with profkit.profile():` around its loop"
            )
        name = self._name or function.__qualname__

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                with self._call(name):
                    return await function(*arguments, **named)

            return cast(F, awaited)

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            with self._call(name):
                return function(*arguments, **named)

        return cast(F, called)

    @contextlib.contextmanager
    def _call(self, name: str) -> Iterator[None]:
        if self._short:
            yield
            return
        begun, one = time.perf_counter(), Profiling(name, show=self._show)
        with one:
            yield
        seconds = one._recording.seconds
        self._short = not one._recording.reason and seconds < time.perf_counter() - begun - seconds
        if self._short:
            print(
                f"profkit: later calls of {name} are not sampled, since a page takes longer than a call; "
                "put `with profkit.profile():` around the loop",
                file=sys.stderr,
            )


def _ending(error: BaseException | None) -> tuple[RunState, str | None]:
    if error is None or isinstance(error, (SystemExit, GeneratorExit)):
        return "complete", None
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", None
    return "failed", f"{type(error).__name__}: {error}"


@overload
def profile(name: F) -> F:
    """As a decorator without arguments."""


@overload
def profile(name: str | None = None, *, show: bool = True) -> Profiling:
    """As a block, and as a decorator with a name."""


def profile(name: F | str | None = None, *, show: bool = True) -> F | Profiling:
    """Sample what runs inside `with profkit.profile() as run:`, or each call of what `@profkit.profile` decorates.

    At the end the page is printed on standard error, or shown in the notebook; not with `show` False. `run` is then
    what `profkit.load` gives: `run.hot_spots`, `run.insights`, `run.rows()`, `run.show()`, `run.save()`. What is raised
    inside passes through. `name` is that of the run. Raises TypeError for a generator function.
    """
    if callable(name):
        return Profiling(None, show=show)(name)
    return Profiling(name, show=show)

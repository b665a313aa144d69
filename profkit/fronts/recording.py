"""A part of this process that is being sampled, into a file of a temporary folder.

The recording is that of the stacks pass; where torch uses CUDA, its own profiler records the kernels beside it. Nothing
is started but a thread, and nothing is read here.
"""

from __future__ import annotations

import contextlib
import gc
import linecache
import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from profkit.core.process import ipython_shell
from profkit.core.run_folder import clean_name
from profkit.core.types import Fact
from profkit.runtime.passes.host.stacks.samples import StackSampler
from profkit.runtime.passes.host.stacks.times import FIRST_PAUSE
from profkit.runtime.passes.host.stacks.tree import OURS, Function, StackTree
from profkit.runtime.passes.host.values import FunctionValues
from profkit.runtime.region import DIRECTIVE_VARIABLE, HOST_MODULE

if TYPE_CHECKING:
    from profkit.runtime.passes.host.stacks.rows import Row

STACKS, TRACE = "artifacts/stacks.jsonl", "artifacts/trace.torch"
PATIENCE = 0.05  # seconds, for the first sample of what took longer than that
LOOKS = 0.25  # seconds between two looks at the process: memory, processor time, time in a queue
_lock = threading.Lock()
_current: list[PartRecording] = []  # the one that goes on: a process has one sampler


@dataclass(frozen=True)
class CellPart:
    """What a magic runs of a cell: the code that it compiled, the cell's code that calls it, and what the cell says.

    `texts` by the name of the cell: as a person sees it, while the code that calls has `run_line_magic(...)` there.
    """

    codes: tuple[CodeType, ...]
    caller: CodeType
    texts: Mapping[str, str]


class PartSampler(StackSampler):
    """The sampler of the stacks pass for a part of a process: it leaves nothing behind, and looks at the process."""

    # The part is what its user waits for, and no run of its own: with what asking for the lock takes, less than 5 %.
    early_share = 0.025

    def __init__(self, out: str, cell: CellPart | None = None) -> None:
        super().__init__(out)
        self._owner, self._cell = os.getpid(), cell
        # Of cells of a notebook, by the name that each has in the run.
        self.texts = dict(cell.texts) if cell is not None else {}
        self.paused = False  # the part does not run just now, and goes on later
        self.usage: list[tuple[float, float, float]] = []  # seconds so far: wall, processor, in its queue
        self.before = self.after = self.peak = 0  # bytes of memory

    def begin(self) -> None:
        """Sample from here, also in a child that was forked just now."""
        import psutil

        self._process = psutil.Process()
        self._first = self._looked_at_process = time.perf_counter()
        self._before = _seconds_used()
        self.before = self._process.memory_info().rss
        with contextlib.suppress(RuntimeError):  # no loop runs
            if (asyncio := sys.modules.get("asyncio")) is not None:
                self.task, self.tasks_before = asyncio.current_task(), asyncio.all_tasks()
        super().begin()
        # A forked child ends without `end`; in the process itself multiprocessing would keep this object to its exit.
        self._finalizer = os.getpid() == self._owner

    def finish(self) -> None:
        """Sample no more, and leave the interpreter as it was."""
        until = (end := time.perf_counter()) + PATIENCE
        while end - self._first > PATIENCE and time.perf_counter() < until:
            if any(thread.node for thread in self._threads.values()):
                break
            time.sleep(
                FIRST_PAUSE
            )  # one call into native code kept the interpreter from the beginning to here
        super().finish()
        self.task, self.tasks_before = None, ()
        gc.callbacks[:] = [callback for callback in gc.callbacks if callback != self._collected]
        self._look()

    def _sample(self) -> None:
        if self.paused:  # the next sample stands for as long as every other one
            self._last, self._looked = self._times.moment, time.perf_counter()
            for state in self._threads.values():
                state.cpu = self._cpu_of(state)
            return
        super()._sample()
        if time.perf_counter() - self._looked_at_process > LOOKS:
            self._look()

    def _try_lock(self) -> None:
        if not self.paused:
            super()._try_lock()

    def _count_last_stretch(self) -> None:
        if not self.paused:
            super()._count_last_stretch()

    def _look(self) -> None:
        self._looked_at_process = time.perf_counter()
        self.after = self._process.memory_info().rss
        self.peak = max(self.peak, self.after)
        cpu, queued = (max(0.0, now - then) for now, then in zip(_seconds_used(), self._before, strict=True))
        self.usage.append((self._looked_at_process - self._first, cpu, queued))

    def _new_tree(self) -> StackTree:
        return PartTree(self._cell, self.texts)


class PartTree(StackTree):
    """The stacks of a part: cells of a notebook have their numbers, and what a magic does around them is ours."""

    def __init__(self, cell: CellPart | None = None, texts: dict[str, str] | None = None) -> None:
        super().__init__()
        self._cell, self._given = cell, cell.texts if cell is not None else {}
        self._texts = texts if texts is not None else {}

    def node_of(self, rows: list[Row]) -> int:
        """Return the number of a stack in the tree; OURS where it is not of the part."""
        for code, _ in rows if self._cell is not None else ():
            if self._cell is not None and code in self._cell.codes:
                break
            if self._cell is not None and code is self._cell.caller:
                return OURS  # what a magic does before and after the part
        return super().node_of(rows)

    def add_function(self, code: CodeType) -> Function:
        """Return what is kept of a function that is seen for the first time."""
        function = super().add_function(code)
        function.hidden = function.hidden or (self._cell is not None and code is self._cell.caller)
        cell, row = cell_of(code.co_filename), self.functions[-1] if self.functions else None
        if cell is not None and not function.hidden and function.values is None:
            # In a terminal's IPython a cell's file is called `<ipython-input-2-...>`, as what Python itself makes is.
            function.users, function.values = True, FunctionValues()
        if cell is not None and row is not None and row[2] == code.co_filename:
            row[2] = cell
            text = "".join(linecache.getlines(code.co_filename))
            # What a magic ran has the number of its cell, which itself is one line then.
            longest = max(text, self._texts.get(cell, ""), key=lambda version: version.count("\n"))
            self._texts[cell] = self._given.get(cell, longest)
        return function


def _seconds_used() -> tuple[float, float]:
    """Return processor seconds of the process and its ended children, and the seconds of its threads in a queue."""
    from profkit.core.process_tree import seconds_queued

    times = os.times()
    return time.process_time() + times.children_user + times.children_system, seconds_queued(os.getpid())


def cell_of(file: str) -> str | None:
    """Return `cell [12]` for the file that IPython calls the code of In [12]; None for any other."""
    shell = ipython_shell()
    known = shell.compile.format_code_name(file) if shell is not None else None
    number = "".join(filter(str.isdigit, known[1])) if known is not None else ""
    return f"cell [{number}]" if number else None


class PartRecording:
    """A part of this process that is sampled from `begin` to `end`: all threads, and the children that it forks.

    `name` is that of the run, and `cell` says what a magic runs. One goes on at a time: a second one, and any in a
    program that `profkit profile` runs, samples nothing, and `reason` says so. `folder` is removed when nothing refers
    to this object any more.
    """

    def __init__(self, name: str, cell: CellPart | None = None) -> None:
        self._cell = cell
        self.name, self.started = name, time.time()
        self.seconds = 0.0  # wall time, once it has ended
        self.overlaps = False  # some of these calls ran within or beside another
        self.calls: int | None = None  # of a function, of which it has nothing else
        self.reason: Fact | None = None  # why nothing is sampled
        self.sampler: PartSampler | None = None
        self._pid = os.getpid()
        temporary = tempfile.mkdtemp(prefix="profkit-run-")
        weakref.finalize(self, _remove_folder, temporary, self._pid)
        self.folder = Path(temporary, clean_name(name))
        (self.folder / "artifacts").mkdir(parents=True)

    def begin(self) -> PartRecording:
        """Sample from now on. Takes a millisecond; with torch on a GPU the first time a second."""
        with _lock:
            if DIRECTIVE_VARIABLE in os.environ or HOST_MODULE in sys.modules:
                self.reason = Fact("profile-samples-already")
            elif running := [recording.name for recording in _current if not recording.is_paused]:
                self.reason = Fact.of("sampled-already", name=running[0])
            else:
                self._end_trace = _start_trace(str(self.folder / TRACE))
                self.sampler = PartSampler(str(self.folder / STACKS), self._cell)
                _current.append(self)
                self._begun = time.perf_counter()
                self.sampler.begin()
        return self

    @property
    def is_here(self) -> bool:
        """Return whether this is the process that began it, and no child that was forked meanwhile."""
        return os.getpid() == self._pid

    @property
    def is_paused(self) -> bool:
        """Return whether it goes on, and samples nothing just now."""
        return self.sampler is not None and self.sampler.paused

    def pause(self) -> None:
        """Sample nothing until `resume`; of a GPU what came until here is all."""
        with _lock:
            if self.sampler is not None and self in _current:
                self.sampler.paused = True
                self._end_trace(self.is_here)
                self._end_trace = lambda _: None

    def resume(self) -> bool:
        """Sample from here on; False where another part is being sampled, or this one has ended."""
        with _lock:
            if self.sampler is None or self not in _current:
                return False
            if any(not recording.is_paused for recording in _current if recording is not self):
                return False
            self.sampler.paused = False
            return True

    def end(self) -> None:
        """Sample no more. It takes a millisecond, since nothing is read; once more does nothing."""
        with _lock:
            if self not in _current or self.sampler is None:
                return
            self.seconds = time.perf_counter() - self._begun
            _current.remove(self)
            self.sampler.finish()
            self._end_trace(self.is_here)


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has this, too
        shutil.rmtree(folder, ignore_errors=True)


def _start_trace(out: str) -> Callable[[bool], None]:
    """Let torch's profiler record the GPU, where torch is loaded and finds one; what ends that."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_available():
        return lambda _: None
    from profkit.runtime.passes.host.device_trace import TorchTracer

    tracer = TorchTracer(out)
    tracer.start()  # at the first use of CUDA, where there was none yet
    return lambda is_here: tracer.finish() if is_here and cuda.is_initialized() else tracer.forget()


def _follow_fork() -> None:
    """Let a forked child sample itself, too, into the same file."""
    global _lock
    _lock = threading.Lock()  # another thread may have held it
    for recording in _current:
        if recording.sampler is not None:
            recording.sampler.begin()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_follow_fork)

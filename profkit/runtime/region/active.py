"""A region when the process is being profiled: instruments on and off, entries counted and timed, a record left.

Nothing here may break the workload: whatever goes wrong becomes a note in the record, and one line on stderr.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from time import monotonic, perf_counter
from typing import Any, TypeAlias, TypeVar, cast

from profkit.core.errors import ProfkitError
from profkit.core.types import Directive, Fact, SampleSet
from profkit.runtime.passes.host.own_library import own_library
from profkit.runtime.passes.processor import ReferenceLoop
from profkit.runtime.region import DIRECTIVE_VARIABLE, HOST_MODULE
from profkit.runtime.region.record import (
    BenchmarkTimes,
    RegionRecord,
    RegionTimes,
    save_record,
)

RegionSwitch: TypeAlias = Any
"""What turns an instrument on and off: what it needs of enter(name), exit(name), prepare, iteration(i), forget."""


LOOK_PAUSE, MAX_LOOKS = 0.02, 1000  # seconds between two readings of a device's clock, and how many are kept


class DeviceWait:
    """The switch of the timing pass: the seconds of a region include the work that it leaves to a device.

    `wait` is called at both ends of every region, also of nested ones; it does nothing until the process uses the
    device that `find` returns. Errors of the device are ignored here, since the workload meets them itself.
    """

    def __init__(
        self,
        find: Callable[[], Any],
        unless: Callable[[], bool] = lambda: False,
        watch_of: Callable[[Any], Any] | None = None,
    ) -> None:
        self._find, self._unless, self._watch_of = find, unless, watch_of
        self._device: Any = None
        self._off = False
        self._watch: Any = None
        self._look_at = 0.0
        self.clocks: list[float] = []  # Hz
        self._looks = 0
        self._held: Counter[str] = Counter()

    def wait(self) -> None:
        """Wait until the device has done this process's work, unless `unless` holds."""
        if self._off or self._unless():
            return
        if self._device is None:
            self._device = self._find()
        if self._device is not None:
            with suppress(Exception):
                self._device.synchronize()

    def look(self) -> None:
        """Record the device's present clock at the end of a region, at most once in LOOK_PAUSE seconds."""
        now = perf_counter()
        if self._watch_of is None or self._off or self._device is None or now < self._look_at:
            return
        if self._watch is None:
            self._watch = self._watch_of(self._device)
        if self._looks < MAX_LOOKS and self._watch is not None:
            state = self._watch.look()
            self._looks += 1
            self.clocks += [state.clock] if state.clock else []
            self._held.update(state.words)
        self._look_at = now + LOOK_PAUSE

    @property
    def held_by(self) -> tuple[str, ...]:
        """Return what limited the clock in at least half of the readings: a rare reason does not explain it."""
        return tuple(word for word, count in self._held.items() if 2 * count >= self._looks)

    def forget(self) -> None:
        """Forget the device in a forked child: it is the parent's."""
        self._off = self._device is not None
        self.clocks = []


def _watch_device(driver: Any) -> Any:
    with own_library:  # slow to load, and needed only if a device is used
        from profkit.runtime.passes.device_samples import watch_device

    return watch_device(driver)


def make_switches(directive: Directive | None, note: Callable[[Fact], None]) -> list[RegionSwitch]:
    """Return the switches that this pass needs; one that cannot be used is left out, with a note."""
    switches: list[RegionSwitch] = []
    host = sys.modules.get(HOST_MODULE)
    if host is not None and host.switch is not None:  # an instrument that follows no region leaves none
        switches.append(host.switch)
    switch = directive.switch if directive else None
    if directive is None or switch is None:
        return switches
    try:
        if switch.kind == "perf-control" and switch.control is not None:
            from profkit.runtime.region.perf_control import PerfControl

            switches.append(PerfControl(switch.control, switch.ack, f"{directive.record}.switch"))
        elif switch.kind == "valgrind":
            from profkit.runtime.region.valgrind import ValgrindSwitch

            switches.append(ValgrindSwitch())
        elif switch.kind == "cuda":
            from profkit.runtime.region.cuda import CudaSwitch, driver_in_use, is_recording_graph

            # no instrument is there to be switched while time is measured
            wait = DeviceWait(driver_in_use, is_recording_graph, _watch_device)
            switches.append(wait if directive.pass_name == "timing" else CudaSwitch())
        elif switch.kind == "signpost":
            from profkit.runtime.region.mps import SignpostSwitch, mps_in_use

            wait = DeviceWait(mps_in_use)
            switches.append(wait if directive.pass_name == "timing" else SignpostSwitch(wait))
    except Exception as error:
        note(Fact.of("switch-not-usable", name=switch.kind, said=str(error)))
    return switches


# What brings kernels or a compiler of its own
VERSIONED_PACKAGES = ("numpy", "torch", "triton", "jax", "cupy")
_MAX_CHARACTERS = 60  # characters of a version


def loaded_packages() -> dict[str, str]:
    """Return `{"python": "3.11.7", "torch": "2.11.0"}`; a module without a version is left out."""
    packages = {"python": ".".join(map(str, sys.version_info[:3]))}
    name = sys.implementation.name
    if name != "cpython":
        packages["python"] = f"{name} {packages['python']}"
    for name in VERSIONED_PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            packages[name] = str(version)[:_MAX_CHARACTERS]  # torch's is a text of a type of its own
    return packages


# Entries whose time is kept; beyond, every second one is dropped and the stride doubled
MAX_SECONDS = 65_536
MAX_BEGUN = 480  # entries whose begin is kept: more than a chart can tell apart
MAX_NAMES = 200  # regions told apart; a workload that numbers its names ("step 4711") has no end of them
OTHER_REGIONS = "(other regions)"
SAVE_PAUSE = 0.5  # seconds between two saves at region exits, and
SAVE_SHARE = 20  # at least this many times what the last save took: saving stays below 5 %

F = TypeVar("F", bound=Callable[..., Any])


class _RegionCounts:
    """The entries and times of one region."""

    def __init__(self, timed: bool) -> None:
        self.entries = self.iterations = 0
        self.seconds: list[float] = []
        self.every = 1
        self.timed = timed
        self.holds_benchmark = False

    def add(self, seconds: float, iterations: int) -> None:
        if self.timed and self.entries % self.every == 0:
            self.seconds.append(seconds)
            if len(self.seconds) >= MAX_SECONDS:
                del self.seconds[1::2]
                self.every *= 2
        self.entries += 1
        self.iterations += iterations


class _ThreadRegions(threading.local):
    """The regions this thread is in: name, start (None while nothing counts), process."""

    def __init__(self) -> None:
        self.open: list[tuple[str, float | None, int]] = []


class RegionSession:
    """All regions of this process under one instrument."""

    def __init__(self, directive: Directive | None) -> None:
        self.directive = directive
        # a slow instrument observes only a few entries
        skip, looked = (directive.entries if directive else None) or (0, sys.maxsize - 1)
        self._looks = range(skip + 1, skip + looked + 1)
        self._ends = directive is not None and directive.ends
        self._thread = _ThreadRegions()
        self._complained = False
        self._begin()
        self._switches = make_switches(directive, self.note)
        # where regions are timed, each end of each waits for the work that was left to a device
        self._waits = [wait for switch in self._switches if (wait := getattr(switch, "wait", None))]
        self._looks_at = next((switch for switch in self._switches if isinstance(switch, DeviceWait)), None)
        self._timing = directive is not None and directive.pass_name == "timing"
        os.register_at_fork(after_in_child=self._begin_child)
        atexit.register(self.save)

    def _begin(self) -> None:
        self._lock = threading.RLock()  # a signal handler may enter a region while one is being entered
        self._pid = os.getpid()
        self._depth = 0  # threads inside a region: the first one in and the last one out switch
        self._entered = 0  # outermost entries so far
        self._begun: list[float] = []  # when they began, every so many
        self._begun_every = 1
        self._quiet = 0
        self._regions: dict[str, _RegionCounts] = {}
        self._benchmarks: list[BenchmarkTimes] = []
        self._notes: list[Fact] = []
        self._saved_at, self._save_took = float("-inf"), 0.0
        self._finalizer = False
        self._reference = ReferenceLoop()

    def _begin_child(self) -> None:
        self._begin()
        self._ends = False  # its parent waits for what it has to do
        for switch in self._switches:
            _call_if_defined(switch, "forget")

    # ------------------------------------------------------------ regions

    def enter(self, name: str) -> None:
        """Enter a region in this thread; the process's outermost entry turns the instruments on."""
        start: float | None = None
        if not self._quiet:
            for wait in self._waits:
                wait()
            with self._lock:
                self._depth += 1
                if self._depth == 1:
                    self._entered += 1
                    if self._timing:
                        self._note_begin()
                    if self._entered in self._looks:
                        self._switch("enter", name)
                    elif self._ends and self._entered == self._looks.start - 1:
                        self.prepare()  # the last one before fills the caches
            start = perf_counter()
        self._thread.open.append((name, start, self._pid))

    def _note_begin(self) -> None:
        """Note when an outermost entry begins; of more than MAX_BEGUN every second one says the same."""
        if (self._entered - 1) % self._begun_every == 0:
            self._begun.append(monotonic())
            if len(self._begun) >= MAX_BEGUN:
                del self._begun[1::2]
                self._begun_every *= 2

    def exit(self, name: str, iterations: int = 1) -> None:
        """Leave it; the outermost exit turns the instruments off before anything is noted."""
        if self._waits and not self._quiet:
            for wait in self._waits:
                wait()
        end = perf_counter()
        entry = self._close(name)
        if entry is None or entry[1] is None or entry[2] != self._pid:
            return  # entered during warm-up, or before a fork: then it is the parent's
        with self._lock:
            self._depth -= 1
            looked = self._entered in self._looks
            if self._depth == 0 and looked:
                self._switch("exit", name)
            if looked or not self._ends:  # what is divided by its entries has those that were looked at
                self._tally(name).add(end - entry[1], iterations)
            outermost = self._depth == 0
        if outermost and self._timing:
            if self._looks_at is not None:
                self._looks_at.look()
            self._reference.run_if_due()
        if outermost and end - self._saved_at > max(SAVE_PAUSE, SAVE_SHARE * self._save_took):
            self.save()
        if outermost and self._ends and self._entered >= self._looks.stop - 1:
            self._end_process()

    def _end_process(self) -> None:
        """End the workload: all that is looked at has been. A child that multiprocessing waits for goes on."""
        multiprocessing = sys.modules.get("multiprocessing.process")
        if multiprocessing is not None and multiprocessing.parent_process() is not None:
            return
        self.save()
        for switch in self._switches:
            _call_if_defined(switch, "end")
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(0)

    def _tally(self, name: str) -> _RegionCounts:
        if name not in self._regions and len(self._regions) >= MAX_NAMES:
            if OTHER_REGIONS not in self._regions:
                self.note(Fact.of("many-regions", count=MAX_NAMES, name=OTHER_REGIONS))
            name = OTHER_REGIONS
        if name not in self._regions:
            # where allocations are traced a list of times would look like the workload's leak
            timed = self.directive is None or self.directive.pass_name != "tracemalloc"
            self._regions[name] = _RegionCounts(timed)
        return self._regions[name]

    def _close(self, name: str) -> tuple[str, float | None, int] | None:
        # from the top, by name: regions of asyncio tasks need not nest
        stack = self._thread.open
        for index in range(len(stack) - 1, -1, -1):
            if stack[index][0] == name:
                return stack.pop(index)
        return None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Ignore regions during the block: for warm-up, and for a benchmark's own timing."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def prepare(self) -> None:
        """Tell the instruments that warm-up begins."""
        for switch in self._switches:
            _call_if_defined(switch, "prepare")

    def iteration_hooks(self) -> list[Callable[[int], object]]:
        """Return what instruments want called after each iteration, usually nothing."""
        hooks = (getattr(switch, "iteration", None) for switch in self._switches)
        return [hook for hook in hooks if hook is not None]

    def _switch(self, action: str, name: str) -> None:
        for switch in list(self._switches):
            try:
                getattr(switch, action, str)(name)
            except Exception as error:  # an instrument that fails must not stop the workload
                self._switches.remove(switch)
                self.note(Fact.of("switch-failed", name=type(switch).__name__, said=str(error)))
            reason = getattr(switch, "reason", None)
            reason = Fact(**reason) if isinstance(reason, dict) else reason
            if reason and reason not in self._notes:
                self.note(reason)
            self._notes += [remark for remark in getattr(switch, "remarks", ()) if remark not in self._notes]

    # ------------------------------------------------------------ what is left behind

    def add_benchmark(self, name: str, samples: SampleSet, flops: float | None, bytes_: float | None) -> None:
        """Record what a benchmark measured, and save it."""
        for open_name, _, _ in self._thread.open:
            self._tally(open_name).holds_benchmark = True
        self._benchmarks.append(BenchmarkTimes(name, samples, flops, bytes_))
        self.save()

    def remark(self, fact: Fact) -> None:
        """Keep a fact for the record without printing it."""
        self._notes.append(fact)

    def note(self, fact: Fact) -> None:
        """Keep a fact for the record and say one on stderr, by its code: the sentences are not loaded here."""
        self.remark(fact)
        self._complain(": ".join((fact.code.replace("-", " "), *fact.names.values())))

    def _complain(self, text: str) -> None:
        if not self._complained and sys.stderr is not None:
            self._complained = True
            print(f"profkit: {text}", file=sys.stderr)

    def record(self) -> RegionRecord:
        """Return what this process has recorded so far, without regions around a benchmark: that says it better."""
        directive = self.directive
        noted = next((switch for switch in self._switches if hasattr(switch, "spans")), None)
        return RegionRecord(
            pid=self._pid,
            pass_name=directive.pass_name if directive else "",
            regions=tuple(
                RegionTimes(name, t.entries, t.iterations, tuple(t.seconds), t.every)
                for name, t in list(self._regions.items())
                if t.entries and not t.holds_benchmark
            ),
            benchmarks=tuple(self._benchmarks),
            precision=directive.precision if directive else 0.01,
            notes=tuple(self._notes),
            packages=loaded_packages(),
            spans=tuple(noted.spans) if noted is not None else (),
            spans_left_out=noted.left_out if noted is not None else 0,
            reference_loop=tuple(self._reference.seconds),
            clocks=tuple(self._looks_at.clocks) if self._looks_at is not None else (),
            begun=tuple(round(moment, 4) for moment in self._begun),
            held_by=self._looks_at.held_by if self._looks_at is not None else (),
        )

    def save(self) -> None:
        """Leave the record as it stands; a disk that is full costs the record, not the workload."""
        if self.directive is None or not (self._regions or self._benchmarks):
            return
        begin = perf_counter()
        try:
            save_record(self.record(), f"{self.directive.record}.{self._pid}.json")
        except (OSError, ValueError) as error:
            self._complain(f"cannot write the region record: {error}")
        self._saved_at = perf_counter()
        self._save_took = self._saved_at - begin
        if not self._finalizer and "multiprocessing.util" in sys.modules:
            # a multiprocessing child ends with os._exit, which skips atexit but not these
            self._finalizer = True
            sys.modules["multiprocessing.util"].Finalize(None, self.save, exitpriority=0)


def _call_if_defined(switch: RegionSwitch, action: str) -> None:
    method = getattr(switch, action, None)
    if method is not None:
        try:
            method()
        except Exception as error:
            print(f"profkit: {type(switch).__name__}.{action} failed: {error}", file=sys.stderr)


def _read_directive() -> Directive | None:
    text = os.environ.get(DIRECTIVE_VARIABLE)
    if text is None:
        return None
    from profkit.core.codec import from_plain_data

    try:
        return from_plain_data(Directive, json.loads(text), "directive")
    except (ProfkitError, ValueError, RecursionError) as error:
        print(f"profkit: {DIRECTIVE_VARIABLE} is not usable, nothing is recorded: {error}", file=sys.stderr)
        return None


session = RegionSession(_read_directive())


class ActiveRegion:
    """A region of a profiled process: context manager and decorator."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        session.enter(self._name)

    def __exit__(self, *_: object) -> None:
        session.exit(self._name)

    def __call__(self, function: F) -> F:
        """Mark every call of `function`; of a coroutine function, every run of its coroutine."""
        if function.__code__.co_flags & 0x80 if hasattr(function, "__code__") else False:  # CO_COROUTINE

            @wraps(function)
            async def run(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        else:

            @wraps(function)
            def run(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return cast("F", run)


def region(name: str) -> ActiveRegion:
    """Mark what counts, as a context manager or a decorator; reports show `name`.

    May be nested and entered again, in any thread: instruments run from the outermost entry to its exit.
    Raises TypeError when `name` is not a string (a decorator without its name would swallow the function).
    """
    if not isinstance(name, str):
        raise TypeError('a region needs its name: @profkit.region("name")')
    return ActiveRegion(name)

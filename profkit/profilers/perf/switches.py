"""Reads perf's records of switches: when threads gave up the processor and came back, and why they waited.

The text has a line for each record, `4752/4753 5109.096111: PERF_RECORD_SWITCH OUT preempt`, and one for each
sample of the event `context-switches`, which comes just before its `OUT`. A thread that was preempted waits
for a processor, and for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

from profkit.core.files.regular import open_regular
from profkit.profilers.files import reading
from profkit.profilers.perf.samples import SWITCHES, base_event

_TASK = re.compile(rb"PERF_RECORD_(FORK|COMM|EXIT)")  # what `tasks.read_tasks` reads
_TIME = re.compile(rb"\d{1,12}\.\d{6,9}:")
JOIN = "join"  # of a thread that ends: what that does meanwhile is what is waited for
_CONSEQUENCES = ("lock", JOIN)  # of what another thread does, or waits for
# s: who ends wakes up the thread that joins it, which may wait for a processor then, or have one before the other is
# off its own. What ends because the joining thread goes on ends later.
BEFORE, AFTER = 5e-3, 1e-3
LONG, MAX_LONG = 0.01, 10_000  # s, and how many of those are kept of a thread
Moment: TypeAlias = "tuple[bytes, bytes]"  # a thread, and the time as perf writes it


@dataclass
class ThreadWaits:
    """The waits of one thread, in seconds: by their length, and by the thread that ran when each ended."""

    process: bytes
    first: float
    last: float
    lengths: dict[int, list[float]] = field(default_factory=dict)  # power of four -> how many, seconds
    woken_by: dict[bytes, float] = field(default_factory=dict)
    long: list[tuple[float, float]] = field(default_factory=list)  # when the long ones began and ended

    @property
    def span(self) -> float:
        """Return the seconds from the first record of the thread to the last."""
        return self.last - self.first


@dataclass(frozen=True)
class SwitchTimes:
    """The waits of each thread, and the length in seconds of those that were sampled."""

    threads: dict[bytes, ThreadWaits]
    sampled: dict[Moment, float]


def length_class(seconds: float) -> int:
    """Return the power of four microseconds of a wait's length: waits of one class count as alike."""
    return int(seconds * 1e6).bit_length() >> 1


@lru_cache(maxsize=64)
def is_switch(event: bytes | None) -> bool:
    """Return whether the samples of an event are of threads that give up the processor."""
    return event is not None and base_event(event.decode("utf-8", "replace")) == SWITCHES


def read_switches(path: Path) -> SwitchTimes:
    """Read the text that `command.switches_argv` writes; waits that never ended are left out.

    Raises UnreadableReport where the file cannot be read.
    """
    threads: dict[bytes, ThreadWaits] = {}
    sampled: dict[Moment, float] = {}
    waiting_since: dict[bytes, float] = {}  # when a thread began to wait
    pending: dict[bytes, bytes] = {}  # the time of the sample of the switch that comes next
    ran: dict[bytes, tuple[bytes, bytes]] = {}  # process -> the last two threads of it that ran
    for process, thread, at, fields in switch_records(path):
        now = float(at)
        waits = threads.get(thread)
        if waits is None:
            waits = threads[thread] = ThreadWaits(process, now, now)
        waits.last = now
        last = ran.get(process, (thread, thread))
        if fields == IN:
            began, sample = waiting_since.pop(thread, None), pending.pop(thread, None)
            if began is not None:
                # Which thread of its process ran last ended the wait, or what ended it was none of them.
                waker = next((candidate for candidate in last if candidate != thread), None)
                _add_wait(waits, began, now, waker)
                if sample is not None:
                    sampled[thread, sample] = now - began
        elif fields == OUT:
            waiting_since[thread] = now
        elif fields == PREEMPTED:
            pending.pop(thread, None)
        elif is_switch(fields[0].removesuffix(b":")):
            pending[thread] = at
        if last[0] != thread:
            ran[process] = (thread, last[0])
        elif process not in ran:
            ran[process] = last
    return SwitchTimes(threads, sampled)


IN, OUT = [b"PERF_RECORD_SWITCH", b"IN"], [b"PERF_RECORD_SWITCH", b"OUT"]
PREEMPTED = [*OUT, b"preempt"]


def switch_records(path: Path) -> Iterator[tuple[bytes, bytes, bytes, list[bytes]]]:
    """Yield process, thread, time and the rest of each line.

    Lines are split by hand, since a regular expression takes twice as long.
    """
    with reading(path), open_regular(path) as file:
        for line in file:  # MAX_SWITCHES at most
            numbers, at, *fields = line.split(None, 5) if b"/" in line else (b"", b"")
            process, _, thread = numbers.partition(b"/")
            if fields and _TIME.fullmatch(at) and thread.isdigit() and not _TASK.match(fields[0]):
                yield process, thread, at[:-1], fields


def _add_wait(waits: ThreadWaits, began: float, ended: float, waker: bytes | None) -> None:
    seconds = ended - began
    length = length_class(seconds)
    count_and_seconds = waits.lengths.get(length)
    if count_and_seconds is None:
        count_and_seconds = waits.lengths[length] = [0.0, 0.0]
    if seconds >= LONG and len(waits.long) < MAX_LONG:
        waits.long.append((began, ended))
    count_and_seconds[0] += 1
    count_and_seconds[1] += seconds
    if waker is not None:
        waits.woken_by[waker] = waits.woken_by.get(waker, 0.0) + seconds


# ------------------------------------------------------------ which waits the program's time is


class _Waiter(Protocol):
    """The part of a stack that is the program's own, as the reader of samples keeps it."""

    @property
    def keys(self) -> Sequence[tuple[str, int]]:
        """Return its addresses; empty where no function of the program waits."""


_Chain = TypeVar("_Chain", bound=_Waiter)


@dataclass
class Blamed(Generic[_Chain]):
    """Waits of one kind with one stack: their seconds, and about how many there were.

    `origin` identifies parts of the same waits, of `whole` seconds. `awaited`: where another thread waits for
    these.
    """

    chain: _Chain
    kind: str
    seconds: float
    times: float
    whole: float
    origin: tuple[bytes, int]
    awaited: _Chain | None = None

    def part(self, share: float) -> Blamed[_Chain]:
        """Return the same waits with a share (0..1) of the seconds."""
        return replace(self, seconds=self.seconds * share)


class SampledWaits(Generic[_Chain]):
    """The sampled switches of one program, summed up to explain the main thread's waits.

    A wait that was sampled stands for all waits of its thread that are about as long: what they sum up to is
    known. Where none of those was sampled, nor one of the next length, they stay without a place.
    """

    def __init__(self, switches: SwitchTimes | None) -> None:
        self._switches = switches or SwitchTimes({}, {})
        self._samples: dict[tuple[bytes, int], dict[tuple[_Chain, str], float]] = {}
        self._joins: list[tuple[float, float]] = []  # when the main thread began to join another, and ended
        first = next(iter(self._switches.threads.values()), None)
        self._main = first.process if first is not None else b""

    def add(self, thread: bytes, at: bytes, period: float, kind: str, chain: _Chain) -> None:
        """Count one sample, which stands for `period` switches; nothing where its thread did not wait."""
        length = self._switches.sampled.get((thread, at))
        if length is None:
            return
        alike = self._samples.setdefault((thread, length_class(length)), {})
        alike[chain, kind] = alike.get((chain, kind), 0.0) + period * length
        if kind == JOIN and thread == self._main:
            self._joins.append((float(at), float(at) + length))

    @property
    def span(self) -> float:
        """Return the seconds from the main thread's first record to its last; 0 where it has none."""
        main = self._switches.threads.get(self._main)
        return main.span if main is not None else 0.0

    def blamed(self) -> list[Blamed[_Chain]]:
        """Return the main thread's waits by their cause; together they are no longer than these.

        While it waits for a lock or a signal of another thread, that one may itself wait for something: the time is
        that wait's. While it joins a thread, the time is that of the thread's own waits.
        """
        if self._main not in self._switches.threads:
            return []
        traced = self._traced(self._main)
        joined = sum(wait.seconds for wait in traced if wait.kind == JOIN)
        joins = [*self._joins, *self._unseen_joins()]
        whole = sum(end - begin for begin, end in self._joins)
        for begin, end in joins:
            if (worker := self._ended(begin, end)) is not None:
                span = max(self._switches.threads[worker].span, 1e-9)
                scale = joined / whole if (begin, end) in self._joins else 1.0
                part = min(1.0, scale * (end - begin) / span)
                traced = traced + [wait.part(part) for wait in self._traced(worker)]
        return [wait for wait in traced if wait.kind != JOIN and wait.chain.keys and wait.seconds > 0]

    def _unseen_joins(self) -> list[tuple[float, float]]:
        """Return the main thread's long waits without a sample that were over when a thread ended.

        After a few quick switches perf takes no sample of the next one, which may be a join for the rest of the run.
        """
        return [
            (begin, end)
            for begin, end in self._switches.threads[self._main].long
            if (self._main, length_class(end - begin)) not in self._samples
            and (worker := self._ended(begin, end)) is not None
            and self._switches.threads[worker].last >= end - BEFORE
        ]

    def _ended(self, begin: float, end: float) -> bytes | None:
        """Return the thread of the first process whose end ended a join: it has no later record."""
        lasts = {
            waits.last: thread
            for thread, waits in self._switches.threads.items()
            if thread != waits.process == self._main and begin <= waits.last <= end + AFTER
        }
        if not lasts:
            return None
        near = max((last for last in lasts if end - BEFORE <= last <= end), default=None)
        return lasts[near or min((last for last in lasts if last > end), default=max(lasts))]

    def waits_elsewhere(self, thread: bytes) -> float:
        """Return the seconds that all other threads wait together, except for locks and each other."""
        return sum(
            wait.seconds
            for other_thread in self._switches.threads
            if other_thread != thread
            for wait in self._waits_of(other_thread)
            if wait.kind not in _CONSEQUENCES
        )

    def _traced(self, thread: bytes) -> list[Blamed[_Chain]]:
        """Return the waits of a thread, with those for a lock traced to the thread that ended them.

        The time of a lock is that of what the other thread waited for meanwhile.
        """
        waits = list(self._waits_of(thread))
        locks = [wait for wait in waits if wait.kind == "lock"]
        waited = sum(wait.seconds for wait in locks)
        wakers = self._switches.threads[thread].woken_by
        woken = sum(wakers.values())
        if waited <= 0 or woken <= 0:
            return waits
        at = max(locks, key=lambda wait: wait.seconds).chain
        led: list[Blamed[_Chain]] = []
        for waker, weight in wakers.items():
            causes = [wait for wait in self._waits_of(waker) if wait.kind not in _CONSEQUENCES]
            whole, time = sum(cause.seconds for cause in causes), waited * weight / woken
            if whole > 0:
                led += [replace(cause.part(min(1.0, time / whole)), awaited=at) for cause in causes]
        unexplained = max(0.0, 1 - sum(wait.seconds for wait in led) / waited)
        return [wait.part(unexplained) if wait.kind == "lock" else wait for wait in waits] + led

    def _waits_of(self, thread: bytes) -> Iterator[Blamed[_Chain]]:
        waits = self._switches.threads.get(thread)
        for length, (times, seconds) in waits.lengths.items() if waits is not None else ():
            near = (
                self._samples.get((thread, near_length)) for near_length in (length, length + 1, length - 1)
            )
            alike = next((samples for samples in near if samples), {})
            whole = sum(alike.values())
            for (chain, kind), weight in alike.items():
                share = weight / whole
                long = share * seconds
                yield Blamed(chain, kind, long, share * times, long, (thread, length))


# ------------------------------------------------------------ what a wait is for


# The kernel's functions tell what a descriptor is; without them its kind is that of the call.
_OF_KERNEL = (
    ("sync", r".*(f(data)?sync|sync_file|sync_fs|do_sync)\w*"),
    ("sleep", r"do_nanosleep|hrtimer_nanosleep"),
    ("lock", r"(__)?futex_(do_)?wait\w*|do_futex|\w*_sem(timed)?op\w*"),
    ("pipe", r"(anon_)?pipe_(read|write|wait\w*)|fifo_open"),
    ("network", r"(__)?sys_(recv|send|accept|connect)\w*|sock_(recv|send|read|write)\w*|inet_\w+|unix_stream_\w+"),
    ("input", r"do_(sys_)?poll|do_select|core_sys_select|ep_poll|do_epoll_wait|n_tty_read|tty_read"),
    ("child", r"do_wait|kernel_wait(4|id)"),
    ("file", r"vfs_(read|write)v?|filemap_\w+|folio_wait_\w+|ksys_p?(read|write)\w*|do_filp_open"),
)  # fmt: skip
_OF_LIBRARY = (
    (JOIN, r"pthread_(\w+_)?(clock|timed)?join\w*"),
    ("sleep", r"(clock_)?nanosleep|u?sleep"),
    ("lock", r"futex\w*|pthread_(cond|mutex|rwlock|barrier)_\w+|sem_\w*wait\w*|lll_lock_wait\w*|cnd_wait|mtx_lock"),
    ("input", r"p?poll|p?select|epoll_p?wait\w*"),
    ("network", r"(recv|send)(m?msg|from|to)?|accept4?|connect"),
    ("child", r"wait(4|id|pid|3)?|system|pclose"),
    ("sync", r"f(data)?sync|msync|sync_file_range|syncfs"),
    ("file", r"p?(read|write)v?(64)?|open(at)?(64)?"),
)  # fmt: skip
_KERNEL_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in _OF_KERNEL)
_LIBRARY_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in _OF_LIBRARY)
_PREFIX = re.compile(r"^(__GI_)?(_*libc_|_+)?")


def wait_kind(kernel: Sequence[str], library: Sequence[str]) -> str:
    """Return the kind of wait of a stack, by the functions of kernel and libraries in it; else "waiting".

    Both innermost first, without versions of symbols. A read is of a file where only its call is known.

    >>> wait_kind(["schedule", "anon_pipe_read", "vfs_read"], ["__GI___read"]), wait_kind([], ["read"])
    ('pipe', 'file')
    >>> wait_kind(["schedule", "futex_wait"], ["__futex_abstimed_wait_common", "__pthread_clockjoin_ex"])
    'join'
    """
    plain = [_PREFIX.sub("", name) for name in library]
    if any(_LIBRARY_KINDS[0][1].fullmatch(name) for name in plain):
        return JOIN
    for names, kinds in ((kernel, _KERNEL_KINDS), (plain, _LIBRARY_KINDS)):
        for kind, pattern in kinds:
            if any(pattern.fullmatch(name) for name in names):
                return kind
    return "waiting"

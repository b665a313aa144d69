"""Builds the lanes of a compiled program's threads by perf's switches.

A lane shows when a thread ran, waited, and could run without having a processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from profkit.analysis.stacks.merge import KERNEL
from profkit.analysis.stacks.wall_time import WallStack, WallThread, wall_time
from profkit.analysis.timeline.thread_record import Stretch, ThreadRecord, threads_timeline
from profkit.core.types import Frame, MarkKind, MarkLabel, Stacks, Timeline
from profkit.profilers.perf.script import parse_frame
from profkit.profilers.perf.source_lines import native_samples, waits_for_what
from profkit.profilers.perf.switches import IN, JOIN, OUT, PREEMPTED, is_switch, length_class, switch_records

FIRST_WIDTH, MAX_PARTS = 1e-4, 4096  # s, and of how many parts a run is made before each is twice as long
MAX_NAMED = 300_000  # samples by which parts are named
MAX_THREADS = 256
_KINDS: dict[str, MarkKind] = {
    "lock": "lock", JOIN: "lock", "sleep": "sleep", "input": "input", "network": "network", "child": "child",
    "file": "file", "pipe": "pipe", "sync": "sync",
}  # fmt: skip
_RUNS, _QUEUES, _WAITS = "native", "processor-wait", "waits"  # waits are kept by kind, or by class of length


@dataclass
class _Parts:
    """Seconds of each thread by part of the run and by what it did, in parts that grow with the run."""

    begun: float | None = None
    width: float = FIRST_WIDTH
    sums: dict[bytes, dict[int, Counter[str | int]]] = field(default_factory=dict)

    def add(self, thread: bytes, begin: float, end: float, what: str | int) -> None:
        """Count what a thread did from `begin` to `end`."""
        if self.begun is None:
            self.begun = begin
        while (end - self.begun) / self.width >= MAX_PARTS:
            self._widen()
        if thread not in self.sums and len(self.sums) >= MAX_THREADS:
            return
        parts = self.sums.setdefault(thread, {})
        for part in range(
            max(0, int((begin - self.begun) / self.width)), int((end - self.begun) / self.width) + 1
        ):
            low, high = self.begun + part * self.width, self.begun + (part + 1) * self.width
            if (seconds := min(end, high) - max(begin, low)) > 0:
                parts.setdefault(part, Counter())[what] += seconds  # type: ignore[assignment]

    def _widen(self) -> None:
        self.width *= 2
        for thread, parts in self.sums.items():
            joined: dict[int, Counter[str | int]] = {}
            for part, sums in parts.items():
                joined.setdefault(part // 2, Counter()).update(sums)
            self.sums[thread] = joined


@dataclass
class _Sampled:
    """The content of the samples: names of threads, kinds of waits, and where a thread was."""

    names: dict[bytes, bytes] = field(default_factory=dict)  # process, by thread
    kinds: dict[tuple[bytes, bytes], str] = field(default_factory=dict)  # by thread and time
    places: dict[tuple[bytes, str], Counter[str]] = field(
        default_factory=dict
    )  # of waits, by thread and kind
    running: list[tuple[bytes, float, str]] = field(default_factory=list)


def read_threads(switched: Path, text: Path, program: Path) -> tuple[Stacks | None, Timeline | None]:
    """Read what each thread did in a recording with switches, whose samples are in `text`.

    Return the wall time of all threads as stacks, including waiting ones, and a lane for each thread; None without
    switches. Raises UnreadableReport where a file cannot be read.
    """
    sampled = _read_samples(text, program.name)
    lanes = _LaneCollector(sampled)
    for process, thread, at, fields in switch_records(switched):
        lanes.add(process, thread, at, fields)
    if lanes.parts.begun is None:
        return None, None
    names = (program.name,) * len(set(lanes.processes.values()))
    timeline = threads_timeline(_records(lanes, sampled), lanes.last - lanes.first, names)
    return _stacks_of_all(lanes, text), timeline


MAX_NAMED_THREADS = 24  # with a frame of their own in the flame graph


def _stacks_of_all(lanes: _LaneCollector, text: Path) -> Stacks | None:
    """Return the wall time of all threads as stacks.

    How long a thread ran and waited is counted by its switches; samples divide that by stack.
    """
    ran: dict[bytes, Counter[tuple[Frame, ...]]] = {}
    waited: dict[tuple[bytes, str], Counter[tuple[Frame, ...]]] = {}
    for _, thread, at, event, period, lines in native_samples(text):
        frames = tuple(frame for line in reversed(lines) if (frame := parse_frame(line)) is not None)
        if is_switch(event):
            kind = waits_for_what(lines)
            own = tuple(frame for frame in frames if frame.library != KERNEL)
            waited.setdefault((thread, kind), Counter())[own] += lanes.lengths.get((thread, at), 0.0)  # type: ignore[assignment]
        else:
            ran.setdefault(thread, Counter())[frames] += period  # type: ignore[assignment]
    order = sorted(lanes.seconds, key=lambda thread: -lanes.seconds[thread][_RUNS])
    own_frame = set(order[:MAX_NAMED_THREADS])
    threads: list[WallThread] = []
    for number, (thread, process) in enumerate(lanes.processes.items(), 1):
        name = "main" if thread == process else f"thread {number}" if thread in own_frame else "other threads"
        threads.append(WallThread(name, list(_wall_stacks(thread, lanes, ran.get(thread), waited))))
    return wall_time(threads)


def _wall_stacks(
    thread: bytes,
    lanes: _LaneCollector,
    ran: Counter[tuple[Frame, ...]] | None,
    waited: dict[tuple[bytes, str], Counter[tuple[Frame, ...]]],
) -> Iterator[WallStack]:
    """Yield the seconds of one thread by stack; time without a sample is shown below the thread itself."""
    waits: dict[str, float] = {}
    for what, seconds in lanes.seconds.get(thread, Counter[str | int]()).items():
        if what == _RUNS:
            for frames, share in _shares(ran):
                yield WallStack(frames, ran=share * seconds)
        else:
            kind = "queue" if what == _QUEUES else lanes.kind_of(thread, what)
            waits[kind] = waits.get(kind, 0.0) + seconds
    for kind, waiting in waits.items():
        shown = "lock" if kind == JOIN else kind
        for frames, share in _shares(waited.get((thread, kind))):
            yield WallStack(frames, waits={shown: share * waiting})


def _shares(weights: Counter[tuple[Frame, ...]] | None) -> Iterator[tuple[tuple[Frame, ...], float]]:
    whole = sum(weights.values()) if weights else 0.0
    if not weights or whole <= 0:
        yield (), 1.0
        return
    for frames, weight in weights.items():
        yield frames, weight / whole


class _LaneCollector:
    """Collects what each thread did from one switch to the next; takes the switches in order."""

    def __init__(self, sampled: _Sampled) -> None:
        self._sampled = sampled
        self.parts = _Parts()
        self.processes: dict[bytes, bytes] = {}  # by thread
        self.by_class: dict[tuple[bytes, int], Counter[str]] = {}  # kinds of a thread's waits by their length
        self.first = self.last = -1.0
        self._since: dict[
            bytes, tuple[float, str, str]
        ] = {}  # when what it does began, what, and the kind of a wait
        self._pending: dict[bytes, bytes] = {}  # the time of the sample of the switch that comes next
        self._sampled_wait: dict[bytes, bytes] = {}  # that of the wait a thread is in
        self.seconds: dict[bytes, Counter[str | int]] = {}  # of each thread, by what it did
        self.lengths: dict[
            tuple[bytes, bytes], float
        ] = {}  # of sampled waits, by thread and time of the sample

    def add(self, process: bytes, thread: bytes, at: bytes, what: list[bytes]) -> None:
        """Add one record, as `switches.switch_records` yields it."""
        now = float(at)
        self.first, self.last = (now if self.first < 0 else self.first), now
        self.processes.setdefault(thread, process)
        begun, did, kind = self._since.get(thread, (now, "", ""))
        if what == IN:
            if did == _WAITS:
                length = length_class(now - begun)
                self._count(thread, begun, now, kind or length)
                if (sample := self._sampled_wait.pop(thread, None)) is not None:
                    self.lengths[thread, sample] = now - begun
                if kind:
                    self.by_class.setdefault((thread, length), Counter())[kind] += 1
            elif did == _QUEUES:
                self._count(thread, begun, now, _QUEUES)
            self._since[thread] = now, _RUNS, ""
        elif what in (OUT, PREEMPTED):
            if did == _RUNS:
                self._count(thread, begun, now, _RUNS)
            sample = self._pending.pop(thread, b"")
            if sample and what == OUT:
                self._sampled_wait[thread] = sample
            kind = self._sampled.kinds.get((thread, sample), "")
            self._since[thread] = now, _WAITS if what == OUT else _QUEUES, kind
        elif is_switch(what[0].removesuffix(b":")):
            self._pending[thread] = at

    def _count(self, thread: bytes, begin: float, end: float, what: str | int) -> None:
        self.parts.add(thread, begin, end, what)
        self.seconds.setdefault(thread, Counter())[what] += end - begin  # type: ignore[assignment]

    def kind_of(self, thread: bytes, what: str | int) -> str:
        """Return the kind of a wait; one without a sample gets that of similarly long waits of its thread."""
        if isinstance(what, str):
            return what
        near = (self.by_class.get((thread, nearby)) for nearby in (what, what + 1, what - 1))
        return next((counts.most_common(1)[0][0] for counts in near if counts), "")


def _read_samples(text: Path, program: str) -> _Sampled:
    sampled = _Sampled()
    for process, thread, at, event, _, frames in native_samples(text):
        sampled.names[thread] = process
        name = _own_function(frames, program)
        if is_switch(event):
            kind = waits_for_what(frames)
            sampled.kinds[thread, at] = kind
            sampled.places.setdefault((thread, kind), Counter())[name] += 1
        elif len(sampled.running) < MAX_NAMED:
            sampled.running.append((thread, float(at), name))
    return sampled


def _own_function(frames: list[bytes], program: str) -> str:
    """Return the innermost function of the program, else the innermost that is not the kernel's."""
    parsed: list[Frame] = [frame for line in frames[:200] if (frame := parse_frame(line)) is not None]
    own = next((frame for frame in parsed if (frame.library or "").rpartition("/")[2] == program), None)
    user_space = next((frame for frame in parsed if frame.library != KERNEL), parsed[0] if parsed else None)
    chosen = own or user_space
    return chosen.function.partition("+0x")[0] if chosen is not None else ""


def _records(lanes: _LaneCollector, sampled: _Sampled) -> list[ThreadRecord]:
    """Return a lane for each thread.

    What it ran in each part is the function of most samples there, or of the last ones.
    """
    parts, processes, first = lanes.parts, lanes.processes, lanes.first
    begun = parts.begun or first
    named: dict[tuple[bytes, int], Counter[str]] = {}
    for thread, at, name in sampled.running:
        named.setdefault((thread, int((at - begun) / parts.width)), Counter())[name] += 1
    numbers = {process: n for n, process in enumerate(dict.fromkeys(processes.values()))}
    records: list[ThreadRecord] = []
    for number, (thread, process) in enumerate(processes.items()):
        name = "main" if thread == process else f"thread {number + 1}"
        record = ThreadRecord("thread", name, numbers[process], number)
        latest = ""
        for part, sums in sorted(parts.sums.get(thread, {}).items()):
            counts = named.get((thread, part))
            latest = counts.most_common(1)[0][0] if counts else latest
            begin = begun + part * parts.width - first
            for what, seconds in sums.items():
                label = _label(thread, what, latest, sampled, lanes)
                record.stretches.append(Stretch(begin, begin + parts.width, seconds, label))
        records.append(record)
    return records


def _label(
    thread: bytes,
    what: str | int,
    running: str,
    sampled: _Sampled,
    lanes: _LaneCollector,
) -> MarkLabel:
    """Return the label of what a thread did, with the place at which most of it was seen."""
    if what == _RUNS:
        return MarkLabel("native", running)
    if what == _QUEUES:
        return MarkLabel("processor-wait", running)
    kind = lanes.kind_of(thread, what)
    places = sampled.places.get((thread, kind))
    return MarkLabel(_KINDS.get(kind, "waiting"), places.most_common(1)[0][0] if places else "")

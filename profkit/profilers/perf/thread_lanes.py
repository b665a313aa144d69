"""When the threads of a compiled program ran, waited, and could run without a processor, by perf's switches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from profkit.analysis.stacks.merge import KERNEL
from profkit.analysis.timeline.thread_record import Stretch, ThreadRecord, threads_timeline
from profkit.core.types import Frame, MarkKind, MarkLabel, Timeline
from profkit.profilers.perf.script import parse_frame
from profkit.profilers.perf.source_lines import native_samples, waits_for_what
from profkit.profilers.perf.switches import IN, JOIN, OUT, PREEMPTED, is_switch, length_class, switch_records

FIRST_WIDTH, MOST_PARTS = 1e-4, 4096  # s, and of how many parts a run is made before each is twice as long
MOST_NAMED = 300_000  # samples by which parts are named
MOST_THREADS = 256
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
        while (end - self.begun) / self.width >= MOST_PARTS:
            self._widen()
        if thread not in self.sums and len(self.sums) >= MOST_THREADS:
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
    """What samples say: names of threads, kinds of waits, and where a thread was."""

    names: dict[bytes, bytes] = field(default_factory=dict)  # process, by thread
    kinds: dict[tuple[bytes, bytes], str] = field(default_factory=dict)  # by thread and time
    places: dict[tuple[bytes, str], Counter[str]] = field(
        default_factory=dict
    )  # of waits, by thread and kind
    running: list[tuple[bytes, float, str]] = field(default_factory=list)


def read_thread_lanes(switched: Path, text: Path, program: Path) -> Timeline | None:
    """The lanes of a recording with switches, whose samples stand in `text`; None where it has no switch.

    Raises UnreadableReport where a file cannot be read.
    """
    sampled = _read_samples(text, program.name)
    lanes = _Lanes(sampled)
    for process, thread, at, what in switch_records(switched):
        lanes.add(process, thread, at, what)
    if lanes.parts.begun is None:
        return None
    names = (program.name,) * len(set(lanes.processes.values()))
    return threads_timeline(_records(lanes, sampled), lanes.last - lanes.first, names)


class _Lanes:
    """Fed with the switches in order: what each thread did from one to the next."""

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

    def add(self, process: bytes, thread: bytes, at: bytes, what: list[bytes]) -> None:
        """One record, as `switches.switch_records` gives it."""
        now = float(at)
        self.first, self.last = (now if self.first < 0 else self.first), now
        self.processes.setdefault(thread, process)
        begun, did, kind = self._since.get(thread, (now, "", ""))
        if what == IN:
            if did == _WAITS:
                length = length_class(now - begun)
                self.parts.add(thread, begun, now, kind or length)
                if kind:
                    self.by_class.setdefault((thread, length), Counter())[kind] += 1
            elif did == _QUEUES:
                self.parts.add(thread, begun, now, _QUEUES)
            self._since[thread] = now, _RUNS, ""
        elif what in (OUT, PREEMPTED):
            if did == _RUNS:
                self.parts.add(thread, begun, now, _RUNS)
            sample = self._pending.pop(thread, b"")
            kind = self._sampled.kinds.get((thread, sample), "")
            self._since[thread] = now, _WAITS if what == OUT else _QUEUES, kind
        elif is_switch(what[0].removesuffix(b":")):
            self._pending[thread] = at


def _read_samples(text: Path, program: str) -> _Sampled:
    found = _Sampled()
    for process, thread, at, event, _, frames in native_samples(text):
        found.names[thread] = process
        name = _own_function(frames, program)
        if is_switch(event):
            kind = waits_for_what(frames)
            found.kinds[thread, at] = kind
            found.places.setdefault((thread, kind), Counter())[name] += 1
        elif len(found.running) < MOST_NAMED:
            found.running.append((thread, float(at), name))
    return found


def _own_function(frames: list[bytes], program: str) -> str:
    """The innermost function of the program, else the innermost one that is not the kernel's."""
    parsed: list[Frame] = [one for line in frames[:200] if (one := parse_frame(line)) is not None]
    own = next((one for one in parsed if (one.library or "").rpartition("/")[2] == program), None)
    other = next((one for one in parsed if one.library != KERNEL), parsed[0] if parsed else None)
    chosen = own or other
    return chosen.function.partition("+0x")[0] if chosen is not None else ""


def _records(lanes: _Lanes, sampled: _Sampled) -> list[ThreadRecord]:
    """A lane for each thread: what it ran in each part is the function of most samples there, or of the last ones."""
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
            seen = named.get((thread, part))
            latest = seen.most_common(1)[0][0] if seen else latest
            begin = begun + part * parts.width - first
            for what, seconds in sums.items():
                label = _label(thread, what, latest, sampled, lanes.by_class)
                record.stretches.append(Stretch(begin, begin + parts.width, seconds, label))
        records.append(record)
    return records


def _label(
    thread: bytes,
    what: str | int,
    running: str,
    sampled: _Sampled,
    by_class: dict[tuple[bytes, int], Counter[str]],
) -> MarkLabel:
    """What a thread did. A wait that was not sampled is taken for like those of its thread that are about as long."""
    if what == _RUNS:
        return MarkLabel("native", running)
    if what == _QUEUES:
        return MarkLabel("processor-wait", running)
    kind = what if isinstance(what, str) else ""
    if isinstance(what, int):
        near = (by_class.get((thread, one)) for one in (what, what + 1, what - 1))
        kind = next((one.most_common(1)[0][0] for one in near if one), "")
    places = sampled.places.get((thread, kind))
    return MarkLabel(_KINDS.get(kind, "waiting"), places.most_common(1)[0][0] if places else "")

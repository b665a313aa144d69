"""Merges perf's samples by event, from any of its outputs: frames, weights, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from profkit.analysis.stacks.merge import JIT, KERNEL, PYTHON, UNKNOWN, FrameTable, StackMerger
from profkit.core.errors import UnreadableReport
from profkit.core.types import Fact, Frame, Hotspot, Profile, Stacks

# Software clocks sample by time; their period is in nanoseconds (kernel/events/core.c, perf_swevent_hrtimer).
_CLOCKS = frozenset({"cpu-clock", "task-clock"})
SWITCHES = "context-switches"
_MODIFIERS = frozenset("ukhHGDIpPSWeb")


def base_event(event: str) -> str:
    """Strip the modifiers: `cycles:u` becomes `cycles`; `cpu_core/cycles/` and `sched:switch` stay."""
    name, colon, modifiers = event.rpartition(":")
    return name if colon and name and modifiers and set(modifiers) <= _MODIFIERS else event


def is_user_only(event: str) -> bool:
    """Return whether a modifier leaves the kernel out; perf adds `:u` by itself for unprivileged users."""
    name = base_event(event)
    modifiers = event[len(name) :] if name != event else event.rpartition("/")[2] if "/" in event else ""
    return "u" in modifiers and "k" not in modifiers


def scale_of(event: str, *, with_period: bool) -> tuple[str, float]:
    """Return the unit of a sample's weight, and its divisor: seconds for clocks, else the event or `samples`."""
    if not with_period:
        return "samples", 1
    base = base_event(event)
    return ("s", 1e9) if base in _CLOCKS else (base, 1)


def by_thread(title: str, unit: str, weights: Mapping[str, float], per: float = 1) -> Profile:
    """Return the table by thread name. A thread has no callers, so own and inclusive weight are the same."""
    rows = sorted(weights.items(), key=lambda row: (-row[1], row[0]))
    hotspots = tuple(Hotspot(name, own=weight / per, total=weight / per) for name, weight in rows)
    return Profile(f"{title} by thread", unit, sum(weights.values()) / per, hotspots, "threads")


MAX_EVENTS = 1000  # perf itself takes far fewer; more are a sign of another kind of file
MAX_THREADS = 10_000


class MergedEvents:
    """One StackMerger per event, and the weight per thread name.

    Names are decoded at the end, since samples are millions.
    """

    def __init__(self, table: FrameTable) -> None:
        self._table = table
        self._events: dict[tuple[bytes, bool], tuple[StackMerger, dict[bytes, float]]] = {}

    def add(self, event: bytes, period: int | None, thread: bytes, ids: tuple[int, ...]) -> None:
        """Count one sample (frames innermost first). Without a period it weighs 1, in `samples`.

        Raises UnreadableReport for more events than a recording of perf can have.
        """
        merged = self._events.get((event, period is None))
        if merged is None:
            if len(self._events) >= MAX_EVENTS:
                raise UnreadableReport(f"it names more than {MAX_EVENTS} events: not a recording of perf")
            merged = self._events[event, period is None] = (StackMerger(self._table), {})
        merger, threads = merged
        weight = 1 if period is None else period
        merger.add(ids, weight)
        if thread not in threads and len(threads) >= MAX_THREADS:
            thread = b"[more threads]"
        threads[thread] = threads.get(thread, 0) + weight

    @property
    def samples(self) -> int:
        """Return the number of samples of all events."""
        return sum(merger.samples for merger, _ in self._shown().values())

    def facts(self) -> dict[str, str]:
        """Return `samples`, and `events` if the recording names them, as perf writes them (`cycles:u`)."""
        names = dict.fromkeys(_decode_name(event) for event, _ in self._shown() if event)
        return {"samples": str(self.samples), **({"events": " ".join(names)} if names else {})}

    def warnings(self) -> Iterator[Fact]:
        """Yield where bounds were reached, and what the events leave out."""
        for (event, _), (merger, _) in self._shown().items():
            if merger.cut:
                name, share = _decode_name(event) or "samples", merger.cut / merger.weight
                yield Fact.of("many-stacks", event=name, share=share)
        for name in dict.fromkeys(_decode_name(event) for event, _ in self._shown()):
            if is_user_only(name):
                yield Fact.of("event-of-user-space", event=name)
        if self._table.full:
            yield Fact("many-functions")

    def _shown(self) -> dict[tuple[bytes, bool], tuple[StackMerger, dict[bytes, float]]]:
        """Return the events without switches of threads, if there are others: a wait is no work of a function."""
        work = {
            key: merged
            for key, merged in self._events.items()
            if base_event(_decode_name(key[0])) != SWITCHES
        }
        return work or self._events

    def answer(self) -> tuple[tuple[Stacks, ...], tuple[Profile, ...]]:
        """Return stacks of each event, the one with most samples first, and tables of each.

        The tables are by function, library and thread. The table by thread is left out where there is but one name.
        """
        stacks: list[Stacks] = []
        profiles: list[Profile] = []
        for (event, bare), (merger, threads) in sorted(self._shown().items(), key=lambda e: -e[1][0].samples):
            title = _decode_name(event) or "samples"
            unit, per = scale_of(title, with_period=not bare)
            stacks.append(merger.stacks(title, unit, per))
            profiles += merger.profiles(title, unit, per)
            if len(threads) > 1:
                names: dict[str, float] = {}
                for name, weight in threads.items():
                    names[_decode_name(name)] = names.get(_decode_name(name), 0) + weight
                profiles.append(by_thread(title, unit, names, per))
        return tuple(stacks), tuple(profiles)


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "replace")


# What run-times that compile on the fly leave for perf: a map, or an image per function after `perf inject`.
_JIT_FILE = re.compile(r"perf-\d+\.map|jitted-\d+-\d+\.so|jit-\d+\.dump|\[JIT\].*")
_KERNEL_MODULE = re.compile(r"(.+)\.ko(?:\.(?:xz|gz|zst))?")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{6,}")


def python_frame(symbol: str) -> Frame | None:
    """Return the frame of `py::FUNCTION:FILE`, CPython's name for a trampoline from 3.12 on; else None.

    It is a Python frame, in whatever file it was found.
    """
    if not symbol.startswith("py::"):
        return None
    function, _, file = symbol[4:].partition(":")
    return Frame(function or UNKNOWN, PYTHON, file or None)


MAX_SYMBOL = 4096  # characters of a symbol: demangled, a template within templates may have millions


def frame_of(symbol: str, dso: str | None) -> Frame:
    """Return the frame of a symbol and dso that perf printed.

    A symbol perf could not resolve is `[unknown]`: its bare address differs from run to run and would only keep
    equal things apart.
    """
    if (python := python_frame(symbol)) is not None:
        return python
    if not symbol or _HEX.fullmatch(symbol):
        symbol = UNKNOWN
    return Frame(symbol[:MAX_SYMBOL], library_of(dso))


def library_of(dso: str | None) -> str | None:
    """Return the library's name for perf's dso: base name without `(deleted)`; None for an unknown one."""
    if not dso:
        return None
    dso = dso.removesuffix(" (deleted)")
    if dso in ("[unknown]", "inlined"):
        return None
    if dso.startswith(("[kernel.kallsyms]", "[kernel.vmlinux]")):
        return KERNEL
    if dso.startswith("["):
        return JIT if dso.startswith("[JIT]") else dso
    if dso.startswith("//"):  # //anon: memory without a file, as perf names it
        return dso
    name = dso.rstrip("/").rpartition("/")[2]
    if _JIT_FILE.fullmatch(name):
        return JIT
    if name.startswith("vmlinux") or dso == "/proc/kcore":
        return KERNEL
    if module := _KERNEL_MODULE.fullmatch(name):
        return f"[{module[1]}]"
    return name or None

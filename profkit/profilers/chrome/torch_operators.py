"""Sums up CPU operators in a trace of torch.profiler, as `key_averages().table()` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from profkit.analysis.necessary_work.calls import recorded_call
from profkit.analysis.necessary_work.formulas import necessary_work
from profkit.analysis.necessary_work.work import NecessaryWork
from profkit.core.types import Hotspot, Profile

MAX_EVENTS = 1 << 21  # 2 M operators and allocations: some 300 MB of a trace
_LONGEST_SHAPES = 200  # characters
_MAX_DONE = 64  # of the calls inside of one
OPERATOR, ANNOTATION, INSTANT = "cpu_op", "user_annotation", "cpu_instant_event"


# start, order (a caller before its callee, an allocation after both), length in ns or bytes, name, shapes, least work
_Row: TypeAlias = tuple[int, int, int, "str | None", str, "NecessaryWork | None"]


@dataclass
class _Sum:
    """Sums over all calls of one operator: ns, bytes."""

    calls: int = 0
    own: int = 0
    total: int = 0
    own_bytes: int = 0
    total_bytes: int = 0
    by_shapes: dict[str, int] = field(
        default_factory=dict
    )  # own ns by the shapes of the tensors that went in
    flop: float = 0.0  # the least work of the calls whose own is known,
    needed: float = 0.0  # in bytes,
    known: int = 0  # and the ns that were their own


@dataclass
class _Open:
    """A call on the stack of its thread."""

    name: str
    end: int
    inside: int = 0  # ns of the calls directly in it
    size: int = 0  # bytes allocated less bytes freed, its callees' included
    work: NecessaryWork | None = None
    done: list[NecessaryWork] = field(default_factory=list)  # by the calls in it


class TorchOperators:
    """Collects operators, annotations and allocations by thread."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str], list[_Row]] = {}
        self._count = 0
        self.cut = False  # there were more than are kept

    def call(self, event: Mapping[str, Any], start: int, length: int) -> None:
        """Add a call of an operator or a `record_function`, in ns."""
        args = event.get("args")
        name, shapes, work = str(event.get("name"))[:1000], "", None
        if isinstance(args, dict):
            shapes = _shapes(args.get("Input Dims"))
            call = recorded_call(name, args)
            work = necessary_work(call) if call is not None else None
        self._add(event, (start, -length, length, name, shapes, work))

    def allocation(self, event: Mapping[str, Any], at: int) -> None:
        """Add a `[memory]` event: bytes that a CPU's allocator gave, or took back."""
        args = event.get("args")
        if event.get("name") != "[memory]" or not isinstance(args, dict) or args.get("Device Type") != 0:
            return
        size = args.get("Bytes")
        if isinstance(size, int) and not isinstance(size, bool) and abs(size) < 1 << 50:
            self._add(event, (at, 1, size, None, "", None))

    def _add(self, event: Mapping[str, Any], row: _Row) -> None:
        if self._count >= MAX_EVENTS:
            self.cut = True
            return
        self._count += 1
        self._events.setdefault((str(event.get("pid")), str(event.get("tid"))), []).append(row)

    def profile(self) -> Profile | None:
        """Return the operators by own time in s; None without any.

        The total is the sum of their own times. Of one that calls itself the outermost calls alone count in its
        total.
        """
        sums: dict[str, _Sum] = {}
        for rows in self._events.values():
            _add_thread(sums, sorted(rows, key=lambda row: row[:2]))
        if not sums:
            return None
        spots = sorted((_spot(name, sum_) for name, sum_ in sums.items()), key=lambda spot: -spot.own)
        return Profile("operators", "s", sum(spot.own for spot in spots), tuple(spots), "operators")


def _add_thread(sums: dict[str, _Sum], rows: Sequence[_Row]) -> None:
    """Add what one thread did: its calls lie within each other, by their times."""
    stack: list[tuple[_Open, int, str]] = []  # with its length and shapes
    for start, _, length, name, shapes, work in rows:
        while stack and stack[-1][0].end <= start and not (name is None and stack[-1][0].end == start):
            _close(sums, stack)
        if name is None:
            if stack:
                stack[-1][0].size += length
                sums.setdefault(stack[-1][0].name, _Sum()).own_bytes += length
            continue
        # A clock's grain can let a callee end after its caller: it ends with it.
        end = min(start + length, stack[-1][0].end) if stack else start + length
        stack.append((_Open(name, end, work=work), end - start, shapes))
    while stack:
        _close(sums, stack)


def _close(sums: dict[str, _Sum], stack: list[tuple[_Open, int, str]]) -> None:
    call, length, shapes = stack.pop()
    own_time = max(0, length - call.inside)
    totals = sums.setdefault(call.name, _Sum())
    # Some operators dispatch to themselves; torch counts that as one call, too.
    totals.calls += not (stack and stack[-1][0].name == call.name)
    totals.own += own_time
    if shapes:
        totals.by_shapes[shapes] = totals.by_shapes.get(shapes, 0) + own_time
    if call.work is not None and not any(_is_same(call.work, inner) for inner in call.done):
        totals.flop += call.work.flop
        totals.needed += call.work.bytes or 0.0
        totals.known += own_time
        call.done.append(call.work)
    if not any(outer.name == call.name for outer, _, _ in stack):
        totals.total += length
        totals.total_bytes += call.size
    if stack:
        stack[-1][0].inside += length
        stack[-1][0].size += call.size
        stack[-1][0].done += call.done[-_MAX_DONE:]


def _is_same(outer: NecessaryWork, inner: NecessaryWork) -> bool:
    """Return whether a call hands its whole work on, as `aten::linear` does to `aten::addmm`."""
    return outer.flop == inner.flop if outer.flop else outer.bytes == inner.bytes


def _spot(name: str, totals: _Sum) -> Hotspot:
    counters = {"own_bytes": float(totals.own_bytes), "bytes": float(totals.total_bytes)}
    if totals.known:
        counters |= {"flop": totals.flop, "needed_bytes": totals.needed, "needed_seconds": totals.known / 1e9}
    most = max(totals.by_shapes, key=lambda shapes: totals.by_shapes[shapes], default="")
    more = len(totals.by_shapes) - 1
    shapes = f"{most} and {more} other{'s' if more > 1 else ''}" if more > 0 else most
    return Hotspot(
        name, totals.own / 1e9, totals.total / 1e9, totals.calls, counters=counters, shapes=shapes or None
    )


def _shapes(dims: object) -> str:
    """Return the shapes of the arguments that are tensors, such as `[64, 256] [256, 512]`."""
    if not isinstance(dims, list):
        return ""
    return " ".join(_known(dims))[:_LONGEST_SHAPES]


def _known(dims: Sequence[object]) -> Iterator[str]:
    for shape in dims[:16]:
        if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape):
            yield f"[{', '.join(map(str, shape[:16]))}]"

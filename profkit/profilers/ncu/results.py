"""One result of an .ncu-rep (a kernel launch, a range, a command list, a graph) out of its protobuf message.

A full report has two thousand metrics a launch, most of them lists of instances. Those that nobody asked for, sections,
rules and sources are stepped over by their length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap

from profkit.profilers.ncu.blocks import (
    LENGTH,
    VARINT,
    Buffer,
    MalformedMessage,
    Message,
    ReportMessage,
    read_fields,
    read_float32,
    read_float64,
    read_text,
    read_varint,
)
from profkit.profilers.ncu.launches import (
    DEVICE,
    LaunchResult,
    NvtxRange,
    ResultKind,
    Value,
    finite_number,
    kernel_of,
)

# NvtxState, fields by number (Nvtx.proto).
_DOMAINS, _THREADS, _START_END, _DEFAULT_DOMAIN, _RANGE_SCOPE = 1, 2, 3, 4, 5
_PROCESS_SCOPE = 1


def open_ranges(data: Buffer, at: int, end: int, thread: int | None) -> tuple[NvtxRange, ...]:
    """Ranges around the launch, outermost first: those pushed by its thread, then those started anywhere.

    Where push/pop ranges count for the whole process, or the thread has none, all threads. Raises MalformedMessage.
    """
    state = Message(data, at, end)
    names: dict[int, str] = {}
    strings: dict[int, dict[int, str]] = {}  # of a domain what its handles mean
    for domain in state.parts(_DOMAINS):
        number = domain.numbers.get(1, 0)
        names[number] = domain.text(2)
        strings[number] = {one.numbers.get(1, 0): one.text(2) for one in domain.parts(3)}
    threads = list(state.parts(_THREADS))
    own = [one for one in threads if one.numbers.get(1) == thread]
    if state.numbers.get(_RANGE_SCOPE) == _PROCESS_SCOPE or not own:
        own = threads
    stacks = [*(stack for one in own for stack in one.parts(2)), *state.parts(_START_END)]
    ranges: dict[NvtxRange, None] = {}
    for stack in stacks:  # NvtxPushPopDomain and NvtxStartEndDomain alike: 1 Id, 3 the ranges in order
        number = stack.numbers.get(1, -1)
        domain_name = None if number == state.numbers.get(_DEFAULT_DOMAIN) else names.get(number) or None
        texts = (_range_name(one, strings.get(number, {})) for one in stack.parts(3))
        ranges |= dict.fromkeys(NvtxRange(text, domain_name) for text in texts if text)
    return tuple(ranges)


def _range_name(one: Message, strings: Mapping[int, str]) -> str:
    """Its Name, else its attributes' message, else the registered string that the message's handle means.

    In NvtxPushPopRange the name is field 1 and the attributes 2; in NvtxStartEndRange 2 and 3, after an id.
    """
    first = 2 if 1 in one.numbers else 1
    if name := one.text(first):
        return name
    for attributes in one.parts(first + 1):
        for message in attributes.parts(5):  # NvtxMessage: 2 message, 3 handle
            if text := message.text(2) or strings.get(message.numbers.get(3, -1), ""):
                return text
    return ""


_NAME_ID_TAG = 0x08


def read_metrics(
    data: bytes | mmap,
    at: int,
    end: int,
    metrics: int,
    names: Mapping[int, str],
    values: dict[str, Value],
    rest: list[tuple[int, int, int, int]],
) -> None:
    """One pass over the message: values of metrics in `names` go to `values`, fields that are none to `rest`.

    `metrics` is the number of the field that holds the metrics, below 16. What nobody wants is stepped over.
    Raises MalformedMessage, and IndexError at the end of `data`.
    """
    metric_tag = metrics << 3 | LENGTH
    while at < end:
        if data[at] != metric_tag:
            entry = next(read_fields(data, at, end))
            rest.append(entry)
            at = entry[3]
            continue
        size, first = data[at + 1], at + 2
        if size > 0x7F:
            size, first = read_varint(data, at + 1, end)
        stop = first + size
        if stop > end:
            raise MalformedMessage(at, f"a metric of {size} bytes where {end - first} are left")
        if size and data[first] == _NAME_ID_TAG:  # the id comes first wherever it was seen
            name_id, next_ = data[first + 1], first + 2
            if name_id > 0x7F:
                name_id, next_ = read_varint(data, first + 1, stop)
            if name_id in names:
                values[names[name_id]] = _metric(data, next_, stop)[1]
        else:
            name_id, value = _metric(data, first, stop)
            if name_id in names:
                values[names[name_id]] = value
        at = stop


def _metric(data: Buffer, at: int, end: int) -> tuple[int, Value]:
    """ProfileMetricResult: the id of its name, and its own value; None where it has instances alone."""
    name_id, value = -1, None
    for number, wire, a, b in read_fields(data, at, end):
        if number == 1 and wire == VARINT:
            name_id = a
        elif number == 2 and wire == LENGTH:
            value = metric_value(data, a, b)
        elif number == 3 and value is not None:
            break  # the instances behind it are not asked for
    return name_id, value


def metric_value(data: Buffer, at: int, end: int) -> Value:
    """ProfileMetricValue: text, float, double or an unsigned integer, whichever is there."""
    value: Value = None
    for number, wire, a, b in read_fields(data, at, end):
        if number in (4, 5) and wire == VARINT:
            value = a
        elif number == 3 and b - a == 8:
            value = read_float64(data, a)
        elif number == 2 and b - a == 4:
            value = read_float32(data, a)
        elif number == 1 and wire == LENGTH:
            value = read_text(data, a, b)
    return value


@dataclass(frozen=True)
class _Numbers:
    """Field numbers of one kind of result (ProfilerReport.proto); 0 where the kind has no such field."""

    metrics: int
    nvtx: int
    clock: int
    driver: int
    demangled: int = 0
    function: int = 0
    mangled: int = 0
    grid: int = 0
    block: int = 0
    thread: int = 1


_KINDS: Mapping[ResultKind, _Numbers] = {
    "kernel": _Numbers(13, 21, 25, 35, demangled=7, function=6, mangled=5, grid=10, block=11),
    "range": _Numbers(4, 10, 12, 21),
    "cmdlist": _Numbers(4, 10, 13, 25, demangled=18),
    "graph": _Numbers(4, 10, 13, 23),
}
_TITLES: Mapping[ResultKind, str] = {"range": "range", "cmdlist": "command list", "graph": "CUDA graph"}
_AT_ONCE = 16 << 20  # bytes of one result that are copied out of the file


def read_result(data: bytes | mmap, part: ReportMessage, names: Mapping[int, str]) -> LaunchResult:
    """The result in `part`, with those of its metrics that are asked for.

    Raises MalformedMessage where the message is damaged.
    """
    assert part.kind in _KINDS
    kind: ResultKind = part.kind  # type: ignore[assignment]
    if part.size > _AT_ONCE:
        return _read_launch(data, part.offset, part.offset + part.size, kind, names)
    try:  # bytes are quicker to look into than a mapped file
        return _read_launch(data[part.offset : part.offset + part.size], 0, part.size, kind, names)
    except MalformedMessage as fault:
        raise MalformedMessage(part.offset + fault.offset, fault.text) from None


def _read_launch(
    data: bytes | mmap, at: int, end: int, kind: ResultKind, names: Mapping[int, str]
) -> LaunchResult:
    numbers = _KINDS[kind]
    values: dict[str, Value] = {}
    others: list[tuple[int, int, int, int]] = []
    try:
        read_metrics(data, at, end, numbers.metrics, names, values, others)
    except IndexError:
        raise MalformedMessage(at, f"a {kind} result is cut off") from None
    rest = {number: (a, b) for number, _, a, b in others}

    def string(field: int) -> str:
        return read_text(data, *rest[field]) if field in rest else ""

    def number_of(field: int) -> int | None:
        return rest[field][0] if field in rest else None

    thread = number_of(numbers.thread)
    ranges = open_ranges(data, *rest[numbers.nvtx], thread) if numbers.nvtx in rest else ()
    mangled = string(numbers.mangled) or None
    name = string(numbers.demangled) or string(numbers.function) or mangled
    if not name:
        name = ranges[-1].name if ranges and kind == "range" else _TITLES.get(kind, "kernel")
    lock_asked, lock_done = _read_clock_lock(data, rest.get(numbers.clock))
    device = finite_number(values.get(DEVICE))
    return LaunchResult(
        kernel=kernel_of(
            name,
            mangled,
            _read_triple(data, rest.get(numbers.grid)),
            _read_triple(data, rest.get(numbers.block)),
            values,
        ),
        values=values,
        kind=kind,
        device=None if device is None else int(device),
        ranges=ranges,
        lock_asked=lock_asked,
        lock_done=lock_done,
        driver=_driver(data, rest.get(numbers.driver)),
    )


def _read_triple(data: Buffer, span: tuple[int, int] | None) -> tuple[int, ...]:
    """Uint64x3 as (x, y, z); nothing where it is absent."""
    if span is None:
        return ()
    sides = Message(data, *span).numbers
    return (sides.get(1, 0), sides.get(2, 0), sides.get(3, 0))


def _read_clock_lock(data: Buffer, span: tuple[int, int] | None) -> tuple[bool | None, bool | None]:
    """ProfilerClockStatusMessage: whether a lock was requested, and executed."""
    flags = {} if span is None else Message(data, *span).numbers
    return tuple(None if flags.get(n) is None else bool(flags[n]) for n in (1, 2))  # type: ignore[return-value]


def _driver(data: Buffer, span: tuple[int, int] | None) -> str | None:
    """KmdVersion is a float, "580.159" as 580.1589965: three digits are what it means."""
    if span is None or span[1] - span[0] != 4:
        return None
    version = finite_number(read_float32(data, span[0]))
    return f"{version:.3f}".rstrip("0").rstrip(".") if version else None

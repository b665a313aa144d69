"""The NVTX ranges that were open at a launch, out of the NvtxState of its result."""

from __future__ import annotations

from profkit.profilers.ncu.launches import NvtxRange
from profkit.profilers.ncu.wire import LENGTH, VARINT, Buffer, fields, text

# NvtxState, fields by number (Nvtx.proto).
_DOMAINS, _THREADS, _START_END, _DEFAULT_DOMAIN, _RANGE_SCOPE = 1, 2, 3, 4, 5
_PROCESS_SCOPE = 1


def open_ranges(data: Buffer, at: int, end: int, thread: int | None) -> tuple[NvtxRange, ...]:
    """Ranges around the launch, outermost first: those pushed by its thread, then those started anywhere.

    Where push/pop ranges count for the whole process, or the thread has none, those of all threads. Raises Malformed.
    """
    domains: dict[int, tuple[str, dict[int, str]]] = {}
    threads: list[tuple[int | None, list[tuple[int, int]]]] = []
    started: list[tuple[int, int]] = []
    default: int | None = None
    scope = 0
    for number, wire, a, b in fields(data, at, end):
        if wire == VARINT:
            default = a if number == _DEFAULT_DOMAIN else default
            scope = a if number == _RANGE_SCOPE else scope
        elif number == _DOMAINS:
            id_, name, strings = _domain(data, a, b)
            domains[id_] = (name, strings)
        elif number == _THREADS:
            threads.append(_thread(data, a, b))
        elif number == _START_END:
            started.append((a, b))
    own = [stacks for tid, stacks in threads if tid == thread]
    if scope == _PROCESS_SCOPE or not own:
        own = [stacks for _, stacks in threads]
    spans = [span for stacks in own for span in stacks] + started
    found: dict[NvtxRange, None] = {}
    for a, b in spans:
        found |= dict.fromkeys(_ranges(data, a, b, domains, default))
    return tuple(found)


def _domain(data: Buffer, at: int, end: int) -> tuple[int, str, dict[int, str]]:
    """NvtxDomainInfo: id, name, registered strings by handle."""
    id_, name = 0, ""
    strings: dict[int, str] = {}
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == VARINT:
            id_ = a
        elif number == 2 and wire == LENGTH:
            name = text(data, a, b)
        elif number == 3 and wire == LENGTH:
            handle, value = _id_and_text(data, a, b)
            strings[handle] = value
    return id_, name, strings


def _thread(data: Buffer, at: int, end: int) -> tuple[int | None, list[tuple[int, int]]]:
    tid: int | None = None
    stacks = []
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == VARINT:
            tid = a
        elif number == 2 and wire == LENGTH:
            stacks.append((a, b))
    return tid, stacks


def _ranges(
    data: Buffer, at: int, end: int, domains: dict[int, tuple[str, dict[int, str]]], default: int | None
) -> list[NvtxRange]:
    """NvtxPushPopDomain and NvtxStartEndDomain alike: 1 Id, 3 the ranges in order."""
    domain: int | None = None
    spans = []
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == VARINT:
            domain = a
        elif number == 3 and wire == LENGTH:
            spans.append((a, b))
    name, strings = domains.get(-1 if domain is None else domain, ("", {}))
    shown = None if domain == default or not name else name
    return [NvtxRange(said, shown) for a, b in spans if (said := _range_name(data, a, b, strings))]


def _range_name(data: Buffer, at: int, end: int, strings: dict[int, str]) -> str:
    """Its Name, else its attributes' message, else the registered string that the message's handle means.

    In NvtxPushPopRange the name is field 1 and the attributes 2; in NvtxStartEndRange 2 and 3, after an id.
    """
    said, attributes = "", None
    started = False
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == VARINT:
            started = True
        elif wire == LENGTH and number == (2 if started else 1):
            said = text(data, a, b)
        elif wire == LENGTH and number == (3 if started else 2):
            attributes = (a, b)
    if said or attributes is None:
        return said
    for number, wire, a, b in fields(data, *attributes):
        if number == 5 and wire == LENGTH:  # NvtxMessage: 2 message, 3 handle
            for inner, inner_wire, c, d in fields(data, a, b):
                if inner == 2 and inner_wire == LENGTH and d > c:
                    return text(data, c, d)
                if inner == 3 and inner_wire == VARINT and c in strings:
                    return strings[c]
    return ""


def _id_and_text(data: Buffer, at: int, end: int) -> tuple[int, str]:
    id_, said = 0, ""
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == VARINT:
            id_ = a
        elif number == 2 and wire == LENGTH:
            said = text(data, a, b)
    return id_, said

"""Which events of an Apple or Intel Mac are counted together, and how CPU Counters is told to count them.

macOS keeps one table for each kind of core in /usr/share/kpep: names, and the counters that each event may sit on.
Where it cannot be read, the events are those that all of Apple's chips from the M1 on have, with the counters that
Linux's driver for the M1 (drivers/perf/apple_m1_cpu_pmu.c) puts them on.

`xctrace record --recording-options` (Xcode 16 and later) takes a whole file: what `--show-recording-options` prints for
the template, changed. An event in it is what the window of Instruments would store: an archive of Cocoa's
NSKeyedArchiver (a property list), in base64. Others found that form (ApplePerf.jl on an M5; templates saved by
Instruments); on an M4 Max other forms of a list were refused.
"""

from __future__ import annotations

import base64
import json
import plistlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from profkit.analysis.metrics.formulas import FormulaTable, formula_table
from profkit.core.files.regular import read_bounded

FOLDER = Path("/usr/share/kpep")
LARGEST = 16 * 1024 * 1024  # bytes of a table; the largest are some 200 kB
FIXED = 0b11
ANY_COUNTER = 0b11_1111_1100  # 2 to 9: the eight of an Apple core that can be chosen
_UPPER, _LAST = 0b1110_0000, 0b1000_0000  # 5 to 7, and 7 alone
METRICS = (
    "branch.miss_rate",
    "cache.l1.miss_rate",
    "simd.utilization",
    "tlb.data.miss_rate",
    "cache.l1i.mpki",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
    "stalls.frontend",
    "stalls.backend",
)
_ANCHORS = ("cycles", "instructions")


@dataclass(frozen=True)
class CounterEvent:
    """One event: its name, the name that Instruments shows for it, and the counters that it may sit on, as bits."""

    name: str
    mask: int
    alias: str | None = None


@dataclass(frozen=True)
class ChipEvents:
    """The events of one kind of core: from macOS's own table, or else what all Apple silicon has."""

    chip: str  # apple, intel
    events: tuple[CounterEvent, ...]
    from_macos: bool


_ALL_APPLE = ChipEvents(
    "apple",
    (
        CounterEvent("FIXED_CYCLES", 0b01, "Cycles"),
        CounterEvent("FIXED_INSTRUCTIONS", 0b10, "Instructions"),
        CounterEvent("INST_BRANCH", _UPPER),
        CounterEvent("BRANCH_MISPRED_NONSPEC", _UPPER),
        CounterEvent("INST_LDST", _UPPER),
        CounterEvent("L1D_CACHE_MISS_LD_NONSPEC", _UPPER),
        CounterEvent("L1D_CACHE_MISS_ST_NONSPEC", _UPPER),
        CounterEvent("L1D_TLB_ACCESS", ANY_COUNTER),
        CounterEvent("L1D_TLB_MISS", ANY_COUNTER),
        CounterEvent("L1I_CACHE_MISS_DEMAND", ANY_COUNTER),
    ),
    from_macos=False,
)


def read_events(
    chip: str, cputype: int | None, subtype: int | None, family: int | None, folder: Path = FOLDER
) -> ChipEvents | None:
    """The events of this Mac's cores, by what `sysctl hw.cputype hw.cpusubtype hw.cpufamily` say of them.

    `chip` is `apple` or `intel`; None for an Intel Mac whose table is not there: its events differ from chip to chip.
    """
    if cputype is not None and subtype is not None and family is not None:
        name = f"cpu_{cputype & 0xFFFFFFFF:x}_{subtype & 0xFFFFFFFF:x}_{family & 0xFFFFFFFF:x}.plist"
        events = _read_table(folder / name)
        if events:
            return ChipEvents(chip, events, from_macos=True)
    return _ALL_APPLE if chip == "apple" else None


def _read_table(path: Path) -> tuple[CounterEvent, ...]:
    """The events of one of macOS's tables; empty where it is none that can be read."""
    try:
        content: Any = plistlib.loads(read_bounded(path, LARGEST))
        cpu = content["system"]["cpu"]
        chosen = int(cpu.get("config_counters", ANY_COUNTER))
        aliases = {str(event): str(alias) for alias, event in cpu.get("aliases", {}).items()}
        return tuple(
            CounterEvent(str(name), _mask(entry, chosen), aliases.get(str(name)))
            for name, entry in cpu["events"].items()
        )
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        ExpatError,
    ):
        return ()


def _mask(entry: Mapping[str, Any], chosen: int) -> int:
    if "fixed_counter" in entry:
        return 1 << (int(entry["fixed_counter"]) & 31)
    return int(entry.get("counters_mask") or chosen)


def plan_groups(events: ChipEvents, metrics: Sequence[str] = METRICS) -> tuple[tuple[CounterEvent, ...], ...]:
    """Groups of events for `metrics`, each for a run of its own, small enough that none takes turns on a counter.

    Cycles and instructions are in each group. The events of one formula stay in one group where their counters allow
    it. In each the events with the fewest counters to sit on stand first: Instruments gives out counters in that order,
    first come first served, and refuses the set where the last finds none.
    """
    formulas = formula_table("xctrace", events.chip)
    known = _by_formula_name(events, formulas)
    anchors = tuple(known[name] for name in _ANCHORS if name in known)
    groups: list[list[CounterEvent]] = []
    for need in _needed_events(formulas, known, metrics):
        wanted = [event for event in need if event not in anchors]
        pieces = [wanted] if fits_counters((*anchors, *wanted)) else [[event] for event in wanted]
        for piece in pieces:
            home = next((group for group in groups if fits_counters((*anchors, *_join(group, piece)))), None)
            if home is None and fits_counters((*anchors, *piece)):
                groups.append(list(piece))
            elif home is not None:
                home[:] = _join(home, piece)
    if not groups and anchors:
        groups.append([])
    return tuple(tuple(sorted((*anchors, *group), key=_scarcity_key)) for group in groups)


def _join(group: Sequence[CounterEvent], piece: Sequence[CounterEvent]) -> list[CounterEvent]:
    return list(dict.fromkeys((*group, *piece)))


def _scarcity_key(event: CounterEvent) -> tuple[int, int]:
    return event.mask.bit_count(), event.mask


def _by_formula_name(events: ChipEvents, formulas: FormulaTable) -> dict[str, CounterEvent]:
    """Each event by the name that formulas know; of several (INST_ALL, FIXED_INSTRUCTIONS) one on a fixed counter."""
    known: dict[str, CounterEvent] = {}
    for event in sorted(events.events, key=lambda event: not _is_fixed(event)):
        known.setdefault(formulas.resolve(event.name), event)
    return known


def _is_fixed(event: CounterEvent) -> bool:
    return event.mask != 0 and event.mask & ~FIXED == 0


def _needed_events(
    formulas: FormulaTable, known: Mapping[str, CounterEvent], metrics: Sequence[str]
) -> list[tuple[CounterEvent, ...]]:
    """For each metric the events of its first formula that can be counted at all."""
    needs = []
    for metric in metrics:
        for way in formulas.formulas.get(metric, ()):
            names = [formulas.resolve(name) for name in way.names]
            if all(name in known for name in names):
                needs.append(tuple(known[name] for name in names))
                break
    return needs


def fits_counters(events: Sequence[CounterEvent]) -> bool:
    """Whether each of `events` finds a counter of its own, whatever the order (a matching of two sides)."""
    held: dict[int, CounterEvent] = {}

    def place(event: CounterEvent, tried: set[int]) -> bool:
        for counter in range(32):
            if event.mask >> counter & 1 and counter not in tried:
                tried.add(counter)
                if counter not in held or place(held[counter], tried):
                    held[counter] = event
                    return True
        return False

    return all(place(event, set()) for event in events)


INSTRUMENT = "CPU Counters"
_CLASS = "XRCountersSetupEventOrFormula"


def counter_options(shown: str, events: Sequence[CounterEvent]) -> str | None:
    """The options with `events` counted at each timer sample; None where `shown` is not what this knows how to change.

    `shown` is what `xctrace record --template 'CPU Counters' --show-recording-options` printed, maybe with other lines
    around the document.
    """
    document = _document(shown)
    if document is None or not isinstance(document.get(INSTRUMENT), dict):
        return None
    counters: dict[str, Any] = document[INSTRUMENT]
    if "allEventsAndFormulas" not in counters:
        return None
    counters |= {
        "allEventsAndFormulas": [event_archive(event) for event in events],
        "configurationType": {"manual": {}},
        "sampleByTime": True,
    }
    return json.dumps(document, indent=1)


def _document(shown: str) -> dict[str, Any] | None:
    """The JSON object in what was printed."""
    begin, end = shown.find("{"), shown.rfind("}")
    try:
        document = json.loads(shown[begin : end + 1]) if 0 <= begin < end else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def event_archive(event: CounterEvent) -> str:
    """One event as Instruments stores it, in base64."""
    uid = plistlib.UID
    archive = {
        "$archiver": "NSKeyedArchiver",
        "$version": 100000,
        "$top": {"root": uid(1)},
        "$objects": [
            "$null",
            {
                "$class": uid(4),
                "_mnemonic": uid(2),
                "_aliasOrMnemonic": uid(3),
                "_displayName": uid(2),
                "_explanation": uid(0),
                "_formulaText": uid(0),
                "_formulaEvaluator": uid(0),
                "_beingEdited": False,
            },
            event.name,
            event.alias or event.name,
            {"$classname": _CLASS, "$classes": [_CLASS, "NSObject"]},
        ],
    }
    return base64.b64encode(plistlib.dumps(archive, fmt=plistlib.FMT_BINARY)).decode("ascii")

"""The counter sets by depth: which metrics ncu is asked for on a chip, and what that costs in replay passes.

Which metrics a chip has stands in NVIDIA's own tables (chips.yaml).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.analysis.metrics import formula_table
from profkit.core.tables import load_yaml
from profkit.profilers.ncu.command import version_numbers


@lru_cache(maxsize=1)
def _chip_numbers() -> Mapping[int, str]:
    numbers: Mapping[int, str] = load_yaml(Path(__file__).with_name("chip_numbers.yaml"))
    return numbers


def chip_name(number: int | None) -> str | None:
    """`GH100` for 384; None for a chip that is not in the list."""
    return None if number is None else _chip_numbers().get(number)


# What no chip of a personal computer or server lacks, and one with its memory on the system's chip does.
_DISCRETE = "dram__"


@dataclass(frozen=True)
class ChipTable:
    """`passes[chip][set]`, `capabilities[chip]` and, by base name of a metric, the chips that lack it."""

    library: str
    passes: Mapping[str, Mapping[str, int]]
    capabilities: Mapping[str, str]
    lacks: Mapping[str, frozenset[str]]


@lru_cache(maxsize=1)
def chip_table() -> ChipTable:
    """The table; it is read once."""
    content = load_yaml(Path(__file__).with_name("chips.yaml"))
    return ChipTable(
        library=content["library"],
        passes={name: row["passes"] for name, row in content["chips"].items()},
        capabilities={
            name: row["capability"] for name, row in content["chips"].items() if "capability" in row
        },
        lacks={base: frozenset(chips) for base, chips in content["lacks"].items()}
        | {base: frozenset(content["chips"].keys() - set(chips)) for base, chips in content["only"].items()},
    )


def find_chip(name: str | None) -> str | None:
    """The chip called `told`, or the first of that compute capability ("8.6", "10.1"); None where it is not known."""
    if name is None:
        return None
    if name.upper() in chip_table().passes:
        return name.upper()
    capability = "11.0" if name == "10.1" else name  # Thor, before CUDA 13 renamed it
    return next((chip for chip, its in chip_table().capabilities.items() if its == capability), None)


def has_metric(chip: str | None, metric: str) -> bool:
    """Whether `chip` has `metric` (full or base name); of an unknown chip, whether every discrete one has it."""
    lacking = chip_table().lacks.get(metric.partition(".")[0], frozenset())
    if chip is not None:
        return chip not in lacking
    return not lacking or (
        metric.startswith(_DISCRETE) and all(not has_metric(c, "dram__bytes") for c in lacking)
    )


def planned_passes(chip: str | None, name: str) -> int | None:
    """Replay passes that NVIDIA's library plans for the counter set `name`; None for an unknown chip."""
    return chip_table().passes.get(chip, {}).get(name) if chip is not None else None


def lacking_metrics(chip: str | None, collected: Collection[str]) -> dict[str, str]:
    """Metrics that the readings of every kernel rest on, where `chip` has none that would do, each with the reason.

    `collected` are names in lower case; what a report has all the same is not lacking.
    """
    known = find_chip(chip)
    if known is None:
        return {}
    formulas = formula_table("ncu")
    reasons: dict[str, str] = {}
    for metric, ways in formulas.formulas.items():
        if metric in formulas.optional or any(set(way.names) <= set(collected) for way in ways):
            continue
        gaps = [next((n for n in way.names if not has_metric(known, n)), None) for way in ways]
        if gaps and gaps[0] is not None and None not in gaps:
            system = ": its memory is the system's" if gaps[0].startswith(_DISCRETE) else ""
            reasons[gaps[0]] = f"{known} has no {gaps[0]}{system}"
    return reasons


# Passes that ncu takes beyond those that NVIDIA's library plans. Where there are several, one more: so in seven
# recorded reports of four GPUs, and on an H200 for these sets (ncu 2025.3.1: 1, 5 and 9 passes as told here). A section
# that samples takes two of its own; what it does to instructions is in the plan of a set that patches them anyway.
_MORE = 1
_SECTION_PASSES = 2


@dataclass(frozen=True)
class CounterSet:
    """What ncu is asked for: metrics by name, and whole sections. `replays` is expected; None for an unknown chip."""

    name: str
    metrics: tuple[str, ...]
    replays: int | None
    note: str
    sections: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def counter_set(depth_name: str, chip: str | None, version: str | None = None) -> CounterSet:
    """The set `depth_name` (gate, standard, explain) for a chip ("GH100") or a compute capability ("9.0").

    `version` is that of ncu: an old one is not asked for what came later.

    Metrics that the chip lacks are left out: ncu refuses a kernel for one name that it does not know. Of a chip that
    is not in the table only what every chip has is asked for, and its replays are not known. Raises KeyError for a set
    that there is not.
    """
    known = find_chip(chip)
    metrics: list[str] = []
    for names in metric_alternatives(depth_name, known, version):
        metrics += [name for name in names if has_metric(known, name)][:1]
    sections = tuple(_load_sets()[depth_name].get("sections", ()))
    replays = _expected_replays(depth_name, known, sections)
    return CounterSet(depth_name, tuple(metrics), replays, _note(depth_name, known, chip, replays), sections)


def metric_alternatives(
    depth_name: str, chip: str | None = None, version: str | None = None
) -> tuple[tuple[str, ...], ...]:
    """The metrics of a set in order, each with the names it goes by.

    Without those that `chip` is to be spared, and those that ncu `version` does not know yet.
    """
    described = _load_sets()[depth_name]
    alternatives = list(metric_alternatives(described["with"], chip, version)) if "with" in described else []
    numbers = version_numbers(version)
    for entry in described["metrics"]:
        row: Mapping[str, Any] = entry if isinstance(entry, dict) else {"name": entry}
        too_old = numbers is not None and numbers < (version_numbers(row.get("since")) or ())
        if chip not in row.get("not_on", {}).get("chips", ()) and not too_old:
            alternatives.append(tuple(name.strip() for name in row["name"].split("|")))
    return tuple(alternatives)


def _expected_replays(depth_name: str, chip: str | None, sections: tuple[str, ...]) -> int | None:
    planned = planned_passes(chip, depth_name)
    if planned is None:
        return None
    return planned + (_MORE if planned > 1 else 0) + _SECTION_PASSES * len(sections)


def _note(depth_name: str, known: str | None, chip: str | None, replays: int | None) -> str:
    says = str(_load_sets()[depth_name]["says"])
    if replays is None:
        whose = f"{chip}, which is not in NVIDIA's tables here" if chip else "a chip that is not known"
        return f"{says}; how many replay passes that is on {whose}, the report will tell"
    word = "1 replay pass" if replays == 1 else f"about {replays} replay passes"
    return f"{says}; {word} on {known} by NVIDIA's tables (libnvperf_host of {chip_table().library})"


@lru_cache(maxsize=1)
def _load_sets() -> Mapping[str, Mapping[str, Any]]:
    content: Mapping[str, Mapping[str, Any]] = load_yaml(Path(__file__).with_name("sets.yaml"))
    return content

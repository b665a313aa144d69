"""The counter sets by depth, resolved for a chip: which metrics ncu is asked for, and what that costs in replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.analysis.metrics.yaml_file import load_yaml
from profkit.profilers.ncu.chip_table import chip_by, has, passes, table
from profkit.profilers.ncu.command import version_numbers

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


def set_names() -> tuple[str, ...]:
    """The sets, cheapest first."""
    return tuple(_sets())


@lru_cache(maxsize=64)
def counter_set(depth_name: str, chip: str | None, version: str | None = None) -> CounterSet:
    """The set `depth_name` (gate, standard, explain) for a chip ("GH100") or a compute capability ("9.0").

    `version` is that of ncu: an old one is not asked for what came later.

    Metrics that the chip lacks are left out: ncu refuses a kernel for one name that it does not know. Of a chip that
    is not in the table only what every chip has is asked for, and its replays are not known. Raises KeyError for a set
    that there is not.
    """
    known = chip_by(chip)
    metrics: list[str] = []
    for names in alternatives(depth_name, known, version):
        metrics += [name for name in names if has(known, name)][:1]
    sections = tuple(_sets()[depth_name].get("sections", ()))
    replays = _replays(depth_name, known, sections)
    return CounterSet(depth_name, tuple(metrics), replays, _note(depth_name, known, chip, replays), sections)


def alternatives(
    depth_name: str, chip: str | None = None, version: str | None = None
) -> tuple[tuple[str, ...], ...]:
    """The metrics of a set in order, each with the names it goes by.

    Without those that `chip` is to be spared, and those that ncu `version` does not know yet.
    """
    described = _sets()[depth_name]
    found = list(alternatives(described["with"], chip, version)) if "with" in described else []
    numbers = version_numbers(version)
    for entry in described["metrics"]:
        row: Mapping[str, Any] = entry if isinstance(entry, dict) else {"name": entry}
        too_old = numbers is not None and numbers < (version_numbers(row.get("since")) or ())
        if chip not in row.get("not_on", {}).get("chips", ()) and not too_old:
            found.append(tuple(name.strip() for name in row["name"].split("|")))
    return tuple(found)


def _replays(depth_name: str, chip: str | None, sections: tuple[str, ...]) -> int | None:
    planned = passes(chip, depth_name)
    if planned is None:
        return None
    return planned + (_MORE if planned > 1 else 0) + _SECTION_PASSES * len(sections)


def _note(depth_name: str, known: str | None, chip: str | None, replays: int | None) -> str:
    says = str(_sets()[depth_name]["says"])
    if replays is None:
        whose = f"{chip}, which is not in NVIDIA's tables here" if chip else "a chip that is not known"
        return f"{says}; how many replay passes that is on {whose}, the report will tell"
    word = "1 replay pass" if replays == 1 else f"about {replays} replay passes"
    return f"{says}; {word} on {known} by NVIDIA's tables (libnvperf_host of {table().library})"


@lru_cache(maxsize=1)
def _sets() -> Mapping[str, Mapping[str, Any]]:
    content: Mapping[str, Mapping[str, Any]] = load_yaml(Path(__file__).with_name("sets.yaml"))
    return content

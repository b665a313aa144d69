"""Which metrics a chip has, by NVIDIA's own tables (chips.yaml): asked before ncu is, and when a report lacks one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.metrics.yaml_file import load_yaml

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
def table() -> ChipTable:
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


def chip_by(told: str | None) -> str | None:
    """The chip called `told`, or the first of that compute capability ("8.6", "10.1"); None where it is not known."""
    if told is None:
        return None
    if told.upper() in table().passes:
        return told.upper()
    capability = "11.0" if told == "10.1" else told  # Thor, before CUDA 13 renamed it
    return next((chip for chip, its in table().capabilities.items() if its == capability), None)


def has(chip: str | None, metric: str) -> bool:
    """Whether `chip` has `metric` (full or base name); of an unknown chip, whether every discrete one has it."""
    lacking = table().lacks.get(metric.partition(".")[0], frozenset())
    if chip is not None:
        return chip not in lacking
    return not lacking or (metric.startswith(_DISCRETE) and all(not has(c, "dram__bytes") for c in lacking))


def passes(chip: str | None, name: str) -> int | None:
    """Replay passes that NVIDIA's library plans for the counter set `name`; None for an unknown chip."""
    return table().passes.get(chip, {}).get(name) if chip is not None else None

"""Which metrics a chip has, by NVIDIA's own tables (chips.yaml): asked before ncu is, and when a report lacks one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.analysis.metrics import formula_table
from profkit.analysis.metrics.yaml_file import load_yaml

# Names that newer chips gave to what others call differently: the older one, the newer one.
_RENAMED = (
    ("dram__bytes_read", "dram__bytes_op_read"),
    ("dram__bytes_write", "dram__bytes_op_write"),
    ("dram__sectors_read", "dram__sectors_op_read"),
    ("dram__sectors_write", "dram__sectors_op_write"),
    ("sm__inst_executed_pipe_fp16", "sm__inst_executed_pipe_fma_type_fp16"),
    ("sm__ops_path_tensor_src_fp16_dst_fp32", "sm__ops_path_tensor_src_fp16"),
)
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


def why_lacking(chip: str | None, metric: str) -> str | None:
    """Why `chip` has no `metric`, and what it is called there; None where it has it, or the chip is not known."""
    base, _, suffix = metric.partition(".")
    if chip is None or has(chip, metric):
        return None
    for names in _RENAMED:
        other = next((name for name in names if base in names and name != base and has(chip, name)), None)
        if other is not None:
            return f"{chip} has no {metric}; it is {f'{other}.{suffix}' if suffix else other} there"
    if metric.startswith(_DISCRETE):
        return f"{chip} has no {metric}: its memory is the system's"
    return f"{chip} has no {metric}"


def renamed(metric: str) -> str | None:
    """What another chip calls `metric`, with the chips that do; None where all that have it call it so."""
    base = metric.partition(".")[0]
    for names in _RENAMED:
        for other in names:
            chips = sorted(chip for chip in table().passes if has(chip, other) and not has(chip, base))
            if base in names and other != base and chips:
                return f"{other} on {', '.join(chips)}"
    return None


def lacking(chip: str | None, collected: Collection[str]) -> dict[str, str]:
    """Metrics that the readings of every kernel rest on, where `chip` has none that would do, each with the reason.

    `collected` are names in lower case; what a report has all the same is not lacking.
    """
    known = chip_by(chip)
    if known is None:
        return {}
    formulas = formula_table("ncu")
    found: dict[str, str] = {}
    for metric, ways in formulas.formulas.items():
        if metric in formulas.optional or any(set(way.names) <= set(collected) for way in ways):
            continue
        gaps = [next((n for n in way.names if not has(known, n)), None) for way in ways]
        if gaps and gaps[0] is not None and None not in gaps:
            found[gaps[0]] = why_lacking(known, gaps[0]) or ""
    return found

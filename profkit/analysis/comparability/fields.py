"""The fields that decide comparability, as `fields.yaml` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.analysis.metrics.yaml_file import load_yaml
from profkit.core.types import Tier

# What a field is of; see the head of fields.yaml.
Owner = Literal["machine", "workload", "mode", "tool", "software", "state"]


@dataclass(frozen=True)
class Field:
    """One field: how much it weighs, what it is of, and why.

    `tools`: it concerns only what these measured; `metrics`: and of that only what begins so. `backends` alone can
    tell it, and that of no other is missed.
    """

    name: str
    tier: Tier
    of: Owner
    title: str
    why: str
    tools: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()  # that tell it; empty: all


@lru_cache(maxsize=1)
def all_fields() -> Mapping[str, Field]:
    """Every field by its name, in the order of the file."""
    rows = load_yaml(Path(__file__).with_name("fields.yaml"))
    return {
        name: Field(
            name,
            row["tier"],
            row["of"],
            row["title"],
            row["why"],
            tuple(row.get("tools", ())),
            tuple(row.get("metrics", ())),
            tuple(row.get("backends", ())),
        )
        for name, row in rows.items()
    }

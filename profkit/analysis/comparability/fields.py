"""The fields that decide comparability, as `fields.yaml` lists them, and in which of them two runs differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.core.tables import load_yaml
from profkit.core.types import Difference, Fingerprint, Tier

# What a field is of; see the head of fields.yaml.
Owner = Literal["machine", "workload", "mode", "tool", "software", "state"]


@dataclass(frozen=True)
class ComparedField:
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
def all_fields() -> Mapping[str, ComparedField]:
    """Every field by its name, in the order of the file."""
    rows = load_yaml(Path(__file__).with_name("fields.yaml"))
    return {
        name: ComparedField(
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


_WEIGHT: dict[Tier, int] = {"must": 0, "should": 1, "observed": 2}


def fingerprint_differences(baseline: Fingerprint, candidate: Fingerprint) -> tuple[Difference, ...]:
    """Every field in which they differ, the weightiest first; the state of the machine is not among them.

    A `must` field that only one of the two tells is no difference but a doubt: it comes as `should`, and says so. What
    neither tells, and what a later profkit added, is passed over. How the machine was (`observed`) differs from one run
    to the next in any case: whether it explains a change is for whoever knows the change.
    """
    fields = all_fields()
    before = {feature.name: feature.value for feature in baseline.features}
    after = {feature.name: feature.value for feature in candidate.features}
    differences = [
        _difference(field, before.get(name), after.get(name))
        for name, field in fields.items()
        if field.tier != "observed" and before.get(name) != after.get(name)
    ]
    return tuple(sorted(differences, key=lambda difference: _WEIGHT[difference.tier]))


def _difference(field: ComparedField, before: str | None, after: str | None) -> Difference:
    tier: Tier = field.tier if before is not None and after is not None else "should"
    return Difference(field.name, tier, before, after, field.tools, field.metrics)

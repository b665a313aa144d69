"""In what two runs differ, and what that means for comparing them."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.comparability.fields import Field, all_fields
from profkit.core.types import Difference, Fingerprint, Tier

_WEIGHT: dict[Tier, int] = {"must": 0, "should": 1, "observed": 2}


def differences(baseline: Fingerprint, candidate: Fingerprint) -> tuple[Difference, ...]:
    """Every field in which they differ, the weightiest first; the state of the machine is not among them.

    A `must` field that only one of the two tells is no difference but a doubt: it comes as `should`, and says so. What
    neither tells, and what a later profkit added, is passed over. How the machine was (`observed`) differs from one run
    to the next in any case: whether it explains a change is for whoever knows the change.
    """
    fields = all_fields()
    before = {feature.name: feature.value for feature in baseline.features}
    after = {feature.name: feature.value for feature in candidate.features}
    found = [
        _difference(field, before.get(name), after.get(name))
        for name, field in fields.items()
        if field.tier != "observed" and before.get(name) != after.get(name)
    ]
    return tuple(sorted(found, key=lambda difference: _WEIGHT[difference.tier]))


def _difference(field: Field, before: str | None, after: str | None) -> Difference:
    difference = Difference(field.name, field.tier, before, after, field.why, field.tools, field.metrics)
    if before is not None and after is not None:
        return difference
    silent = "baseline" if before is None else "candidate"
    return replace(difference, tier="should", meaning=f"the {silent} does not say: {field.why}")

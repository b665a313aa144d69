"""A run's fingerprint: the value of every field, and an id of the machine."""

from __future__ import annotations

import hashlib

from profkit.analysis.comparability.fields import all_fields
from profkit.analysis.comparability.values import values_of
from profkit.core.types import Feature, Fingerprint, RunDocument

ID_LENGTH = 12  # hexadecimal digits: two of a thousand machines share one in 1 of 500 million fleets


def fingerprint_of(document: RunDocument) -> Fingerprint:
    """What `document` says of every field; a field that it does not tell has the value None.

    Works on a run of any age, an unfinished one, and a report of any tool. Nothing in it names the machine, its user
    or a folder.
    """
    told = values_of(document)
    features = tuple(Feature(name, told.get(name), field.tier) for name, field in all_fields().items())
    return Fingerprint(_id(features), features)


def _id(features: tuple[Feature, ...]) -> str:
    fields = all_fields()
    words = [
        f"{feature.name}={feature.value}"
        for feature in features
        if feature.value is not None and feature.tier == "must" and fields[feature.name].of == "machine"
    ]
    return hashlib.sha256("\n".join(words).encode("utf-8", "replace")).hexdigest()[:ID_LENGTH]

"""The cache geometry a processor usually has, for where the machine does not say or cannot be believed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path




@dataclass(frozen=True)
class Typical:
    """Geometry of one kind of processor: (bytes, ways) of L1I, L1D, L2 and, where it has one, L3."""

    name: str
    vendor: str | None
    family: int | None
    models: tuple[tuple[int, int], ...] | None
    l1i: tuple[int, int]
    l1d: tuple[int, int]
    l2: tuple[int, int]
    l3: tuple[int, int] | None

    def level(self, level: int) -> tuple[int, int] | None:
        """Size and ways of a data or unified level; None where the part has none."""
        return {1: self.l1d, 2: self.l2, 3: self.l3}.get(level)

    def fits(self, vendor: str, family: int | None, model: int | None) -> bool:
        """True when this entry speaks of that processor."""
        if self.vendor is not None and self.vendor != vendor:
            return False
        if self.family is not None and self.family != family:
            return False
        return self.models is None or any(low <= (model or 0) <= high for low, high in self.models)


def typical_of(vendor: str, family: int | None, model: int | None) -> Typical:
    """The entry of `typical_caches.json` for a processor; the last one fits every processor."""
    return next(entry for entry in table() if entry.fits(vendor, family, model))


@lru_cache
def table() -> tuple[Typical, ...]:
    """All entries, in the order they are tried."""
    data = json.loads((Path(__file__).with_name("typical_caches.json")).read_text("utf-8"))
    return tuple(
        Typical(
            name=entry["name"],
            vendor=entry["vendor"],
            family=entry["family"],
            models=None if entry["models"] is None else tuple((low, high) for low, high in entry["models"]),
            l1i=_bytes(entry["l1i"]),
            l1d=_bytes(entry["l1d"]),
            l2=_bytes(entry["l2"]),
            l3=None if entry["l3"] is None else _bytes(entry["l3"]),
        )
        for entry in data["typical"]
    )


def _bytes(pair: list[int]) -> tuple[int, int]:
    size, ways = pair
    return size * 1024, ways

"""Unpoolings write each value to a place that an index names. Of two values for one place PyTorch keeps either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from profkit.kernels.evaluation.candidate.arguments import Tensor
from profkit.kernels.evaluation.judging.reference import argument_of

DIMENSIONS = {"max_unpool2d": 2, "max_unpool3d": 3}


def separate_places(operation: Any, arguments: tuple[Sequence[Any], Mapping[str, Any]]) -> bool:
    """Give each value of a plane a place of its own, where an unpooling has two for one; whether that is so now.

    The tensor of places is changed. A place that comes first stays; the others become free ones, from the lowest on.
    """
    dimensions = DIMENSIONS.get(str(operation).split(".")[1])
    if dimensions is None:
        return True
    places = argument_of(operation, arguments, "indices")
    if places.dim() < dimensions or not places.numel():
        return True
    size = prod(argument_of(operation, arguments, "output_size"))
    planes = places.flatten(-dimensions).contiguous()
    rows = planes.view(-1, planes.shape[-1])
    if rows.shape[-1] > size:
        return False
    for row in rows:
        _separate(row, size)
    places.copy_(planes.view(places.shape))
    return True


def _separate(row: Tensor, size: int) -> None:
    known = row.tolist()
    seen = set(known)
    if len(seen) == len(known):
        return
    free = (place for place in range(size) if place not in seen)
    taken: set[int] = set()
    for number, place in enumerate(known):
        if place in taken:
            row[number] = next(free)
        taken.add(place)

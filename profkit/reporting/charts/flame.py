"""A flame graph for a page: its boxes as compact data for the script that draws them.

A box needs three numbers: its name's place in a list, its depth, and its value in millionths of the whole. The script
makes elements of them, so the page holds no megabyte of markup, and boxes are as wide as the screen allows.
"""

from __future__ import annotations

from typing import cast

from profkit.analysis.stacks.files import Flame
from profkit.core.formatting import quantity
from profkit.core.types import Json
from profkit.reporting.plain_text import harmless

PARTS = 1_000_000  # values are whole numbers of these parts: six digits are more than a screen has pixels
KINDS = ("python", "native", "kernel")


def flame_data(flame: Flame) -> Json:
    """What `flame.js` draws: names with their kinds; of each box name, depth and value, in the order of the tree."""
    names: dict[tuple[str, str], int] = {}
    numbers: list[int] = []
    for box in flame.boxes:
        name = names.setdefault((harmless(box.name), box.kind), len(names))
        numbers += [name, box.depth, round(PARTS * box.value / flame.total)]
    return {
        "title": harmless(flame.title),
        "total": quantity(flame.total, flame.unit),
        "parts": PARTS,
        "names": [name for name, _ in names],
        "kinds": "".join(str(KINDS.index(kind)) for _, kind in names),
        "boxes": cast(Json, numbers),
    }

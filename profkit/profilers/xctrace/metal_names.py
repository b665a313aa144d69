"""What the encoders of a recording are called: by their labels, where the program gave them any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profkit.profilers.xctrace.metal_host import Encoders, encoder_name
from profkit.profilers.xctrace.metal_work import GpuWork

NO_LABEL = "(no label)"
BLIT = "Blit"


def encoder_names(work: GpuWork, rows: Mapping[str, Any], encoders: Encoders) -> tuple[list[str], Any]:
    """Names, and for each interval the number of its own.

    The label in the list of encoders, joined by `encoder-id`; else the labels that the interval itself shows
    ("command buffer:encoder"); else the channel.
    """
    import numpy as np

    listed = encoders.labels.all
    shown = [encoder_name(*_parts(label)) for label in work.labels.all]
    channels = [f"{channel} {NO_LABEL}".strip() for channel in work.channels.all]
    names = [*listed, *shown, *channels]
    empty_listed = np.array([not label for label in listed] or [True])
    empty_shown = np.array([not label for label in shown] or [True])
    number = encoders.label_numbers(rows["encoder"])
    by_list = (number >= 0) & ~empty_listed[np.maximum(number, 0)]
    by_interval = ~empty_shown[rows["label"]] if len(shown) else np.zeros(len(number), dtype=bool)
    which = np.where(
        by_list,
        number,
        np.where(by_interval, len(listed) + rows["label"], len(listed) + len(shown) + rows["channel"]),
    )
    table: dict[str, int] = {}
    place = np.array([table.setdefault(name, len(table)) for name in names] or [0])
    return list(table), place[which]


def _parts(shown: str) -> tuple[str, str]:
    """`Command Buffer 0:Compute Command 0` as label of the command buffer and of the encoder."""
    buffer, colon, label = shown.partition(":")
    return (buffer.strip(), label.strip()) if colon else ("", shown)

"""docs/metrics.md, worked out from the catalogue.

`python -m tests.metrics_page` writes it; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profkit.analysis.metrics import MetricInfo, all_metrics

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"
FAMILIES = (
    ("Time", ("time.", "clock.")),
    ("Caches", ("cache.", "tlb.")),
    ("The core", ("instructions", "cycles", "ipc", "frequency", "branch.", "simd.", "stalls.")),
    ("Memory traffic, arithmetic, roofline", ("dram.", "bandwidth.", "flops", "arithmetic", "roofline.")),
    ("Memory held", ("memory.",)),
    (
        "GPUs",
        (
            "occupancy.",
            "cluster.",
            "shared.",
            "warp",
            "issue.",
            "tensor.",
            "pipe.",
            "sm.",
            "throughput.",
            "gpu.",
        ),
    ),
    ("What warps wait for", ("stall.",)),
    ("Launches, copies, replays", ("launch.", "transfer.", "nvlink.", "replay.")),
    ("Command buffers, queue and frames of Metal", ("queue.", "buffer.", "frame.")),
    ("The system around it", ("",)),
)
# What every text of a section begins with: it stands once above the list.
COMMON_START = {"What warps wait for": "Warps per issued instruction that waited"}
HEAD = """# Metrics

The names of all numbers, the same in every backend and on every screen. What could not be measured is `unavailable`,
with the reason; which tool and formula gave a number stands with it in a report. Behind a name: the unit (seconds,
bytes, FLOP and Hz without prefix; `kinstr` is a thousand instructions), and which way is good, where one is.
`python -m tests.metrics_page` makes this page from the catalogue.
"""


def text() -> str:
    """The page as it should be."""
    left = list(all_metrics())
    parts = [HEAD]
    for title, prefixes in FAMILIES:
        chosen = [info for info in left if info.name.startswith(prefixes)]
        left = [info for info in left if info not in chosen]
        if chosen:
            start = COMMON_START.get(title)
            intro = f"{start} ...\n\n" if start else ""
            parts.append(f"## {title}\n\n{intro}{_rows(chosen, start)}\n")
    return "\n".join(parts)


def _rows(chosen: Sequence[MetricInfo], start: str | None) -> str:
    """One line for what several metrics say alike: those of one precision, one resource, one direction."""
    alike: dict[tuple[str, str], list[str]] = {}
    for info in chosen:
        meaning = info.meaning.removeprefix(f"{start} ") if start is not None else info.meaning
        unit = info.unit if info.direction == "none" else f"{info.unit}, {info.direction}"
        alike.setdefault((meaning, unit), []).append(f"`{info.name}`")
    return "\n".join(f"- {', '.join(names)} ({unit}): {meaning}" for (meaning, unit), names in alike.items())


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    print(f"wrote {PAGE}")

"""docs/metrics.md, worked out from the catalogue and the formulas.

`python -m tests.metrics_page` writes it; a test holds the two together.
"""

from __future__ import annotations

from pathlib import Path

from profkit.analysis.metrics import MetricInfo, all_metrics, formula_table

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
CHIPS = ("intel", "amd", "arm", "generic")
MACS = ("apple",)
# What every text of a section begins with: it stands once above the table.
COMMON_START = {"What warps wait for": "Warps per issued instruction that waited"}
TABLE = "| metric | unit | counters of | what it is |\n| --- | --- | --- | --- |\n"
HEAD = """# Metrics

The names of all numbers, the same in every backend and on every screen. What could not be measured is `unavailable`,
with the reason. `python -m tests.metrics_page` makes this page from the catalogue and the formulas in
`profkit/analysis/metrics/`.

- *unit*: seconds, bytes, FLOP and Hz without prefix, shares in per cent; `kinstr` is a thousand instructions. `lower`
  or `higher` is the good direction; a metric without one only describes.
- *counters of*: the tools whose counters give it, by a formula in `profkit/analysis/metrics/formulas/`. Empty: it comes
  from the clock, from Python, or from other readings, by a formula that stands with the reading.
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
            rows = "\n".join(_row(info, start) for info in chosen)
            parts.append(f"## {title}\n\n{intro}{TABLE}{rows}\n")
    return "\n".join(parts)


def _row(info: MetricInfo, start: str | None) -> str:
    meaning = f"{info.title}. {info.meaning}" if start is None else info.meaning.removeprefix(f"{start} ")
    unit = info.unit if info.direction == "none" else f"{info.unit}, {info.direction}"
    cells = (f"`{info.name}`", unit, _sources(info.name), meaning.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def _sources(name: str) -> str:
    """`perf (intel, amd), valgrind`: the formula tables that have the metric."""
    chips = [chip for chip in CHIPS if name in formula_table("perf", chip).formulas]
    perf = "perf" if len(chips) == len(CHIPS) else f"perf ({', '.join(chips)})" if chips else ""
    valgrind = "valgrind" if name in formula_table("valgrind").formulas else ""
    ncu = "ncu" if name in formula_table("ncu").formulas else ""
    macs = [chip for chip in MACS if formula_table("xctrace", chip).formulas.get(name)]
    xctrace = "xctrace" if len(macs) == len(MACS) else f"xctrace ({', '.join(macs)})" if macs else ""
    return ", ".join(part for part in (perf, valgrind, ncu, xctrace) if part)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    print(f"wrote {PAGE}")

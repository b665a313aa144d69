"""Formulas as data: one YAML per tool and chip, read into a table of ways from counters to metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from profkit.analysis.metrics.catalogue import all_metrics
from profkit.analysis.metrics.formula import Formula, Sum, parse_sum
from profkit.core.tables import load_yaml

# `$name` in a formula: a sum that stands under `terms` of the same file.
_TERM = re.compile(r"\$(\w+)")


@lru_cache(maxsize=1)
def _files() -> Mapping[str, tuple[str, ...]]:
    """Return the chips of every tool that counts, the most specific first; a tool without chips has its own name."""
    rows = load_yaml(Path(__file__).parents[1] / "tools.yaml")
    return {tool: tuple(chips) or (tool,) for tool, chips in rows.items()}


@dataclass(frozen=True)
class FormulaTable:
    """From counters to metrics for one tool and chip: for each metric its formulas, best first.

    `absent` says by a code why this tool can never have a metric. `aliases` maps another name of a counter to the one
    the formulas use. `quality` is what a reading is at best. An `optional` metric is not spoken of where no
    formula's counters were all collected. `missing` is the code of what it means that none was.
    """

    tool: str
    chip: str | None
    quality: Literal["measured", "simulated"]
    formulas: Mapping[str, tuple[Formula, ...]]
    absent: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """Return the name under which the formulas know the counter `name`; case does not matter."""
        lowered = name.lower()
        return self.aliases.get(lowered, lowered)


def has_formulas(tool: str) -> bool:
    """Return whether the counters of `tool` are known: Xdebug writes callgrind's format, and counts other things in
    it.
    """
    return tool in _files()


@lru_cache(maxsize=16)
def formula_table(tool: str, chip: str | None = None) -> FormulaTable:
    """Return the table of `tool` for `chip` (intel, amd, arm, generic); without a chip, for any report.

    Event names differ between vendors, so an unknown report is read with all of them. Only where vendors mean
    different things by one name (`cache-misses`) a formula needs its chip to be known.
    Raises KeyError for a tool or a chip that has no file.
    """
    files = _files()[tool]
    if chip is not None and chip not in files:
        raise KeyError(chip)
    chosen = files if chip is None else dict.fromkeys((chip, files[-1]))
    formulas: dict[str, list[Formula]] = {}
    absent: dict[str, str] = {}
    aliases: dict[str, str] = {}
    optional: set[str] = set()
    missing: dict[str, str] = {}
    quality: Literal["measured", "simulated"] = "measured"
    for name in chosen:
        stem = name if name == tool else f"{tool}-{name}"
        content = load_yaml(Path(__file__).with_name(f"{stem}.yaml"))
        quality = content.get("quality", "measured")
        aliases |= {str(k).lower(): str(v).lower() for k, v in content.get("aliases", {}).items()}
        absent |= content.get("absent", {})
        missing |= content.get("missing", {})
        terms = content.get("terms", {})
        optional |= set(content.get("optional", ()))
        for metric, rows in content["metrics"].items():
            ways = [_formula(row, terms) for row in rows if chip is not None or not row.get("chip_only")]
            formulas.setdefault(metric, []).extend(ways)
    order = [info.name for info in all_metrics()]
    in_order = {name: tuple(formulas[name]) for name in sorted(formulas, key=order.index)}
    return FormulaTable(tool, chip, quality, in_order, absent, aliases, frozenset(optional), missing)


def _formula(row: Mapping[str, Any], terms: Mapping[str, str]) -> Formula:
    def written(text: str) -> Sum:
        return parse_sum(_TERM.sub(lambda match: terms[match[1]], text))

    most_of = tuple(map(written, row.get("most_of", ())))
    sums = {key: written(row[key]) for key in ("over", "under", "unless_zero") if key in row}
    plain = {key: value for key, value in row.items() if key not in (*sums, "chip_only", "most_of")}
    return Formula(**{"over": next(iter(most_of), None), **sums, **plain, "most_of": most_of})

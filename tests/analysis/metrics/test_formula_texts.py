"""The text of a formula, evaluated as it stands, is the value beside which it is shown."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formula import Formula
from profkit.analysis.metrics.formulas import FormulaTable, _files, formula_table
from profkit.core.types import Counter, Reading

TABLES = [
    (tool, chip) for tool, chips in _files().items() for chip in (None, *(c for c in chips if c != tool))
]
TRIES = 400  # made-up counts, until a metric's value is one that can be


def evaluate_literally(text: str, counts: dict[str, float]) -> float:
    """What arithmetic makes of the text, with a count in the place of each name."""
    names = sorted(counts, key=lambda name: -len(name))
    pattern = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, names)) + r")(?![\w.])")
    written = pattern.sub(lambda match: repr(counts[match[0]]), text)
    return float(eval(written, {"__builtins__": {}, "most": max}))


def derived(table: FormulaTable, metric: str, way: Formula) -> tuple[Reading, dict[str, float]]:
    """A reading with a value by that formula alone, and the counts it is of."""
    alone = replace(table, formulas={metric: (way,)}, absent={}, optional=frozenset())
    above = {name for part in way.most_of or (way.over,) for name in part.names}
    for seed in range(TRIES):
        dice = random.Random(seed)
        counts = {n: dice.uniform(0.05, 3) * (1 if n in above else 10.0 ** (seed % 5)) for n in way.names}
        counters = [Counter(name, value, "measured") for name, value in counts.items()]
        (reading,) = derive(counters, alone, table.tool)
        if reading.value:
            return reading, counts
    raise AssertionError(f"{metric}: {way.text} gave no value")


@pytest.mark.parametrize(("tool", "chip"), TABLES)
def test_every_formula_read_literally_gives_the_value_that_it_stands_beside(
    tool: str, chip: str | None
) -> None:
    table = formula_table(tool, chip)
    ways = [(metric, way) for metric, ways in table.formulas.items() for way in ways]
    assert ways
    for metric, way in ways:
        reading, counts = derived(table, metric, way)
        assert reading.source.formula is not None
        literal = evaluate_literally(reading.source.formula, counts)
        assert literal == pytest.approx(reading.value, rel=1e-9), (metric, reading.source.formula)


@pytest.mark.parametrize(
    ("text", "value"), [("100 * (a + b) / (2*c)", 25.0), ("a / b*c", 3.0), ("most(a, b, c) / a.x", 1.5)]
)
def test_a_text_is_read_as_people_read_it(text: str, value: float) -> None:
    assert evaluate_literally(text, {"a": 1.0, "b": 2.0, "c": 6.0, "a.x": 4.0}) == pytest.approx(value)

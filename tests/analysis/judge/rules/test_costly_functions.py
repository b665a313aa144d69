"""Functions that cost more than what they are used for: small programs, and what stands for these instead."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from profkit.analysis.judge.rules.spot_functions import CostlyFunction, costly_functions
from tests.analysis.judge.rules.test_chain_rules import findings

PROGRAM = """
import ast, codecs, collections, copy, dataclasses, enum, functools, inspect, io, json, pathlib, pprint, re, statistics
import time, types, typing
{setup}
def work(n):
    {line}
until = time.perf_counter() + 0.6
n = 0
while time.perf_counter() < until:
    for _ in range(50):
        work(n)
        n += 1
"""
# title: set-up, the line, and the same result as an engineer writes it
CASES = {
    "Copy less than copy.deepcopy does": (
        "state = {str(n): [n] * 5 for n in range(50)}",
        "new = copy.deepcopy(state)",
        "new = {key: list(row) for key, row in state.items()}",
    ),
    "dataclasses.asdict copies all that the object holds": (
        "P = dataclasses.make_dataclass('P', [('x', int), ('y', list)])\np = P(1, [1] * 20)",
        "row = dataclasses.asdict(p)",
        "row = dict(vars(p), y=list(p.y))",
    ),
    "statistics computes with exact fractions": (
        "xs = [n / 7 for n in range(300)]",
        "m = statistics.mean(xs)",
        "m = statistics.fmean(xs)",
    ),
    "A new Counter is made each time": (
        "total = collections.Counter({n: 1 for n in range(300)})\none = collections.Counter({1: 1})",
        "global total; total = total + one",
        "total.update(one)",
    ),
    "Each look at a ChainMap goes through its maps": (
        "chain = collections.ChainMap(*[{n: n} for n in range(20)])\nflat = dict(chain)",
        "x = [chain[19] for _ in range(50)]",
        "x = [flat[19] for _ in range(50)]",
    ),
    "Do not read data with ast.literal_eval": (
        "text = str(list(range(200)))",
        "x = ast.literal_eval(text)",
        "x = json.loads(text)",
    ),
    "This JSON is written piece by piece, in Python": (
        "data = {str(n): [n] * 5 for n in range(50)}",
        "json.dump(data, io.StringIO())",
        "io.StringIO().write(json.dumps(data))",
    ),
    "Ask inspect once for each function or class, and keep the answer": (
        "def f(a, b=1, *, c: int = 2): pass\nkept = inspect.signature(f)",
        "x = inspect.signature(f).parameters",
        "x = kept.parameters",
    ),
    "Regular expressions are compiled again and again": (
        "texts = ['a%d' % n for n in range(3)]",
        "x = [t for t in texts if re.match('a%d+$' % n, t)]",
        "x = [t for t in texts if t.startswith('a%d' % n)]",
    ),
    "Do not format with pprint here": (
        "data = {str(n): [n] * 5 for n in range(50)}",
        "x = pprint.pformat(data)",
        "x = repr(data)",
    ),
    "Use open instead of codecs.open": (
        "open('t.txt', 'w').write('hello\\n' * 20_000)",
        "x = list(codecs.open('t.txt', encoding='utf-8'))",
        "x = list(open('t.txt', encoding='utf-8'))",
    ),
}


def told(folder: Path, setup: str, line: str) -> list[str]:
    found = findings(folder, PROGRAM.format(setup=setup, line=line))
    return [one.title for rule, one in found.items() if rule == "costly-helper"]


@pytest.mark.parametrize(
    ("elements", "expected"),
    [(60_000, ["Each insertion into this sorted list moves what is behind it"]), (200, [])],
)
def test_an_insertion_into_a_sorted_list_is_told_where_the_list_is_long(
    elements: int, expected: list[str], tmp_path: Path
) -> None:
    setup = f"import bisect\nheld = list(range({elements}))"
    line = "bisect.insort(held, n % 7); held.pop()"
    assert told(tmp_path, setup, line) == expected


def test_a_draw_of_many_at_once_is_not_told_to_add_up_its_weights(tmp_path: Path) -> None:
    setup = "import random\nweights = [1, 2, 3, 4]"
    assert told(tmp_path, setup, "x = random.choices('ACGT', weights=weights, k=300)") == []


@pytest.mark.parametrize("title", CASES)
def test_a_function_that_costs_more_than_what_it_is_used_for_is_named_and_what_stands_for_it_is_not(
    title: str, tmp_path: Path
) -> None:
    setup, line, mended = CASES[title]
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    assert told(folders[0], setup, line) == [title]
    assert told(folders[1], setup, mended) == []


def test_each_row_says_where_its_time_lies_and_what_to_write_instead() -> None:
    for row in costly_functions():
        assert bool(row.file) != bool(row.calls), row
        assert len(row.title) <= 90
        assert row.change
        for pattern in (row.file, row.text, row.without, row.beside, row.unless):
            re.compile(pattern)
        assert row.least >= 0.3


STANDARD = Path(os.__file__).parent
SOURCES = {
    path.relative_to(STANDARD.parent).as_posix(): path
    for path in STANDARD.rglob("*.py")
    if not {"site-packages", "test", "lib2to3"} & set(path.parts)
}
WITH_NAMES = [row for row in costly_functions() if row.functions]


@pytest.mark.parametrize("row", WITH_NAMES, ids=lambda row: row.title)
def test_a_row_about_a_module_of_this_python_names_functions_that_are_in_it(row: CostlyFunction) -> None:
    """A name that no version has would prove nothing, silently."""
    texts = [path.read_text() for name, path in SOURCES.items() if re.search(f"(?:{row.file})$", f"/{name}")]
    names = {name.rpartition(".")[2] for name in row.functions}
    assert not texts or any(f"def {name}(" in text for text in texts for name in names)

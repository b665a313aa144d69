"""Exports whose ids are not numbered as xctrace numbers them: read as they are meant, or refused, never wrong."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace import definitions, quick
from profkit.profilers.xctrace.stream import tables, tables_carefully
from tests.xctrace_tables import duration, export, label, node, process, text, time

COLUMNS = (
    ("start", "start-time"),
    ("process", "process"),
    ("duration", "duration"),
    ("label", "formatted-label"),
)
ROWS = [
    [
        time(n),
        process(f"p{n % 300}", n % 300),
        duration(n % 700),
        label(text("string", f"{n % 500}"), duration(n)),
    ]
    for n in range(3000)
]
WHOLE = export(node("metal-gpu-intervals", COLUMNS, ROWS))
WANTED = ["start", "process", "duration", "label"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, blocks and memories so small that a file of half a megabyte has many of them."""
    monkeypatch.setattr(quick, "CHUNK", 20_000)
    monkeypatch.setattr(definitions, "BLOCK", 2_000)
    monkeypatch.setattr(definitions, "KEPT", 50)
    monkeypatch.setattr("profkit.profilers.xctrace.fast_columns.KEPT", 50)


def renamed(names: dict[int, int]) -> bytes:
    return re.sub(
        rb' (id|ref)="(\d+)"',
        lambda said: b' %s="%d"' % (said[1], names.get(int(said[2]), int(said[2]))),
        WHOLE,
    )


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("apart", [40, 1_000_000])
def test_ids_in_another_order_are_followed(step: int, apart: int, tmp_path: Path) -> None:
    """Out of order by up to `apart`, and with numbers left out where `step` is over 1."""
    plain, path = tmp_path / "plain.xml", tmp_path / "x.xml"
    plain.write_bytes(WHOLE)
    ids = [int(said) for said in re.findall(rb' id="(\d+)"', WHOLE)]
    chance = random.Random(7)
    order = sorted(range(len(ids)), key=lambda place: place + chance.uniform(0, apart))
    path.write_bytes(renamed({ids[place]: 1 + step * number for number, place in enumerate(order)}))
    expected = [row for table in tables(plain) for row in table.rows(WANTED)]
    assert len(expected) == 3000
    assert [row for table in tables(path) for row in table.rows(WANTED)] == expected


def test_an_id_that_was_damaged_is_never_another_value(tmp_path: Path) -> None:
    """One digit of one id is another: the value is that of the file read element by element, or it is refused."""
    path = tmp_path / "x.xml"
    chance = random.Random(3)
    ids = [said.start(1) for said in re.finditer(rb' id="\d*(\d)"', WHOLE)]
    for place in chance.sample(ids, 12):
        other = b"0123456789"[(WHOLE[place] - 47) % 10 :][:1]
        path.write_bytes(WHOLE[:place] + other + WHOLE[place + 1 :])
        said: list[object] = []
        for way in (tables, tables_carefully):
            try:
                said.append([row for table in way(path) for row in table.rows(WANTED)])
            except UnreadableReport as error:
                said.append(error.message)
        assert said[0] == said[1]

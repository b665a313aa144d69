"""What is said of a Metal trace: encoders, counters, states."""

from __future__ import annotations

from profkit.core.types import MetalWork
from tests import metal_documents as metal
from tests.reporting.shown import cells_of, rows_of, table_of, texts_of

BY_TIME = "Encoders by GPU time"


def test_without_labels_the_channels_are_told() -> None:
    found = texts_of(metal.run(metal.metal(encoders=())))["encoders"]
    assert found.headline == "Compute takes 100.0 % of 1.40 s in 610 channels."
    assert "Encoders cannot be distinguished" in found.notes[0]


def test_names_that_metal_gives_are_told_from_labels() -> None:
    unnamed = (MetalWork("Compute Command 0", "encoder", 9, 1.0), MetalWork("", "encoder", 1, 0.1))
    for works, said in ((unnamed, True), ((*unnamed, metal.SILU), False)):
        found = texts_of(metal.run(metal.metal(encoders=works)))["encoders"]
        assert any("Metal's own names" in note for note in found.notes) is said


def test_a_table_shows_the_largest_and_counts_the_rest() -> None:
    works = tuple(MetalWork(f"op {n}", "encoder", 1, 1.0 + n) for n in range(14))
    text = texts_of(metal.run(metal.metal(encoders=works)))["encoders"]
    assert len(rows_of(text, BY_TIME)) == 10
    assert rows_of(text, BY_TIME)[0][:4] == ("op 13", "1", "14.0 s", "13.3 %")
    assert table_of(text, BY_TIME).note == "and 4 further encoders, 9.5 % of the time"
    counters = tuple(metal.counter(f"c{n}", 1.0) for n in range(86))
    text = texts_of(metal.run(metal.metal(counters=counters)))["occupancy"]
    note = str(table_of(text, "All counters, of the whole device").note)
    assert note.startswith("and 46 further counters in run.json; samples cover 50.0 %")


def test_states_without_work_have_no_column_for_it() -> None:
    text = texts_of(metal.run())["state"]
    assert list(cells_of(text, "Performance states of the GPU")) == ["state", "time", "share", "at work"]
    assert list(cells_of(text, "Thermal states")) == ["state", "time", "share"]

"""What each thread did when, as the sampler keeps it."""

from __future__ import annotations

from typing import Any

from profkit.runtime.passes.host import waits
from profkit.runtime.passes.host.waits import MAX_ROWS, Stretches


def closed(*steps: tuple[float, int, str, int, float]) -> list[list[Any]]:
    """Rows after samples of 10 ms each: (until when, thread, kind, stack, share in which it ran)."""
    made = Stretches()
    for until, thread, kind, node, ran in steps:
        made.add(thread, node, kind, 0.01, 0.01 * ran)
        made.close(until)
    return made.taken({}, waits.SystemCalls())


def test_stretches_with_the_same_in_them_are_one_row() -> None:
    assert closed((0.01, 0, "lock", 5, 0), (0.02, 0, "lock", 5, 0), (0.03, 0, "sleep", 6, 0)) == [
        [0, 0, 20_000, "lock", 5, 20_000],
        [0, 20_000, 10_000, "sleep", 6, 10_000],
    ]


def test_a_thread_that_was_not_there_for_a_while_has_two_rows() -> None:
    made = Stretches()
    for until, there in ((0.01, True), (0.02, False), (0.03, True)):
        if there:
            made.add(0, 5, "lock", 0.01, 0.0)
        made.close(until)
    assert [row[1:3] for row in made.taken({}, waits.SystemCalls())] == [[0, 10_000], [20_000, 10_000]]


def test_a_part_in_which_it_ran_is_apart_from_the_rest(monkeypatch: Any) -> None:
    made = Stretches()
    monkeypatch.setattr(waits, "run_delay", lambda native, calls: 0.004)
    made.add(0, 5, "", 0.01, 0.003)
    made.close(0.01)
    assert [[row[3], row[5]] for row in made.taken({0: 77}, waits.SystemCalls())] == [
        ["run", 3000],
        ["rest", 3000],
        ["queue", 4000],
    ]


def test_what_the_system_does_not_tell_is_not_said_to_be_a_wait_for_a_processor(monkeypatch: Any) -> None:
    made = Stretches()
    monkeypatch.setattr(waits, "run_delay", lambda native, calls: None)
    made.add(0, 5, "", 0.01, 0.003)
    made.close(0.01)
    assert [row[3] for row in made.taken({0: 77}, waits.SystemCalls())] == ["run", "rest"]


def test_rows_are_bounded_between_two_writes() -> None:
    made = Stretches()
    for number in range(3 * MAX_ROWS):
        made.add(0, number, "", 0.01, 0.01)
        made.close((number + 1) * 0.01)
    assert len(made.taken({}, waits.SystemCalls())) == MAX_ROWS

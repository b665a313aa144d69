"""Merging stacks: what is counted once, what is bounded, and that tables stay exact where stacks are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profkit.analysis.stacks.merge import (
    MORE_STACKS,
    NO_STACK,
    FrameTable,
    StackMerger,
)
from profkit.core.types import Frame

MAIN, WORK, LEAF = Frame("main", "app"), Frame("work", "app"), Frame("memcpy", "libc.so.6")


def merged(*samples: tuple[tuple[Frame, ...], float], most_slots: int = 1000) -> StackMerger:
    """Samples as (stack, outermost first; weight)."""
    table = FrameTable()
    merger = StackMerger(table, most_slots)
    for stack, weight in samples:
        merger.add(table.stack(reversed(stack)), weight)
    return merger


def test_equal_stacks_are_added_up_and_read_outermost_first():
    merger = merged(((MAIN, WORK), 2), ((MAIN, LEAF), 3), ((MAIN, WORK), 5))
    assert merger.stacks("t", "n").weights == {(MAIN, WORK): 7, (MAIN, LEAF): 3}


def test_the_divisor_gives_the_value_that_a_person_would_write():
    assert merged(((MAIN,), 60180540)).stacks("t", "s", 1e9).weights == {(MAIN,): 0.06018054}


def test_a_sample_without_a_stack_is_counted_and_says_so():
    merger = merged(((), 4))
    assert merger.stacks("t", "n").weights == {(NO_STACK,): 4}
    assert merger.profiles("t", "n")[0].total == 4


def test_recursion_is_counted_once_in_the_inclusive_weight():
    functions = merged(((MAIN, WORK, WORK, WORK), 10.0)).profiles("t", "n")[0]
    work = next(h for h in functions.hotspots if h.function == "work")
    assert (work.own, work.total, functions.total) == (10, 10, 10)


def test_a_library_is_inclusive_over_all_its_functions_and_counted_once():
    libraries = merged(((MAIN, WORK, LEAF), 4.0), ((MAIN,), 1.0)).profiles("t", "n")[1]
    assert [(h.function, h.own, h.total) for h in libraries.hotspots] == [
        ("libc.so.6", 4, 4),
        ("app", 1, 5),
    ]


def test_functions_of_one_name_in_two_libraries_are_two_functions():
    functions = merged(((Frame("_start", "a.so"),), 1.0), ((Frame("_start", "b.so"),), 2.0)).profiles(
        "t", "n"
    )[0]
    assert [(h.library, h.own) for h in functions.hotspots] == [("b.so", 2), ("a.so", 1)]


def test_past_the_bound_stacks_are_cut_to_their_outer_frames_and_the_tables_stay_exact():
    samples = [((MAIN, WORK, Frame(f"f{n}", "app"), LEAF), 1.0) for n in range(20)]
    whole, cut = merged(*samples), merged(*samples, most_slots=8)
    assert cut.cut == 18
    assert cut.profiles("t", "n") == whole.profiles("t", "n")
    weights = cut.stacks("t", "n").weights
    assert sum(weights.values()) == 20
    assert len(weights) == 20  # eight outer frames hold all four of these: only the mark is added
    deep = [((MAIN,) * 30 + (Frame(f"f{n}"),), 1.0) for n in range(20)]
    weights = merged(*deep, most_slots=40).stacks("t", "n").weights
    assert weights[(MAIN,) * 7 + (MAIN, MORE_STACKS)] == 19


def test_past_the_bound_functions_are_no_longer_told_apart_but_their_library_is():
    table = FrameTable(limit=2)
    numbers = [table.add(Frame(f"f{n}", "lib.so")) for n in range(10)]
    assert table.full
    assert len(set(numbers)) == 3
    assert table.frames[numbers[-1]] == Frame("[more functions]", "lib.so")


def test_the_frame_table_is_bounded_even_where_every_library_is_new():
    table = FrameTable(limit=10)
    for n in range(1000):
        table.add(Frame(f"f{n}", f"lib{n}.so"))
    assert len(table.frames) <= 21


frames = st.builds(Frame, st.sampled_from("abcdef"), st.sampled_from(["x.so", "y.so", None]))
stacks_of = st.lists(st.tuples(st.lists(frames, max_size=12).map(tuple), st.integers(0, 1000)), min_size=1)


@given(stacks_of)
def test_whatever_is_merged_no_weight_is_lost_or_made(samples: list[tuple[tuple[Frame, ...], int]]):
    merger = merged(*samples, most_slots=20)
    total = sum(weight for _, weight in samples)
    functions, libraries = merger.profiles("t", "n")
    assert sum(merger.stacks("t", "n").weights.values()) == total == functions.total == libraries.total
    for profile in (functions, libraries):
        assert sum(h.own for h in profile.hotspots) == total
        assert all(h.own <= (h.total or 0) <= total for h in profile.hotspots)
        assert list(profile.hotspots) == sorted(profile.hotspots, key=lambda h: -h.own)

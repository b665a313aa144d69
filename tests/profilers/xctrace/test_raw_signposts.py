import pytest

from profkit.profilers.xctrace.alignment import pair_signposts
from profkit.runtime.region.mps import MARK


def row(time, kind, entry=1, name=1, mark=MARK, shown=None):
    return time, kind, shown, name, entry, mark


@pytest.mark.parametrize("kinds", [("Start", "End"), ("Begin", "End"), (1, 2)])
def test_a_begin_finds_the_end_of_its_entry(kinds):
    begin, end = kinds
    rows = [row(5, begin), row(40, begin, 2), row(20, end), row(60, end, 2)]
    assert pair_signposts(rows) == ((5, 20), (40, 60))
    assert pair_signposts(reversed(rows)) == ((5, 20), (40, 60))


def test_what_is_shown_tells_the_side_where_the_value_does_not():
    assert pair_signposts([row(5, 17, shown="Start"), row(9, 18, shown="End")]) == ((5, 9),)


def test_signposts_of_others_and_halves_are_no_windows():
    rows = [
        row(5, "Start", mark=3),
        row(9, "End", mark=3),
        row(10, "Start", 7),
        row(12, "End", 8),
        row(1, "Point"),
    ]
    assert pair_signposts(rows) == ()


def test_an_end_before_its_begin_is_none():
    assert pair_signposts([row(9, "Start"), row(5, "End"), row(None, "End")]) == ()

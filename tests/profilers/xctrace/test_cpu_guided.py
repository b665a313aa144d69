import pytest

from profkit.core.types import Report
from profkit.profilers.xctrace.alignment import Alignment, TraceRecording
from profkit.profilers.xctrace.cpu_report import GUIDED, CpuPiece
from profkit.profilers.xctrace.tables import ExportColumn, ExportTable
from tests.profilers.xctrace.cpu_tables import MAIN, ME, OTHER

TYPES = ("start-time", "duration", "thread", "process", "uint64", "fixed-decimal", "string", "boolean")
MS = 1_000_000


def read(rows, windows=()):
    columns = tuple(ExportColumn(f"c{number}", "", kind) for number, kind in enumerate(TYPES))

    def open_rows(wanted):
        places = [int(name[1:]) for name in wanted]
        return iter([tuple(row[place] for place in places) for row in rows])

    piece = CpuPiece(TraceRecording(target=ME, alignment=Alignment(tuple(windows), len(windows))))
    piece.read(ExportTable(GUIDED, columns, open_rows))
    report = piece.finish(Report("xctrace", "xctrace-export"))
    return {counter.name: counter.value for counter in report.counters}


def row(metric, whole=0, part=0.0, start=0, duration=10 * MS, thread=MAIN, precise=1):
    return start, duration, thread, ME, whole, part, metric, precise


def test_whole_numbers_and_shares_are_summed_by_metric():
    rows = [row("cycle", 300), row("cycle", 200), row("useful", part=0.5), row("useful", part=0.25)]
    assert read(rows) == {"cycle": 500, "useful": 0.75}


def test_the_steps_count_for_want_of_the_exact_stretches_only():
    assert read([row("cycle", 300), row("cycle", 310, precise=0)]) == {"cycle": 300}
    assert read([row("cycle", 300, precise=0)]) == {"cycle": 300}


def test_another_process_does_not_count():
    stranger = type(MAIN)("Main Thread", 3, OTHER)
    assert read([row("cycle", 300), row("cycle", 9000, thread=stranger)]) == {"cycle": 300}


@pytest.mark.parametrize(
    ("windows", "cycles"),
    [([(0, 10 * MS)], 300), ([(5 * MS, 8 * MS)], 90), ([(2 * MS, 3 * MS), (9 * MS, 20 * MS)], 60)],
)
def test_of_a_stretch_that_lies_half_in_the_region_half_counts(windows, cycles):
    assert read([row("cycle", 300)], windows) == {"cycle": pytest.approx(cycles)}


def test_nothing_in_the_region_is_no_zero():
    assert read([row("cycle", 300)], [(50 * MS, 60 * MS)]) == {}


def test_what_is_no_row_of_a_metric_is_left_out():
    assert read([row(None, 3), row("cycle", None, None), row("cycle", 5, start=None)]) == {}

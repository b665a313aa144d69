"""Programs that look as if they had a fault, and would win nothing by its advice: each beside one that would."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.rules.host_native import known_callee
from profkit.analysis.judge.rules.native.functions import costly_row
from profkit.analysis.judge.rules.spot_arrays import single_items
from profkit.analysis.judge.rules.spot_event_loop import sequential_waits
from profkit.analysis.judge.rules.spot_loops import integer_product
from profkit.analysis.judge.rules.spot_values import element_wise, linear_search
from profkit.analysis.judge.rules.spot_waits import polling
from profkit.analysis.judge.rules.work.excess import replaced_one_by_one
from profkit.analysis.judge.rules.work.queries import calls_in_loop, small_transfers
from profkit.analysis.stacks.native.code import native_constructs
from profkit.core.types import (
    Beneath,
    CodeLine,
    CodeSpot,
    Construct,
    Frame,
    Hotspot,
    LineCode,
    Place,
    Profile,
    TimeSplit,
    Variable,
)
from tests import documents
from tests.analysis.judge.rules.test_loop_rules import spot_at

ARRAY = Variable("numpy.ndarray", 50_000)


@pytest.mark.parametrize(("elements", "said"), [(120, False), (40_000, True)])
def test_a_short_list_may_lose_its_front(elements: int, said: bool) -> None:
    text = "def report(queue):\n    while queue:\n        queue.pop(0)\n"
    spot = spot_at(text, 3, variables={"queue": Variable("list", elements)})
    assert (linear_search(documents.empty(), spot) is not None) == said


def test_a_loop_each_iteration_of_which_needs_the_one_before_is_to_be_compiled() -> None:
    text = "def report(x, y):\n    for n in range(len(x)):\n        y[n] = x[n] / (1 + y[n - 1])\n"
    spot = spot_at(text, 3, kind="python", variables={"x": ARRAY, "y": ARRAY})
    found = element_wise(documents.empty(), spot)
    assert found is not None
    assert "each iteration needs the one before, by way of y" in found.title
    assert "numba" in found.change
    plain = spot_at(
        text.replace("y[n - 1]", "x[n - 1]"), 3, kind="python", variables={"x": ARRAY, "y": ARRAY}
    )
    found = element_wise(documents.empty(), plain)
    assert found is not None
    assert "at once" in found.title


def test_one_number_of_a_result_that_the_next_iteration_needs_is_not_taken_too_often() -> None:
    text = "def report(state):\n    while x:\n        force = model(state).item()\n        state = step(state, force)\n"
    tensor = {"state": Variable("torch.Tensor", 40)}
    assert element_wise(documents.empty(), spot_at(text, 3, variables=tensor)) is None
    free = text.replace("step(state, force)", "states[n]")
    assert element_wise(documents.empty(), spot_at(free, 3, variables=tensor)) is not None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("std::memcpy(frame + at, tile.data(), size);", False),
        ("target.copy_from_slice(&tile);", False),
        ("memmove(text, text + used, left);", True),
        ("total += sum_of(rows);", True),
    ],
)
def test_a_copy_that_the_line_asks_for_is_not_one_by_value(source: str, said: bool) -> None:
    place = Place(function="main", file="work.cpp", line=3)
    under = Beneath("__memmove_avx_unaligned_erms", "libc.so.6")
    spot = CodeSpot(0.7, 1.4, "native", place, under, code=LineCode(source))
    assert (known_callee(documents.empty(), spot) is not None) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [("near = numpy.abs(weights - x).argmin()", False), ("total += x * x", True)],
)
def test_an_item_that_a_whole_array_is_compared_with_is_not_what_costs(line: str, said: bool) -> None:
    text = f"import numpy\ndef report(weights, samples):\n    for x in samples:\n        {line}\n"
    held = {"x": Variable("numpy.float64"), "samples": ARRAY, "weights": ARRAY}
    spot = spot_at(text, 4, kind="python", variables=held)
    assert (single_items(documents.empty(), spot) is not None) == said


@pytest.mark.parametrize(
    ("awaited", "said"),
    [
        ("page = await fetch(token)", False),
        ("await asyncio.sleep(0.1)", False),
        ("rows[token] = await fetch(n)", True),
    ],
)
def test_what_needs_the_answer_before_is_not_to_be_awaited_at_the_same_time(awaited: str, said: bool) -> None:
    head = "import asyncio\nasync def report(n, token):\n    while token:\n"
    text = f"{head}        {awaited}\n        token = page.next\n"
    spot = spot_at(text, 4, kind="await")
    assert (sequential_waits(documents.empty(), spot) is not None) == said


@pytest.mark.parametrize(
    ("taken", "said"),
    [(360, True), (900, False)],
    ids=["a semaphore that is always free", "one for which tasks wait"],
)
def test_a_semaphore_that_nobody_waits_for_does_not_run_tasks_at_the_same_time(
    taken: int, said: bool
) -> None:
    head = "async def board(limit):\n    for symbol in SYMBOLS:\n"
    text = f"{head}        async with limit:\n            await fetch(symbol)\n"
    counts = (
        Hotspot("acquire", 0.1, None, taken, "/usr/lib/python3/asyncio/locks.py", 379),
        Hotspot("release", 0.1, None, 360, "/usr/lib/python3/asyncio/locks.py", 412),
    )
    document = replace(documents.empty(), profiles=(Profile("", "s", 1.0, counts, "own-time"),))
    found = sequential_waits(document, spot_at(text, 4, kind="await"))
    assert (found is not None and found.rule == "sequential-waits") == said


@pytest.mark.parametrize(("head", "said"), [("for order in ", False), ("total = ", True)])
def test_a_query_that_a_loop_goes_through_is_asked_once_for_all_of_it(head: str, said: bool) -> None:
    """Of an export with its relation loaded: 3,001 objects were made, and not as many queries."""
    text = f"def report(session):\n    while rows:\n        {head}session.scalars(query){':' if not said else ''}\n"
    text += "            show(order)\n" * (not said)
    under = Beneath("new_instance", "sqlalchemy", 3001, 80e-6)
    spot = spot_at(text, 3, kind="library", under=under, calls=3001)
    found = calls_in_loop(documents.empty(), spot)
    assert (found is not None) == said


@pytest.mark.parametrize(("seconds", "rule"), [(2.7, "slow-statements"), (0.02, "calls-in-loop")])
def test_a_statement_is_slow_by_cprofile_where_only_a_part_of_the_calls_was_sampled(
    seconds: float, rule: str
) -> None:
    """Of a look-up without an index: 214 statements of 12.6 ms were told to be one."""
    edge = Hotspot(
        "report", seconds, seconds, 214, "/app/a.py", 1,
        callee=Frame("<method 'execute' of 'sqlite3.Connection' objects>", "built-in"),
    )  # fmt: skip
    text = "def report(conn, no):\n    return conn.execute(LAST, (no,)).fetchone()\n"
    spot = spot_at(text, 2, kind="python", under=Beneath("Connection.execute", None, 214), partial=True)
    place = replace(spot.where, file="/app/a.py", function="report")
    document = replace(documents.empty(), profiles=(Profile("", "s", seconds, (edge,), "program-calls"),))
    found = calls_in_loop(document, replace(spot, where=place))
    assert found is not None
    assert found.rule == rule


@pytest.mark.parametrize(("elements", "gain"), [(60, None), (150, 0.35), (1500, 0.665)])
def test_a_few_words_are_replaced_faster_one_by_one_than_by_a_pattern(
    elements: int, gain: float | None
) -> None:
    text = "def report(text, words):\n    for old, new in words.items():\n        text = text.replace(old, new)\n"
    spot = spot_at(text, 3, variables={"words": Variable("dict", elements)})
    found = replaced_one_by_one(documents.empty(), spot)
    assert (found.gain.at_most if found is not None and found.gain is not None else None) == (
        pytest.approx(gain) if gain is not None else None
    )


@pytest.mark.parametrize(("line", "said"), [("a = (a @ a) % 1_000_000_007", False), ("a = a @ a", True)])
def test_products_modulo_a_number_have_to_be_exact(line: str, said: bool) -> None:
    text = f"def report(a):\n    {line}\n"
    spot = spot_at(text, 2, variables={"a": Variable("numpy.ndarray of integers")})
    assert (integer_product(documents.empty(), spot) is not None) == said


def row_of(source: str, *below: tuple[str, float], file: str = "work.cpp") -> str:
    """The row of costly_native.yaml that is said of a line with such functions below it."""
    frames = tuple(CodeLine(name, None, None, value) for name, value in below)
    place = Place(function="main", file=file, line=3)
    found = costly_row(CodeSpot(0.7, 1.4, "native", place, code=LineCode(source), below=frames))
    return found[0].id if found is not None else ""


GROWS = ("std::vector::_M_realloc_insert", 0.9)


@pytest.mark.parametrize(
    ("below", "row"),
    [
        ((GROWS, ("operator new", 0.85), ("std::__relocate_a", 0.0)), ""),  # a vector of one element
        ((GROWS, ("operator new", 0.5), ("cfree", 0.14)), "rehashed"),
        ((GROWS, ("__memmove_avx512_unaligned_erms", 0.3)), "rehashed"),
        ((("std::_Hashtable::_M_rehash", 0.6),), "rehashed"),
    ],
)
def test_a_container_grows_step_by_step_where_it_frees_or_moves_what_it_had(
    below: tuple[tuple[str, float], ...], row: str
) -> None:
    assert row_of("rows.push_back(x);", *below) == row


@pytest.mark.parametrize(
    ("source", "row"),
    [
        ("history[next() % size] = now;", ""),
        ("node->next = other->next;", ""),
        ("children.push_back(node);", ""),
        ("auto row = rows[n];", "shared-ptr-copied"),
        ("total += work(state);", "shared-ptr-copied"),
        ("node = node->next;", "shared-ptr-copied"),
    ],
)
def test_a_shared_ptr_that_is_kept_has_to_be_copied(source: str, row: str) -> None:
    below = (("std::_Sp_counted_base::_M_release", 0.6), ("std::shared_ptr::shared_ptr", 0.7))
    assert row_of(source, *below) == row


@pytest.mark.parametrize(
    ("source", "file", "row"),
    [
        ('fprintf(f, "%.17g\\n", x);', "work.c", ""),
        ('fprintf(f, "%d,%.2f\\n", n, x);', "work.c", "printed-numbers"),
        ('fprintf(f, "%.17g\\n", x);', "work.cpp", "printed-numbers"),
    ],
)
def test_numbers_of_all_their_digits_are_left_to_printf_in_c(source: str, file: str, row: str) -> None:
    assert row_of(source, ("__vfprintf_internal", 0.9), file=file) == row


@pytest.mark.parametrize(
    ("other", "ordered"),
    [
        ("auto at = book.lower_bound(price);", True),
        ("best = book.begin()->first;", True),
        ("book.erase(book.begin());", True),
        ("while let Some(x) = book.pop_first() {", True),
        ("for (auto& [key, n] : book) total += n;", False),
        ("std::sort(book.begin(), book.end());", False),
        ("other.lower_bound(price);", False),
    ],
)
def test_a_tree_that_is_asked_for_its_order_is_no_hash_table(other: str, ordered: bool) -> None:
    found = native_constructs(["book[price] += n;", other], 1)
    assert (Construct("ordered", "book") in found) == ordered


def test_a_transposition_is_to_be_done_in_blocks_and_is_silent_where_it_is() -> None:
    plain = [
        "for (int i = 0; i < n; ++i)",
        "  for (int j = 0; j < n; ++j)",
        "    t[j * n + i] = a[i * n + j];",
    ]
    blocked = [
        "for (int r = 0; r < n; r += 16)",
        "  for (int c = 0; c < n; c += 16)",
        "    for (int i = r; i < r + 16; ++i)",
        "      for (int j = c; j < c + 16; ++j)",
        "        t[j * n + i] = a[i * n + j];",
    ]
    assert Construct("column-walk", "t", "i j turned") in native_constructs(plain, 3)
    assert Construct("column-walk", "t", "i j blocked") in native_constructs(blocked, 5)
    walks = [plain[0], plain[1], "    s += a[j * n + i];"]
    assert Construct("column-walk", "a", "i j") in native_constructs(walks, 3)


@pytest.mark.parametrize(
    ("calls", "executions", "gain"),
    [(1, 100, 0.007), (80, 100, 0.56), (None, 100, 0.7), (1, None, 0.025)],
)
def test_of_a_wait_that_polls_its_last_pause_alone_can_be_saved(
    calls: int | None, executions: int | None, gain: float
) -> None:
    text = "import time\ndef report(name):\n    while not there(name):\n        time.sleep(0.05)\n"
    found = polling(documents.empty(), spot_at(text, 4, kind="sleep", calls=calls, executions=executions))
    assert found is not None
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(gain)


FILES = "def report(names):\n    for name in names:\n        with open({}) as file:\n            out += {}\n"


@pytest.mark.parametrize(
    ("works", "said"),
    [("len(file.read())", False), ("file.write(x)", False), ("file.read(8)", True)],
)
def test_small_files_of_which_each_is_opened_are_not_to_be_read_in_larger_blocks(
    works: str, said: bool
) -> None:
    split = TimeSplit(2.0, cpu=2.0, threads=1.0, read=20e6, written=0.0, io_calls=100_000)
    spot = spot_at(FILES.format("name", works), 4)
    assert (small_transfers(replace(documents.empty(), time_split=split), spot) is not None) == said
    many = "def report(file):\n    while part:\n        file.write(part)\n"
    assert small_transfers(replace(documents.empty(), time_split=split), spot_at(many, 3)) is not None


@pytest.mark.parametrize(("path", "said"), [("name", False), ("LOG", True)])
def test_files_that_are_all_different_have_to_be_opened(path: str, said: bool) -> None:
    spot = spot_at(FILES.format(path, "file.read()"), 3, under=Beneath("open", "io", 6000, 1e-4))
    assert (calls_in_loop(documents.empty(), spot) is not None) == said

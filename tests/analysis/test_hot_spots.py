"""Where the time goes: shares add up, waiting belongs to what is waited for, and an insight needs its proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profkit.analysis.account.host import host_account
from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.hot_spots.python import imported_lines
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.stacks.source import line_code
from profkit.core.types import (
    RUN,
    ArrayForm,
    Beneath,
    CodeLine,
    Construct,
    Counter,
    Fact,
    Frame,
    Hotspot,
    InnerCode,
    Insight,
    LineCode,
    LineCount,
    LineSamples,
    PassResult,
    Profile,
    Reading,
    RunDocument,
    SampledTime,
    Source,
    TimeSplit,
    Variable,
)
from profkit.profiling.summarize import judge_document, targets_for
from tests import documents


def line(
    number: int, wall: float, *constructs: Construct, loop: int | None = None, **more: object
) -> LineSamples:
    code = LineCode(f"line {number}", loop, constructs)
    values: dict[str, object] = {"main_wall": wall, "main_cpu": wall, "own": wall, "code": code, **more}
    return LineSamples("work", "/app/work.py", number, **values)  # type: ignore[arg-type]


def run(*lines: LineSamples, wall: float = 1.0, **more: object) -> RunDocument:
    sampled = SampledTime(wall, wall, rest_wall=wall - sum(one.main_wall for one in lines), lines=lines)
    sampled = replace(
        sampled, **{name: more.pop(name) for name in ("collecting", "children") if name in more}
    )  # type: ignore[arg-type]
    document = replace(documents.empty(), sampled=(sampled,), **more)  # type: ignore[arg-type]
    return replace(document, hot_spots=hot_spots(document))


def first(document: RunDocument) -> Insight:
    return find_insights(document)[0]


def calls(callee: str, count: int, seconds: float) -> Profile:
    edge = Hotspot("work", seconds, seconds, count, "/app/work.py", 1, callee=Frame(callee, "built-in"))
    return Profile("", "s", seconds, (edge,), "program-calls")


def test_shares_add_up_to_one_with_the_rest() -> None:
    document = run(line(3, 0.5), line(9, 0.2, own=0.0))
    assert sum(spot.share for spot in document.hot_spots) == pytest.approx(1.0)
    assert [spot.kind for spot in document.hot_spots] == ["python", "library", "rest"]


@pytest.mark.parametrize(
    ("built_in", "own", "share"),
    [("<built-in method io.open>", 6.0, 0.2), ("<built-in method builtins.sum>", 0.1, 2 / 3)],
)
def test_a_line_shares_its_time_with_the_function_it_calls_less_its_own_calls_into_c(
    built_in: str, own: float, share: float
) -> None:
    """`with open(self.path())`, and `sum(each(x) for x in xs)`, whose sum takes all that the function does."""
    inner = InnerCode("path", 20, LineCode("return a + b", None, ()))
    called = Construct("call", "open"), Construct("call", "sum")
    code = LineCode("sum(open(path()))", 3, called, (inner,))
    edges = (
        Hotspot("work", own, 8.0, 9, "/app/work.py", 4, callee=Frame(built_in, "built-in")),
        Hotspot("work", 2.0, 2.0, 9, "/app/work.py", 4, callee=Frame("path", None, "/app/work.py", 20)),
    )
    profiles = (
        Profile("", "s", 9.0, edges, "program-calls"),
        Profile("", "s", 9.0, (Hotspot("work", 1.0, 9.0, 9, "/app/work.py", 3),), "own-time"),
    )
    shares = {one.where.line: one.share for one in run(line(4, 1.0, code=code), profiles=profiles).hot_spots}
    assert shares[20] == pytest.approx(share, abs=0.03)


def test_a_function_whose_own_lines_were_sampled_has_no_time_of_the_line_that_calls_it() -> None:
    """`print(len(rows(table)))`: what is seen there is that the rows are thrown away."""
    inner = InnerCode("rows", 20, LineCode("return sorted(x)", None, ()))
    code = LineCode("print(len(rows(table)))", None, (Construct("call", "print"),), (inner,))
    edge = Hotspot("work", 8.0, 8.0, 1, "/app/work.py", 4, callee=Frame("rows", None, "/app/work.py", 20))
    profiles = (
        Profile("", "s", 10.0, (edge,), "program-calls"),
        Profile("", "s", 10.0, (Hotspot("work", 1.0, 9.0, 1, "/app/work.py", 3),), "own-time"),
    )
    own = replace(line(20, 0.8), function="rows")
    document = run(line(4, 0.2, code=code), own, profiles=profiles)
    shares = {one.where.line: one.share for one in document.hot_spots if one.kind != "rest"}
    assert shares == {20: pytest.approx(0.8), 4: pytest.approx(0.2)}


@pytest.mark.parametrize(("queued", "kind"), [(0.0, "waiting"), (0.7, "python")])
def test_a_line_computes_where_other_programs_had_the_processors(queued: float, kind: str) -> None:
    split = TimeSplit(1.0, waiting=0.0, queued=queued, cpu=0.1, threads=1.0)
    document = run(line(3, 1.0, main_cpu=0.06, own=0.06), time_split=split)
    assert document.hot_spots[0].kind == kind


@pytest.mark.parametrize(
    ("library", "own", "kind"),
    [
        ("_polars_runtime.abi3.so", 0.6, "library"),
        ("_polars_runtime.abi3.so", 0.01, "lock"),  # its threads wait, too
        ("libpython3.11.so.1.0", 0.6, "lock"),
    ],
)
def test_a_library_that_waits_for_its_own_threads_runs(library: str, own: float, kind: str) -> None:
    polars = CodeLine("DataFrame.sort", "/usr/lib/python3.11/site-packages/polars/frame.py", 9, 1.0)
    libraries = Profile("", "s", 1.0, (Hotspot(library, own, library=library),), "libraries")
    waiting = line(3, 1.0, main_cpu=0.02, own=0.0, waits={"lock": 0.98}, callees=(polars,))
    assert run(waiting, profiles=(libraries,)).hot_spots[0].kind == kind


@pytest.mark.parametrize(
    ("function", "file", "share", "kind"),
    [
        ("Pool.map", "multiprocessing/pool.py", 0.98, "workers"),
        ("IMapIterator.next", "multiprocessing/pool.py", 0.98, "workers"),
        ("Future.result", "concurrent/futures/_base.py", 0.98, "workers"),
        ("as_completed", "concurrent/futures/_base.py", 0.98, "workers"),
        ("Thread.join", "threading.py", 0.98, "workers"),
        ("Future.result", "concurrent/futures/_base.py", 0.3, "lock"),
        ("Lock.acquire", "multiprocessing/synchronize.py", 0.98, "lock"),
        ("Condition.wait", "threading.py", 0.98, "lock"),
    ],
)
def test_a_wait_for_results_of_a_pool_is_none_for_a_lock(
    function: str, file: str, share: float, kind: str
) -> None:
    called = CodeLine(function, f"/usr/lib/python3.11/{file}", 9, share)
    waiting = line(3, 1.0, main_cpu=0.02, own=0.0, waits={"lock": 0.98}, callees=(called,), below=(called,))
    assert run(waiting).hot_spots[0].kind == kind


@pytest.mark.parametrize(
    ("text", "timed", "under"),
    [
        ("return sorted(list(range(n)))", 0.3, Beneath("", public="list")),
        ("return sorted(list(range(n)))", 0.7, Beneath("sorted", "libpython", 4, 0.175)),
        ("return sorted(list(range(n))) + more", 0.2, None),  # adding may take it
        ("return sorted(set(list(rows)))", 0.2, None),
    ],
)
def test_what_the_timed_calls_of_a_line_leave_is_the_time_of_the_type_that_it_makes(
    text: str, timed: float, under: Beneath | None
) -> None:
    built_in = Frame("<built-in method builtins.sorted>", "built-in")
    edges = (
        Hotspot("work", timed, timed, 4, "/app/work.py", 1, callee=built_in),
        Hotspot("main", 1.0, 1.0, 4, "/app/work.py", 1, callee=Frame("work", None, "/app/work.py", 1)),
    )
    here = line(3, 1.0, code=line_code(text, 1))
    found = run(here, profiles=(Profile("", "s", 1.0, edges, "program-calls"),)).hot_spots[0].under
    assert (found.name, found.public) == (under.name, under.public) if found and under else found == under


@pytest.mark.parametrize(("other", "calls"), [("Series.__getitem__", None), ("Series.mean", 335_401)])
def test_a_count_of_several_lines_is_shown_at_none_of_them(other: str, calls: int | None) -> None:
    """cProfile counts the calls of a function; which of its lines index a row, no sample says."""
    series = "/usr/lib/python3.11/site-packages/pandas/core/series.py"
    edge = Hotspot("work", 2.0, 2.0, 335_401, "/app/work.py", 1, callee=Frame("__getitem__", None, series, 9))
    rows = tuple(
        line(number, 0.5, own=0.0, callees=(CodeLine(function, series, 9, 0.5),), code=line_code(text, 1))
        for number, function, text in (
            (3, "Series.__getitem__", "x = row['length'] * row['width']"),
            (4, other, "y = row['rate']"),
        )
    )
    spots = run(*rows, profiles=(Profile("", "s", 2.0, (edge,), "program-calls"),)).hot_spots
    assert next(one.under.calls for one in spots if one.where.line == 3 and one.under) == calls


def test_how_often_a_sampled_call_was_made_is_known_where_it_took_less_under_cprofile() -> None:
    """Beside other programs each run has its own times: samples say that `execute` has 60 % of the line."""
    execute = CodeLine("Session.execute", "/usr/lib/python3.11/site-packages/orm/session.py", 9, 0.6)
    code = line_code("rows += len(session.execute(query).all())", 1)
    edge = Hotspot("work", 0.1, 0.1, 1500, "/app/work.py", 1, callee=Frame("execute", None, execute.file, 9))
    profiles = (Profile("", "s", 1.0, (edge,), "program-calls"),)
    under = run(line(3, 1.0, own=0.0, callees=(execute,), code=code), profiles=profiles).hot_spots[0].under
    assert under is not None
    assert (under.name, under.calls) == ("execute", 1500)


def test_calls_that_another_line_of_the_function_makes_too_are_not_counted_to_this_line() -> None:
    """cProfile counts 10,400 `sub` of the function, 5,200 of which this line makes."""
    here = Construct("call", "re.sub")
    alone = run(line(3, 0.5, here, own=0.0), profiles=(calls("sub", 10_400, 1.0),))
    assert (under := alone.hot_spots[0].under) is not None
    assert under.calls == 10_400
    shared = run(
        line(3, 0.5, here, Construct("called-elsewhere", "sub"), own=0.0),
        profiles=(calls("sub", 10_400, 1.0),),
    )
    assert (under := shared.hot_spots[0].under) is not None
    assert (under.name, under.calls, under.seconds_per_call) == ("sub", None, None)


@pytest.mark.parametrize(
    ("others", "runs", "partial", "expected"),
    [
        (
            "1",
            1,
            False,
            (715, pytest.approx(0.5 / 715)),
        ),  # a query whose rows a loop goes through is sent once
        ("1", 1, True, (715, None)),  # the part that was counted took longer than the whole run
        ("1", 300, False, (None, None)),  # of the calls of the function nearly half are the other line's
        ("", 1, False, (None, None)),  # the other one is in a loop, too
    ],
)
def test_calls_of_lines_in_no_loop_leave_those_of_the_loop_known(
    others: str, runs: int, partial: bool, expected: tuple[object, object]
) -> None:
    here = (Construct("call", ".execute"), Construct("called-elsewhere", "execute", others))
    function = Hotspot("work", 0.1, 4.0, runs, "/app/work.py", 1)
    own = Profile("", "s", 4.0, (function,), "own-time", partial=partial)
    queries = replace(calls("execute", 716, 3.66), total=4.0, partial=partial)
    document = run(line(3, 0.5, *here, loop=2), wall=0.5, profiles=(own, queries))
    assert (under := document.hot_spots[0].under) is not None
    assert (under.calls, under.seconds_per_call) == expected


def counted(number: int, executions: int, **forms: tuple[ArrayForm, ...]) -> LineCount:
    return LineCount("/app/work.py", number, "work", executions, 4, forms)


@pytest.mark.parametrize(
    ("statement", "of_both", "expected"),
    [
        ("a = re.sub('a', 'b', text)", 10_400, 5_200),
        ("a = re.sub('a', 'b', re.sub('c', 'd', text))", 20_800, 10_400),
        ("a = re.sub('a', 'b', text)", 4_000, 4_000),  # some of its executions raised an exception before
        ("a = text and re.sub('a', 'b', text)", 10_400, None),
        ("a = [re.sub('a', 'b', text) for text in texts]", 10_400, None),
    ],
)
def test_calls_at_a_line_are_those_of_its_executions(
    statement: str, of_both: int, expected: int | None
) -> None:
    constructs = (Construct("call", "re.sub"), Construct("called-elsewhere", "sub"))
    code = LineCode(statement, 3, constructs, statement=statement)
    document = run(
        line(3, 0.5, code=code, own=0.0),
        profiles=(calls("sub", of_both, 1.0),),
        line_counts=(counted(3, 5_200),),
    )
    assert (under := document.hot_spots[0].under) is not None
    assert (under.name, under.calls, under.seconds_per_call) == ("sub", expected, None)


def test_a_place_has_the_executions_of_its_line_where_it_is_of_that_line() -> None:
    counts = (counted(3, 70), counted(6, 80))
    document = run(line(3, 0.9), line(6, 0.03), line(7, 0.03), wall=0.96, line_counts=counts)
    assert [(spot.where.line, spot.executions) for spot in document.hot_spots] == [
        (3, 70),
        (6, None),
        (None, None),
    ]
    assert run(line(3, 0.9), line_counts=(counted(3, 7), counted(3, 9))).hot_spots[0].executions is None


def test_lines_that_work_on_arrays_are_places_of_their_own_from_a_hundredth_on() -> None:
    lines = (line(3, 0.5), line(4, 0.04), line(5, 0.03), line(6, 0.02), line(7, 0.009))
    array = (ArrayForm("<f4", (8, 8), "C"),)
    number = (ArrayForm("int"),)
    counts = (*(counted(at, 9, x=array) for at in (3, 4, 5, 7)), counted(6, 9, x=number))
    document = run(*lines, line_counts=counts)
    places = {spot.where.line: round(spot.share, 3) for spot in document.hot_spots if spot.where.line}
    assert places == {3: 0.5, 4: 0.04, 5: 0.03, 6: 0.029}


def test_the_calls_of_a_place_take_no_longer_together_than_it_does() -> None:
    """Under cProfile an `apply` of 871 ms took 5.09 s."""
    slowed = run(line(3, 0.871, Construct("call", "apply"), own=0.0), profiles=(calls("apply", 1, 5.09),))
    assert (under := slowed.hot_spots[0].under) is not None
    assert under.seconds_per_call == pytest.approx(0.871)


def test_waiting_for_workers_is_the_time_of_what_they_do() -> None:
    waiting = line(3, 1.0, main_cpu=0.0, own=0.0, waits={"lock": 1.0})
    work = line(8, 0.0, other_wall=2.0, other_cpu=1.9, own=1.9, processes=2)
    spots = run(waiting, work).hot_spots
    assert (spots[0].where.line, spots[0].processes) == (8, 2)
    assert spots[0].share == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("constructs", "worked", "expected"),
    [
        (("sleep", "while"), 2.0, {8: 1.0}),
        (("sleep", "while"), 0.25, {3: 0.75, 8: 0.25}),  # the others had not that much to do
        (("sleep",), 2.0, {3: 1.0}),  # a pause of its own, for which nobody is responsible
        (("sleep", "while", "coroutine"), 2.0, {3: 1.0}),
    ],
)
def test_sleeping_until_workers_are_done_is_the_time_of_what_they_do(
    constructs: tuple[str, ...], worked: float, expected: dict[int, float]
) -> None:
    """`while any(p.is_alive() for p in workers): time.sleep(0.05)`, and the master of a server's workers."""
    marks = [Construct(name, "time.sleep" if name == "sleep" else "") for name in constructs]
    sleeping = line(3, 1.0, *marks, main_cpu=0.0, own=0.0, waits={"sleep": 1.0})
    work = line(8, 0.0, other_wall=worked, other_cpu=worked, own=worked, processes=2)
    document = run(sleeping, work)
    shares = {spot.where.line: spot.share for spot in document.hot_spots if spot.where.line}
    assert shares == pytest.approx(expected)


def test_sleeping_until_a_thread_has_slept_is_polling() -> None:
    """`while not done: time.sleep(0.05)`, until a thread that waits for an answer sets it."""
    marks = [Construct("sleep", "time.sleep"), Construct("while", "")]
    polling = line(3, 1.0, *marks, main_cpu=0.0, own=0.0, waits={"sleep": 1.0})
    other = line(8, 0.0, other_wall=1.0, own=0.0, other_waits={"sleep": 1.0}, threads=1)
    joining = line(5, 1.0, main_cpu=0.0, own=0.0, waits={"lock": 1.0})
    first_spot = run(polling, other).hot_spots[0]
    assert (first_spot.where.line, first_spot.share) == (3, 1.0)
    shares = {spot.where.line: spot.share for spot in run(polling, joining, other, wall=2.0).hot_spots}
    assert (shares[3], shares[8]) == pytest.approx((0.5, 0.5))  # what joins it waits there


def test_waiting_for_one_that_sleeps_is_sleeping_there() -> None:
    waiting = line(3, 1.0, main_cpu=0.0, own=0.0, waits={"lock": 1.0})
    sleeping = line(8, 0.0, other_wall=1.0, own=0.0, other_waits={"sleep": 1.0}, threads=1)
    spot = run(waiting, sleeping).hot_spots[0]
    assert (spot.where.line, spot.kind) == (8, "sleep")


@pytest.mark.parametrize(
    ("file", "expected"), [("socket.py", (3, "network")), ("selectors.py", (8, "sleep"))]
)
def test_a_socket_with_a_time_limit_waits_for_the_network_and_not_for_a_process_of_ours(
    file: str, expected: tuple[int, str]
) -> None:
    """`requests.get(url, timeout=10)` polls; that the service sleeps in a process that we started is its own matter."""
    below = (CodeLine("SocketIO.readinto", f"/usr/lib/python3.11/{file}", 706, 0.95),)
    waiting = line(3, 1.0, main_cpu=0.05, own=0.0, waits={"input": 0.9}, below=below)
    sleeping = line(8, 0.0, other_wall=1.0, own=0.0, other_waits={"sleep": 1.0}, processes=1)
    spot = run(waiting, sleeping).hot_spots[0]
    assert (spot.where.line, spot.kind) == expected


def test_a_place_without_a_pattern_is_the_answer_itself() -> None:
    insight = first(run(line(3, 0.9)))
    assert (insight.rule, insight.where.line) == ("hot-spot", 3)
    assert insight.gain is not None
    assert insight.gain.at_most == pytest.approx(0.9)


LIST = {"seen": Variable("list", 5000)}


@pytest.mark.parametrize(
    ("variables", "rule"),
    [
        (LIST, "linear-search"),
        ({"seen": Variable("set", 5000)}, "hot-spot"),
        ({"seen": Variable("list", 5)}, "hot-spot"),
        ({}, "hot-spot"),
    ],
)
def test_a_search_is_one_in_a_long_list_only(variables: dict[str, Variable], rule: str) -> None:
    assert first(run(line(3, 0.9, Construct("contains", "seen"), variables=variables))).rule == rule


def test_a_number_of_something_that_nobody_saw_is_not_said_to_be_of_an_array() -> None:
    arrays = {"data": Variable("numpy.ndarray", 5000)}
    named, unnamed = Construct("element", "loss", "item"), Construct("element", "", "item")
    assert first(run(line(3, 0.9, named, loop=2, variables=arrays))).rule == "hot-spot"
    assert first(run(line(3, 0.9, unnamed, loop=2, variables=arrays))).rule == "element-wise"


@pytest.mark.parametrize(
    ("kind", "rule"),
    [("numpy.ndarray", "element-wise"), ("torch.Tensor", "element-wise"), ("dict", "hot-spot")],
)
def test_elements_are_those_of_arrays(kind: str, rule: str) -> None:
    one = line(3, 0.9, Construct("element", "a", "[]"), loop=2, variables={"a": Variable(kind)})
    assert first(run(one)).rule == rule


@pytest.mark.parametrize(
    ("callee", "rule"),
    [
        (
            CodeLine("predict_proba", "/usr/lib/python3.11/site-packages/sklearn/forest.py", 9, 0.9),
            "hot-spot",
        ),
        (None, "element-wise"),
    ],
)
def test_an_element_that_is_set_to_what_a_library_gives_is_no_slow_access(
    callee: CodeLine | None, rule: str
) -> None:
    """`scores[i] = model.predict_proba(ticket)[0, 1]`: the prediction takes the time."""
    arrays = {"scores": Variable("numpy.ndarray", 400)}
    constructs = (Construct("element", "scores", "[i]"), Construct("call", ".predict_proba"))
    callees = (callee,) if callee is not None else ()
    own = 0.0 if callee is not None else 0.9
    document = run(line(3, 0.9, *constructs, loop=2, variables=arrays, callees=callees, own=own))
    assert first(document).rule == rule


@pytest.mark.parametrize(("arguments", "rule"), [(12, "repeated-work"), (95, "hot-spot"), (None, "hot-spot")])
def test_a_recursion_repeats_its_work_where_its_arguments_are_few(arguments: int | None, rule: str) -> None:
    one = line(3, 0.9, Construct("pure-recursion", "work", "3"), looks=100, arguments=arguments)
    assert first(run(one)).rule == rule


@pytest.mark.parametrize(
    ("count", "rule"), [(20_000, "calls-in-loop"), (2000, "slow-statements"), (1, "hot-spot")]
)
def test_queries_for_each_item_are_told_by_their_number(count: int, rule: str) -> None:
    one = line(3, 0.9, Construct("call", ".execute"))
    profile = calls("<method 'execute' of 'sqlite3.Connection' objects>", count, 0.8)
    insight = first(run(one, profiles=(profile,)))
    assert insight.rule == rule
    assert ("2,000 calls of Connection.execute" in insight.evidence) == (count == 2000)


def test_a_database_that_looks_through_rows_is_not_told_to_be_asked_once() -> None:
    """`DELETE FROM session WHERE id = ?`, 417 times 11.7 ms: rows of another table refer to it without an index."""
    one = line(64, 0.9, Construct("call", ".execute"))
    profile = calls("<method 'execute' of 'sqlite3.Connection' objects>", 417, 4.86)
    insight = first(run(one, wall=5.5, profiles=(profile,)))
    assert insight.rule == "slow-statements"
    assert "CREATE INDEX" in insight.change
    assert "executemany" not in insight.change
    waits = replace(one, main_cpu=0.0, own=0.0, waits={"sync": 0.9})
    assert first(run(waits, wall=5.5, profiles=(profile,))).rule != "slow-statements"


def test_what_a_call_takes_is_not_told_of_a_row_whose_calls_were_counted_in_part() -> None:
    """2,250 calls of asyncio.wait in 2.78 s, of which cProfile saw 419: none took 6.64 ms."""
    profile = replace(calls("wait", 419, 5.0), partial=True)
    edge = replace(
        profile.hotspots[0],
        callee=Frame("wait", "standard library", "/usr/lib/python3.11/asyncio/tasks.py", 1),
    )
    seen = run(
        line(3, 0.9, Construct("call", "asyncio.wait"), own=0.0),
        profiles=(replace(profile, hotspots=(edge,)),),
    )
    assert (under := seen.hot_spots[0].under) is not None
    assert (under.calls, under.seconds_per_call) == (419, None)


@pytest.mark.parametrize(
    ("own", "total", "each"),
    [
        (0.27, 0.27, 0.27 / 272),  # cProfile adds a microsecond to a call of C
        (0.27, 0.60, None),  # `sum(n * n for ...)`: the generator is what took long under cProfile
        (1.48, 1.48, None),  # 272 times 5.44 ms in a row of 0.9 s: they waited for a processor
    ],
)
def test_a_part_of_the_calls_tells_what_one_takes_only_where_that_fits(
    own: float, total: float, each: float | None
) -> None:
    profile = replace(calls("<built-in method builtins.sum>", 272, total), partial=True)
    edge = replace(profile.hotspots[0], own=own)
    seen = run(
        line(3, 0.9, Construct("call", "sum"), own=0.0), profiles=(replace(profile, hotspots=(edge,)),)
    )
    assert (under := seen.hot_spots[0].under) is not None
    assert under.calls == 272
    assert under.seconds_per_call == (None if each is None else pytest.approx(each))


@pytest.mark.parametrize(("longest", "rule"), [(0.8, "backtracking"), (0.02, "hot-spot")])
def test_a_pattern_backtracks_where_one_match_takes_the_time(longest: float, rule: str) -> None:
    one = line(3, 0.9, Construct("pattern", "(a+)+", "match"), longest=longest)
    assert first(run(one)).rule == rule


def test_imports_that_are_used_are_not_first_where_the_program_works() -> None:
    module = Hotspot(
        "torch",
        0.6,
        0.6,
        counters={"outermost": 0.6},
        callers=(CodeLine("<module>", "/app/work.py", 1, 0.6),),
    )
    profile = Profile("", "s", 0.6, (module,), "sampled-imports")
    document = run(line(3, 0.4), profiles=(profile,))
    sampled = replace(document.sampled[0], rest_wall=0.0)
    document = replace(document, sampled=(sampled,))
    assert first(replace(document, hot_spots=hot_spots(document))).rule == "hot-spot"
    unused = replace(
        sampled,
        import_codes={
            "/app/work.py:1": LineCode("import torch", None, (Construct("import", "torch", "unused"),))
        },
    )
    document = replace(document, sampled=(unused,))
    assert first(replace(document, hot_spots=hot_spots(document))).rule == "heavy-imports"


def test_an_import_is_a_row_at_the_line_of_the_program_that_imports_the_library() -> None:
    """work.py imports formats, which imports pandas and sklearn, which imports scipy."""

    def module(name: str, file: str, seconds: float, *callers: CodeLine) -> Hotspot:
        return Hotspot(name, 0.0, seconds, file=file, callers=callers)

    installed = "/usr/lib/python3/site-packages"
    profile = Profile(
        "",
        "s",
        1.0,
        (
            module("formats", "/app/formats.py", 1.0, CodeLine("<module>", "/app/work.py", 1, 1.0)),
            module(
                "sklearn", f"{installed}/sklearn.py", 0.6, CodeLine("<module>", "/app/formats.py", 8, 0.6)
            ),
            module(
                "scipy", f"{installed}/scipy.py", 0.4, CodeLine("<module>", f"{installed}/sklearn.py", 1, 0.4)
            ),
            module("pandas", f"{installed}/pandas.py", 0.3, CodeLine("<module>", "/app/formats.py", 5, 0.3)),
        ),
        "sampled-imports",
    )
    assert [(each.line, name) for each, name, _ in imported_lines(profile)] == [(8, "sklearn"), (5, "pandas")]
    codes = {
        "/app/formats.py:5": LineCode("import pandas", None, (Construct("import", "pandas", "unused"),)),
    }
    document = run(line(3, 1.0), profiles=(profile,))
    sampled = replace(document.sampled[0], wall=2.0, rest_wall=0.0, import_codes=codes)
    document = replace(document, sampled=(sampled,))
    document = replace(document, hot_spots=hot_spots(document))
    rows = [(spot.where.file, spot.where.line, round(spot.share, 3)) for spot in document.hot_spots]
    # The tenth of a second of the program's own module stands at the line that imports most.
    assert {("/app/formats.py", 8, 0.35), ("/app/formats.py", 5, 0.15)} < set(rows)
    assert sum(spot.share for spot in document.hot_spots) == pytest.approx(1.0)
    insight = next(each for each in find_insights(document) if each.rule == "heavy-imports")
    assert (insight.where.line, insight.gain.at_most) == (5, pytest.approx(0.15))


def test_a_module_of_the_program_that_takes_long_itself_is_named_at_the_line_that_imports_it() -> None:
    tables = Hotspot(
        "tables",
        0.9,
        0.9,
        file="/app/tables.py",
        callers=(CodeLine("<module>", "/app/work.py", 2, 0.9),),
    )
    (loaded,) = imported_lines(Profile("", "s", 0.9, (tables,), "sampled-imports"))
    assert (loaded[0].line, loaded[1]) == (2, "tables")


def test_a_module_of_the_program_is_not_named_by_the_small_library_that_the_next_line_imports() -> None:
    """Of 2.6 s in `import tables` 97 % stood at the line of `import json`, which took 16 ms."""

    def module(name: str, own: float, seconds: float, file: str, line: int) -> Hotspot:
        callers = (CodeLine("<module>", "/app/work.py", line, seconds),)
        return Hotspot(name, own, seconds, file=file, callers=callers)

    modules = (
        module("tables", 2.3, 2.3, "/app/tables.py", 1),
        module("json", 0.1, 0.1, "/usr/lib/json.py", 2),
    )
    found = imported_lines(Profile("", "s", 2.4, modules, "sampled-imports"))
    assert [(line.line, name, seconds) for line, name, seconds in found] == [
        (1, "tables", 2.3),
        (2, "json", 0.1),
    ]


def test_a_lock_is_held_where_others_wait_for_it() -> None:
    holding = line(
        8, 0.0, Construct("within", "lock", "7"), other_wall=1.0, own=0.0, other_waits={"sleep": 1.0}
    )
    waiting = line(7, 0.0, other_wall=6.0, own=0.0, other_waits={"lock": 6.0})
    joining = line(20, 1.0, main_cpu=0.0, own=0.0, waits={"lock": 1.0})
    insight = first(run(joining, holding, waiting))
    assert (insight.rule, insight.where.line) == ("lock-held", 8)
    assert "6.0 threads wait in line 7 meanwhile" in insight.evidence


def test_no_more_threads_wait_for_a_lock_than_do_while_any_line_of_its_block_holds_it() -> None:
    within = Construct("within", "lock", "7")
    holding = line(8, 0.0, within, other_wall=3.0, own=0.0)
    sleeping = line(9, 0.0, within, other_wall=1.0, own=0.0, other_waits={"sleep": 1.0})
    waiting = line(7, 0.0, other_wall=8.0, own=0.0, other_waits={"lock": 8.0})
    other = line(6, 0.0, other_wall=4.0, own=4.0)
    joining = line(20, 4.0, main_cpu=0.0, own=0.0, waits={"lock": 4.0})
    found = find_insights(run(joining, holding, sleeping, waiting, other, wall=4.0))
    held = next(one for one in found if one.rule == "lock-held")
    assert "2.0 threads wait in line 7 meanwhile" in held.evidence


@pytest.mark.parametrize(
    ("name", "waited", "rule"),
    [("self.lock", 6.0, "lock-held"), ("", 6.0, "hot-spot"), ("self.lock", 0.5, "hot-spot")],
)
def test_a_lock_is_held_also_by_the_line_that_calls_what_takes_the_time(
    name: str, waited: float, rule: str
) -> None:
    calling = LineCode("page = self.fetch(name)", None, (Construct("within", name, "7"),))
    fetching = line(
        3,
        0.0,
        other_wall=1.0,
        own=0.0,
        other_waits={"sleep": 1.0},
        callers=(CodeLine("get", "/app/work.py", 8, 1.0),),
        caller_code=calling,
    )
    waiting = line(7, 0.0, other_wall=waited, own=0.0, other_waits={"lock": waited})
    joining = line(20, 1.0, main_cpu=0.0, own=0.0, waits={"lock": 1.0})
    insight = first(run(joining, fetching, waiting))
    assert insight.rule == rule
    if rule == "lock-held":
        assert (insight.where.function, insight.where.line) == ("get", 8)
        assert "6.0 threads wait in line 7 meanwhile" in insight.evidence


def test_a_rank_that_others_wait_for_is_named() -> None:
    slow = line(5, 0.0, other_wall=2.0, other_cpu=0.9, ranks={"0": 0.85, "1": 0.05}, processes=2)
    waits = line(
        9, 0.0, other_wall=1.0, ranks={"0": 0.02, "1": 0.02}, rank_waits={"0": 0.0, "1": 0.8}, processes=2
    )
    insight = first(run(slow, waits))
    assert (insight.rule, insight.where.line) == ("rank-behind", 5)
    assert "Rank 0" in insight.title


def test_the_collector_is_told_where_it_takes_the_time() -> None:
    assert first(run(line(3, 0.9, collecting=0.4), collecting=0.4)).rule == "garbage-collection"
    assert first(run(line(3, 0.9, collecting=0.05), collecting=0.05)).rule == "hot-spot"


def test_the_collectors_time_belongs_to_no_place_that_only_has_the_most_time() -> None:
    loads = line(3, 0.25, collecting=0.2)
    works = replace(line(9, 0.7), function="sums")
    found = find_insights(run(works, loads, collecting=0.2))
    assert [(one.rule, one.where.line) for one in found] == [("hot-spot", 9), ("garbage-collection", 3)]
    calls = first(run(line(3, 0.9, Construct("call", "gc.collect"), collecting=0.8)))
    assert (calls.rule, "gc.collect()" in calls.change, "freeze" in calls.change) == (
        "forced-collection",
        True,
        False,
    )
    elsewhere = find_insights(run(works, line(3, 0.25), collecting=0.9))  # in imports, say
    assert "garbage-collection" not in {one.rule for one in elsewhere}


def native(
    *lines: LineSamples, waiting: float = 0.0, profiles: tuple[Profile, ...] = (), wall: float = 1.0
) -> RunDocument:
    total = sum(one.main_cpu for one in lines)
    document = replace(
        documents.empty(),
        sampled=(SampledTime(total, total, native=True, lines=lines),),
        time_split=TimeSplit(wall, waiting=waiting, queued=0.0, cpu=wall - waiting, threads=1.0),
        profiles=profiles,
    )
    return replace(document, hot_spots=hot_spots(document))


def test_what_a_compiled_program_waits_is_a_place_of_its_own() -> None:
    spots = native(line(3, 2.0, code=None), waiting=0.4).hot_spots
    assert [(spot.kind, round(spot.share, 2)) for spot in spots] == [
        ("native", 0.6),
        ("waiting", 0.4),
        ("rest", 0.0),
    ]


def waiting_native(*waits: LineSamples, waiting: float, span: float = 1.0, cpu: float = 0.1) -> RunDocument:
    """A run of machine code of 1 s, which computed for `cpu` seconds in one line and waited in others."""
    document = native(line(3, cpu, code=None), waiting=waiting)
    (sampled,) = document.sampled
    document = replace(document, sampled=(replace(sampled, waiting=waits, span=span),))
    return replace(document, hot_spots=hot_spots(document))


def wait_at(number: int, kind: str, seconds: float, name: str, times: int, **more: Any) -> LineSamples:
    return LineSamples(
        "push",
        "app.cpp",
        number,
        seconds,
        waits={kind: seconds},
        callees=(CodeLine(name, None, None, seconds),),
        waited=times,
        each_wait=seconds / times,
        **more,
    )


POLLS = LineCode("usleep(1000);", constructs=(Construct("sleep"), Construct("while")))


def test_waits_of_a_compiled_program_are_rows_at_their_lines_and_the_rest_has_no_place() -> None:
    sleep, lock = wait_at(31, "sleep", 0.5, "usleep", 500), wait_at(40, "lock", 0.2, "mutex::lock", 10)
    spots = waiting_native(sleep, lock, waiting=0.9).hot_spots
    assert [(one.kind, one.where.line, round(one.share, 2)) for one in spots] == [
        ("sleep", 31, 0.5),
        ("waiting", None, 0.2),
        ("lock", 40, 0.2),
        ("native", 3, 0.1),
        ("rest", None, 0.0),
    ]
    assert spots[0].under == Beneath("usleep", None, 500, 0.5 / 500)


def test_waits_while_another_thread_works_are_no_more_than_what_the_run_waited() -> None:
    spots = waiting_native(wait_at(31, "sleep", 0.9, "usleep", 900), waiting=0.3).hot_spots
    assert [(one.kind, round(one.share, 2)) for one in spots] == [
        ("native", 0.7),
        ("sleep", 0.3),
        ("rest", 0.0),
    ]
    assert sum(one.share for one in spots) == pytest.approx(1.0)
    account = host_account(waiting_native(wait_at(31, "sleep", 0.9, "usleep", 900), waiting=0.3))
    assert account is not None
    assert sum(row.seconds for row in account.rows) == pytest.approx(account.seconds)


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (wait_at(31, "sleep", 0.9, "usleep", 900, code=POLLS), "polling"),
        (wait_at(31, "sleep", 0.9, "usleep", 900, code=LineCode("usleep(1000);")), None),  # at a pace
        (wait_at(31, "sleep", 0.9, "usleep", 9, code=POLLS), None),
        (wait_at(31, "sleep", 0.1, "usleep", 900, code=POLLS), None),
        # what it asks for waits itself: it would not be there any sooner
        (wait_at(31, "sleep", 0.9, "usleep", 900, code=POLLS, other_waits={"": 0.8}), None),
        (wait_at(31, "network", 0.9, "recv", 900, code=LineCode("recv(s, b, n, 0);")), None),
        (
            wait_at(
                31,
                "sync",
                0.9,
                "fsync",
                40,
                code=LineCode("fsync(f);", constructs=(Construct("call", "fsync"),)),
            ),
            "repeated-sync",
        ),
    ],
)
def test_a_compiled_wait_is_advised_against_where_its_cause_is_proved(
    one: LineSamples, rule: str | None
) -> None:
    found = {each.rule for each in find_insights(waiting_native(one, waiting=0.9))}
    assert found & {"polling", "repeated-sync", "sequential-waits"} == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("callee", "rule"),
    [
        ("_int_malloc", "allocation"),
        ("__memmove_avx", "copies"),
        ("strlen", "costly-helper"),
        ("sin", "hot-spot"),
    ],
)
def test_a_compiled_line_is_what_it_calls(callee: str, rule: str) -> None:
    one = line(3, 1.0, own=0.1, code=None, callees=(CodeLine(callee, "libc.so.6", None, 0.9),))
    assert first(native(one)).rule == rule


@pytest.mark.parametrize(
    ("function", "rule"),
    [("std::has_facet<std::ctype<char> >", "streams-made"), ("std::ostream::_M_insert<long>", "hot-spot")],
)
def test_streams_are_advised_against_where_they_are_made_and_not_where_one_is_written_to(
    function: str, rule: str
) -> None:
    called = CodeLine("std::__ostream_insert<char, std::char_traits<char> >", "libstdc++.so.6", None, 0.9)
    one = line(3, 1.0, own=0.05, code=None, callees=(called,))
    spots = (Hotspot("main", 0.9), Hotspot(function, 0.1))
    assert first(native(one, profiles=(Profile("", "s", 1.0, spots, "functions"),))).rule == rule


def test_a_copy_that_may_be_the_data_itself_is_not_advised_against() -> None:
    """Three GB are copied in 0.3 s: a program that moves what it holds once takes less."""
    one = line(3, 0.1, own=0.01, code=None, callees=(CodeLine("__memmove_avx", "libc.so.6", None, 0.09),))
    assert first(native(one, wall=0.2)).rule == "hot-spot"


def test_a_cache_that_is_never_asked_again_is_useless_and_one_that_is_says_nothing() -> None:
    def cached(hits: int) -> LineSamples:
        return line(
            3, 0.9, variables={"[cache hits]": Variable("int", hits), "[cache misses]": Variable("int", 9000)}
        )

    assert first(run(cached(0))).rule == "useless-cache"
    assert first(run(cached(500))).rule == "hot-spot"


@pytest.mark.parametrize(
    ("looks", "different", "kept", "rule"),
    [
        (243, 173, 128, "useless-cache"),  # 420 different arguments, as far as the samples tell
        (243, 240, 128, "hot-spot"),  # all may be different
        (243, 173, 0, "hot-spot"),  # it is not full
        (40, 20, 128, "useless-cache"),
    ],
)
def test_a_full_cache_is_too_small_where_its_misses_have_the_same_arguments_again(
    looks: int, different: int, kept: int, rule: str
) -> None:
    counts = {"hits": 17_880, "misses": 18_000, "full": kept}
    held = {f"[cache {name}]": Variable("int", count) for name, count in counts.items()}
    found = first(run(line(3, 0.9, variables=held, looks=looks, arguments=different)))
    assert found.rule == rule
    if rule == "useless-cache":
        assert "too small: it drops results that are needed again" in found.title


@pytest.mark.parametrize(
    ("raised", "seconds", "rule"), [(90_000, 1.0, "exceptions"), (90_000, 50.0, "hot-spot")]
)
def test_exceptions_are_named_where_raising_them_takes_a_good_part_of_the_time(
    raised: int, seconds: float, rule: str
) -> None:
    where = Hotspot("work", raised, None, 100_000, "/app/work.py", 5, callee=Frame("KeyError", None))
    counted = Hotspot("work", 0.9, 0.9, 900_000, "/app/work.py", 3)
    profiles = (
        Profile("", "exceptions", raised, (where,), "raises"),
        Profile("", "s", 1.0, (counted,), "own-time"),
    )
    found = first(run(line(3, 0.9 * seconds), wall=seconds, profiles=profiles))
    assert (found.rule, found.where.line) == (rule, 5 if rule == "exceptions" else 3)


@pytest.mark.parametrize(("seconds", "rule"), [(1.0, "exceptions"), (5.0, "hot-spot")])
def test_exceptions_of_a_short_function_are_named_at_it_where_its_time_is_at_the_line_that_calls_it(
    seconds: float, rule: str
) -> None:
    where = Hotspot("parse", 9000, None, 10_000, "/app/work.py", 12, callee=Frame("ValueError", None))
    counted = Hotspot("parse", 0.2, 0.2, 600_000, "/app/work.py", 11)
    edges = (  # work: sum(map(parse, texts))
        Hotspot("work", 0.9, 0.9, 1, "/app/work.py", 3, callee=Frame("<built-in sum>", None)),
        Hotspot("<built-in sum>", 0.5, 0.9, 600_000, callee=Frame("parse", None, "/app/work.py", 11)),
    )
    profiles = (
        Profile("", "exceptions", 9000, (where,), "raises"),
        Profile("", "s", 1.0, (counted,), "own-time"),
        Profile("", "s", 1.0, edges, "program-calls"),
    )
    found = first(run(line(3, 0.9 * seconds), wall=seconds, profiles=profiles))
    assert (found.rule, found.where.line) == (rule, 12 if rule == "exceptions" else 3)
    if rule == "exceptions":
        assert "parse raises ValueError about 540,000 times" in found.title


# ------------------------------------------------------------ a simulated part of a program of machine code

PART = Reading(
    "cache.l1.miss_rate", 50.0, "%", "estimated", RUN, Source("valgrind"), reason=Fact("simulated-hot-place")
)


def simulated_part(counts: dict[str, float], chained: float, seconds: float) -> RunDocument:
    """A run of so many seconds, of which a part with these counts was simulated."""
    here = LineSamples("walk", "/app/work.c", 7, 0.9, 0.9, own=0.9)
    document = replace(
        documents.empty(),
        sampled=(SampledTime(1.0, 1.0, 0.1, 0.1, native=True, lines=(here,)),),
        readings=(PART,),
        counters=(
            Counter("chained", chained, "measured"),
            *(Counter(name, value, "measured") for name, value in counts.items()),
        ),
        time_split=TimeSplit(seconds, cpu=seconds),
        profiles=(
            Profile(
                "", "instructions", counts["Ir"],
                (Hotspot("main", counts["Ir"], file="/app/work.c", line=7, counters=counts),), "counted-lines",
            ),
        ),
    )  # fmt: skip
    return replace(document, hot_spots=hot_spots(document))


@pytest.mark.parametrize(
    ("counts", "chained", "rule"),
    [
        ({"Ir": 156e6, "Dr": 39e6, "DLmr": 39e6, "Bc": 39e6, "Bcm": 9e3}, 0.0, "strided-access"),
        ({"Ir": 80e6, "Dr": 40e6, "DLmr": 20e6, "Bc": 20e6}, 20e6, "memory-latency"),
        ({"Ir": 355e6, "Dr": 39e6, "DLmr": 2e6, "Bc": 79e6, "Bcm": 20e6}, 0.0, "mispredicted-branches"),
        ({"Ir": 190e6, "Dr": 76e6, "DLmr": 9.5e6, "Bc": 38e6}, 0.0, "hot-spot"),  # memory is walked in order
        ({"Ir": 1e6, "Dr": 3e5, "DLmr": 3e5}, 0.0, "hot-spot"),  # what a cache reads first is no pattern
    ],
)
def test_counts_of_a_simulated_part_say_what_its_time_goes_to(
    counts: dict[str, float], chained: float, rule: str
) -> None:
    found = first(simulated_part(counts, chained, 0.2))
    assert (found.rule, found.where.line) == (rule, 7)
    assert found.gain is not None
    assert found.gain.at_most <= 0.91


def test_branches_of_a_librarys_heap_are_not_the_programs_to_avoid() -> None:
    counts = {"Ir": 355e6, "Dr": 39e6, "DLmr": 2e6, "Bc": 79e6, "Bcm": 20e6}
    document = simulated_part(counts, 0.0, 0.2)
    own = document.profiles[0].hotspots[0]
    heap = replace(
        own, file="/usr/include/c++/12/bits/stl_heap.h", line=232, counters={"Bc": 90e6, "Bcm": 30e6}
    )
    profile = replace(document.profiles[0], hotspots=(own, heap))
    assert first(replace(document, profiles=(profile,))).rule == "hot-spot"
    elsewhere = replace(own, line=70)
    profile = replace(profile, hotspots=(replace(own, counters={**counts, "Bcm": 1e5}), elsewhere))
    assert first(replace(document, profiles=(profile,))).rule == "hot-spot"


@pytest.mark.parametrize(
    ("strided", "title", "word"),
    [
        (39e6, "Exchange the loops, or lay the data out by field", "let the inner loop walk along the row"),
        (0.0, "Use all of each cache line: walk memory in order", "indices in random order: sort them"),
    ],
)
def test_loops_are_to_be_exchanged_where_the_loads_are_seen_to_be_a_step_apart(
    strided: float, title: str, word: str
) -> None:
    document = simulated_part({"Ir": 156e6, "Dr": 39e6, "DLmr": 39e6, "Bc": 39e6, "Bcm": 9e3}, 0.0, 0.2)
    counted = replace(document, counters=(*document.counters, Counter("strided", strided, "measured")))
    found = first(counted)
    assert (found.rule, found.title.partition(": each")[0]) == ("strided-access", title)
    assert word in found.change


def test_of_a_simulation_that_saw_less_than_a_tenth_of_the_run_nothing_is_concluded() -> None:
    """156 million instructions with their misses are about 0.37 s of work."""
    counts = {"Ir": 156e6, "Dr": 39e6, "DLmr": 39e6, "Bc": 39e6, "Bcm": 9e3}
    assert first(simulated_part(counts, 0.0, 3.6)).rule == "strided-access"
    long = simulated_part(counts, 0.0, 3.8)
    assert first(long).rule == "hot-spot"
    strided = replace(long, counters=(*long.counters, Counter("strided", 39e6, "measured")))
    assert first(strided).rule == "strided-access"  # its loop is the same in all of the run
    judged = judge_document(long, targets_for("cpu"))
    (rate,) = (one for one in judged.readings if one.metric == "cache.l1.miss_rate")
    assert (rate.value, rate.reason and rate.reason.code) == (None, "little-simulated")
    verdicts = {one.target: one.verdict for one in judged.verdicts if one.metric == "cache.l1.miss_rate"}
    assert set(verdicts.values()) == {"unknown"}
    judged = judge_document(simulated_part(counts, 0.0, 3.6), targets_for("cpu"))
    assert "fail" in {one.verdict for one in judged.verdicts if one.metric == "cache.l1.miss_rate"}


@pytest.mark.parametrize(
    ("part", "library", "value"),
    [
        ("simulated-part", "numpy.so", 50.0),
        ("simulated-part", "libpython3.so", None),  # it was elsewhere than the run's time
        ("simulated-beginning", "numpy.so", None),  # its first moment is not the program
    ],
)
def test_a_part_speaks_for_the_run_where_it_began_late_and_is_where_the_samples_are(
    part: str, library: str, value: float | None
) -> None:
    document = simulated_part({"Ir": 30e6, "Dr": 1e6}, 0.0, 3.6)
    sampled = Profile("", "s", 3.6, (Hotspot("numpy.so", 3.0, library="numpy.so"),), "libraries")
    spot = Hotspot("sum", 20e6, library=f"/lib/{library}", counters={"Ir": 20e6})
    counted = Profile("", "instructions", 30e6, (spot,), "counted-functions")
    document = replace(document, readings=(replace(PART, reason=Fact(part)),), profiles=(sampled, counted))
    judged = judge_document(document, targets_for("cpu"))
    (rate,) = (one for one in judged.readings if one.metric == "cache.l1.miss_rate")
    assert rate.value == value


@pytest.mark.parametrize(("kind", "rule"), [("numpy.ndarray", "mask-for-each"), ("tuple", "hot-spot")])
def test_a_comparison_as_an_index_is_a_mask_only_of_an_array(kind: str, rule: str) -> None:
    code = line_code("def of(amounts, shops, shop):\n    return amounts[shops == shop]\n", 2)
    spot = line(3, 0.9, code=code, variables={"amounts": Variable(kind, None)})
    counted = Hotspot("work", 0.9, 0.9, 5000, "/app/work.py", 1)
    assert first(run(spot, profiles=(Profile("", "s", 0.9, (counted,), "own-time"),))).rule == rule


# ------------------------------------------------------------ texts that grow, and tasks of a pool


@pytest.mark.parametrize(
    ("name", "how", "kind", "rule"),
    [
        ("text", "+=", "str", "hot-spot"),  # CPython adds to it in place: a local name alone holds it
        ("text", "text", "str", "hot-spot"),  # text = text + "..."
        ("text", "texts", "str", "growing-copy"),  # text = text + line + "\n": the first sum is a copy
        ("self.text", "+=", "str", "growing-copy"),  # the object holds it, too
        ("data", "+=", "bytes", "growing-copy"),
        ("rows", "+", "list", "growing-copy"),
    ],
)
def test_a_text_is_copied_where_its_name_is_not_all_that_holds_it(
    name: str, how: str, kind: str, rule: str
) -> None:
    grows = line(3, 0.9, Construct("grow", name, how), variables={name: Variable(kind, 200_000)})
    assert first(run(grows)).rule == rule


@pytest.mark.parametrize(
    ("function", "tasks", "pools", "change"),
    [
        ("next", 40_000, 1, "chunksize=5000 "),
        ("submit", 1600, 1, "chunksize=200 "),
        ("submit", 1600, 400, ""),  # four for each pool: that pools are made is what costs
        ("next", 60, 1, ""),
        ("get", 40_000, 1, ""),
    ],
)
def test_pieces_of_a_pool_are_advised_of_many_tasks_that_were_counted(
    function: str, tasks: int, pools: int, change: str
) -> None:
    pool = "/usr/lib/python3.11/multiprocessing/pool.py"
    profiles = (
        Profile("", "s", 1.0, (Hotspot("worker", 0.9, file=pool), Hotspot("square", 0.1, file="/app/work.py")),
                "sampled-functions"),
        Profile("", "s", 1.0, (
            Hotspot(function, 0.1, 0.2, tasks, pool, 9), Hotspot("_launch_processes", 0.1, 0.1, pools, pool, 19)
        ), "own-time"),
    )  # fmt: skip
    handing = line(3, 0.9, main_cpu=0.9, own=0.0)
    found = first(run(handing, profiles=profiles, machine=documents.machine()))  # two processors
    assert found.rule == ("small-tasks" if change else "hot-spot")
    assert change in found.change


@pytest.mark.parametrize("native", [False, True])
def test_each_line_of_a_function_that_takes_a_twentieth_is_a_row_and_the_small_ones_are_one(
    native: bool,
) -> None:
    lines = (line(3, 0.4), line(4, 0.3), line(5, 0.2), line(6, 0.04), line(7, 0.03))
    document = run(*lines, wall=0.97)
    if native:
        sampled = (replace(document.sampled[0], native=True),)
        document = replace(document, sampled=sampled)
        document = replace(document, hot_spots=hot_spots(document))
    shares = {
        spot.where.line: round(0.97 * spot.share, 3) for spot in document.hot_spots if spot.kind != "rest"
    }
    assert shares == {3: 0.4, 4: 0.3, 5: 0.2, 6: 0.07}


def test_a_garbage_collection_is_told_once_though_its_function_has_several_rows() -> None:
    lines = (line(3, 0.5, collecting=0.4), line(4, 0.3), line(5, 0.2))
    found = find_insights(run(*lines, collecting=0.4))
    assert [one.where.line for one in found if one.rule == "garbage-collection"] == [3]


@pytest.mark.parametrize(
    ("text", "ran", "partial", "said"),
    [
        ("import torch\ndef main():\n    print(1)\n", ("main",), False, True),
        ("import torch\ndef train():\n    torch.ones(1)\n", ("main",), False, True),
        ("import torch\ndef train():\n    torch.ones(1)\n", ("main",), True, False),
        ("import torch\ndef train():\n    torch.ones(1)\n", ("main", "train"), False, False),
        ("import torch\nclass Model(torch.nn.Module):\n    pass\n", ("main",), False, False),
    ],
)
def test_an_import_is_said_only_where_nothing_that_ran_uses_it(
    text: str, ran: tuple[str, ...], partial: bool, said: bool
) -> None:
    """A program that trains with torch cannot import it later."""
    module = Hotspot(
        "torch",
        0.9,
        0.9,
        counters={"outermost": 0.9},
        callers=(CodeLine("<module>", "/app/work.py", 1, 0.9),),
    )
    counted = tuple(Hotspot(one, 0.1, 0.1, 1, "/app/work.py", 3) for one in ran)
    profiles = (
        Profile("", "s", 0.9, (module,), "sampled-imports"),
        Profile("", "s", 0.9, counted, "own-time", partial=partial),
    )
    codes = {"/app/work.py:1": line_code(text, 1)}
    sampled = SampledTime(1.0, 1.0, rest_wall=0.05, import_codes=codes, lines=(line(3, 0.05),))
    document = replace(documents.empty(), sampled=(sampled,), profiles=profiles)
    document = replace(document, hot_spots=hot_spots(document))
    assert ("heavy-imports" in {one.rule for one in find_insights(document)}) == said


@pytest.mark.parametrize(
    ("text", "variables", "read", "calls", "said"),
    [
        ("for raw in proc.stdout:", {}, 1.3e6, 1_300_000, True),  # bufsize=0
        ("for line in port:", {}, 2e5, 100_000, True),  # open(..., buffering=0)
        ("for raw in proc.stdout:", {}, 1.3e6, 170, False),
        ("for row in rows:", {"rows": Variable("list", 9)}, 1.3e6, 1_300_000, False),
        (
            "for row in rows_of(port):",
            {},
            1.3e6,
            1_300_000,
            False,
        ),  # what the function does is a place of its own
        ("for raw in proc.stdout:", {}, 6.5e7, 1_300_000, False),
    ],
)
def test_lines_that_are_read_byte_by_byte_are_said_where_most_of_the_time_is_in_going_through_them(
    text: str, variables: dict[str, Variable], read: float, calls: int, said: bool
) -> None:
    one = line(1, 0.9, variables=variables)
    one = replace(one, code=line_code(f"{text}\n    pass\n", 1))
    split = TimeSplit(1.0, read=read, written=0.0, io_calls=calls)
    document = run(one, time_split=split)
    assert ("small-transfers" in {each.rule for each in find_insights(document)}) == said


# ------------------------------------------------------------ tables by group, and what is read from its front


MASKED = "def report(t):\n    for day in sorted(t['day'].unique()):\n        rows = t[{index}]\n        use(rows)\n"


@pytest.mark.parametrize(
    ("index", "kind", "rule"),
    [
        ('t["day"] == day', "pandas.DataFrame", "mask-for-each"),
        ("t.day == day", "pandas.DataFrame", "mask-for-each"),
        ('t["day"] == day', "dict", "hot-spot"),
        ("columns", "pandas.DataFrame", "hot-spot"),  # a frame gives columns by names, and no single elements
        ("day", "numpy.ndarray", "element-wise"),
        ("chosen", "numpy.ndarray", "hot-spot"),  # an array of indices
        ("day, :", "numpy.ndarray", "hot-spot"),  # a row
        ("'mail'][day", "pandas.DataFrame", "element-wise"),  # one cell of a column
        ("'mail'][day", "dict", "hot-spot"),  # a list by its name
        ("'mail'][chosen", "pandas.DataFrame", "hot-spot"),  # many cells
        ("'mail'][3:9", "pandas.DataFrame", "hot-spot"),
    ],
)
def test_what_an_index_takes_of_a_table_is_told_by_its_form_and_by_types(
    index: str, kind: str, rule: str
) -> None:
    code = line_code(MASKED.format(index=index), 3)
    seen = {"t": Variable(kind, None), "chosen": Variable("numpy.ndarray", None)}
    assert first(run(line(3, 0.9, code=code, own=0.9, looks=50, variables=seen))).rule == rule


FRAMES = """
def feed(self, data):
    self.pending += data
    while len(self.pending) >= 8:
        size = unpack(self.pending)
        self.frames.append(self.pending[8:size])
        self.pending = self.pending[size:]
        self.count += 1
"""


@pytest.mark.parametrize(("at", "size"), [(4, 250_000), (7, 250_000)])
def test_what_is_cut_off_its_front_is_told_also_where_the_loop_begins_again(at: int, size: int) -> None:
    seen = {"self.pending": Variable("bytes", size)}
    found = first(run(line(at, 0.9, code=line_code(FRAMES, at), variables=seen)))
    assert (found.rule, found.where.line) == ("linear-search", 7)
    assert "self.pending is copied each time something is taken off its front" in found.title


TOKENS = """
def tokens_of(text):
    found = []
    while text:
        match = NUMBER.match(text)
        if match:
            found.append(match.group())
            text = text[match.end():]
        else:
            found.append(text[0])
            text = text[1:]
    return found
"""


@pytest.mark.parametrize(
    ("at", "own", "rule"), [(5, 1.16, "linear-search"), (5, 0.2, "hot-spot"), (8, 0.2, "linear-search")]
)
def test_what_is_cut_in_a_branch_is_told_at_the_begin_of_the_loop_where_nothing_called_takes_the_time(
    at: int, own: float, rule: str
) -> None:
    counted = Hotspot("work", own, 1.25, 1, "/app/work.py", 2)
    seen = {"text": Variable("str", 293_288)}
    spot = line(at, 0.9, code=line_code(TOKENS, at), variables=seen)
    found = first(run(spot, profiles=(Profile("", "s", 2.3, (counted,), "own-time"),)))
    assert found.rule == rule
    if rule == "linear-search":
        assert found.where.line == 8


@pytest.mark.parametrize(
    ("added", "growths"),
    [
        ("self.text += piece", [2]),
        ("self.text += f'{piece}, '", [2]),
        ("self.count += 1", []),
        ("self.count += len(piece)", []),
        ("text += piece", []),  # a local name: CPython adds in place
        ("for part in piece: self.text += part", []),
    ],
)
def test_a_text_that_grows_in_a_called_function_is_told_by_its_line(added: str, growths: list[int]) -> None:
    source = f"def add(self, piece):\n    {added}\n    self.lines += 1\nfor n in names:\n    page.add(n)\n"
    code = line_code(source, 5)
    assert code is not None
    inner = code.into[0]
    assert (inner.line, [each.how for each in inner.code.find("grow")] if inner.code else []) == (
        (2, ["+="]) if growths else (2, [])
    )


@pytest.mark.parametrize(
    ("source", "at", "seen"),
    [
        (FRAMES, 4, Variable("bytes", 200)),  # short
        (FRAMES, 4, Variable("memoryview", 250_000)),  # copies nothing
        (FRAMES, 5, Variable("bytes", 250_000)),  # another line
        # what the head took may be what is called behind the slice
        (FRAMES.replace("self.count += 1", "self.write(size)"), 4, Variable("bytes", 250_000)),
        (FRAMES.replace("self.pending[size:]", "self.pending[:size]"), 7, Variable("bytes", 250_000)),
        (FRAMES.replace("self.pending = ", "rest = "), 7, Variable("bytes", 250_000)),
    ],
)
def test_nothing_is_said_of_a_front_that_is_not_proved(source: str, at: int, seen: Variable) -> None:
    spot = line(at, 0.9, code=line_code(source, at), variables={"self.pending": seen})
    assert first(run(spot)).rule == "hot-spot"


@pytest.mark.parametrize(
    ("waits", "says"),
    [({}, "work commits 400 times"), ({"sync": 0.8}, "work waits for the disk 400 times")],
)
def test_a_commit_waits_for_the_disk_only_where_the_samples_saw_it_wait(
    waits: dict[str, float], says: str
) -> None:
    code = line_code("def work(s, rows):\n    for r in rows:\n        s.commit()\n", 3)
    cpu = 0.9 - sum(waits.values())
    spot = line(3, 0.9, code=code, own=0.0, main_cpu=cpu, waits=waits)
    found = first(run(spot, profiles=(calls("Session.commit", 400, 0.8),)))
    assert (found.rule, says in found.title) == ("repeated-sync", True)


# ------------------------------------------------------------ hash tables and texts of machine code


def simulated_table(*lines: tuple[str, int, dict[str, float]]) -> RunDocument:
    """A native run whose counted lines lie in so many lines of libstdc++'s headers."""
    counted = tuple(
        Hotspot(
            "main", counts.get("Ir", 1.0), file=f"/usr/include/c++/12/bits/{file}", line=at, counters=counts
        )
        for file, at, counts in lines
    )
    here = line(36, 1.0, own=1.0, code=None)
    return native(here, profiles=(Profile("", "instructions", 1e8, counted, "counted-lines"),))


LOOKUP = ("hashtable.h", 1930, {"Dr": 479_012.0, "Bc": 0.0})
NODE = ("hashtable_policy.h", 1323, {"Dr": 3_197_580.0, "D1mr": 2_957_390.0})


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ((LOOKUP, ("hashtable.h", 1940, {"Dr": 3_197_604.0, "Bc": 6_395_184.0}), NODE), "hash-chains"),
        # counts of the same program with a hash that spreads the keys
        ((LOOKUP, ("hashtable.h", 1940, {"Dr": 72_231.0, "Bc": 258_415.0}), NODE), "hot-spot"),
        # A hash that spreads its keys: what is inlined before the lookup is no walk.
        (
            (
                ("hashtable.h", 816, {"Dr": 278_788.0}),
                ("hashtable.h", 817, {"Dr": 2_446_374.0, "Bc": 1_094_246.0}),
            ),
            "hot-spot",
        ),
        ((("hashtable.h", 1930, {"Dr": 900.0}), ("hashtable.h", 1940, {"Dr": 9e6, "Bc": 9e6})), "hot-spot"),
        ((LOOKUP, NODE), "hot-spot"),  # a walk over all elements
        (
            (LOOKUP, ("hashtable.h", 2400, {"Dr": 9e6, "Bc": 9e6})),
            "hot-spot",
        ),  # another function of the table
    ],
)
def test_keys_share_buckets_where_lookups_walk_from_node_to_node(
    lines: tuple[tuple[str, int, dict[str, float]], ...], rule: str
) -> None:
    assert first(simulated_table(*lines)).rule == rule


@pytest.mark.parametrize(
    ("instructions", "name", "rule"),
    [
        (650e6, "core::str::iter::Chars", "walk-from-start"),
        (20e6, "core::str::iter::Chars", "hot-spot"),  # among the first characters
        (650e6, "core::iter::adapters::Skip", "hot-spot"),
    ],
)
def test_a_text_is_decoded_from_its_start_where_each_call_walks_far(
    instructions: float, name: str, rule: str
) -> None:
    function = f"<{name} as core::iter::traits::iterator::Iterator>::advance_by"
    counted = Hotspot(function, instructions, calls=1_579_509)
    here = line(56, 1.0, own=0.1, code=None, callees=(CodeLine(function, None, None, 0.9),))
    profiles = (Profile("", "instructions", 7e8, (counted,), "counted-functions"),)
    assert first(native(here, profiles=profiles)).rule == rule


def test_pickling_is_said_of_the_function_that_hands_over_and_not_where_the_program_waits_meanwhile() -> None:
    pool = "/usr/lib/python3.11/multiprocessing/pool.py"
    handed = Frame("apply_async", "standard library", pool)
    profiles = (
        Profile("", "s", 1.0, (Hotspot("_handle_tasks", 0.9, file=pool),), "sampled-functions"),
        Profile(
            "", "s", 1.0,
            (
                Hotspot("main", 0.2, 0.2, 26, "/app/work.py", 38, callee=replace(handed, function="get")),
                Hotspot("<listcomp>", 0.5, 0.5, 26, "/app/work.py", 43, callee=handed),
            ),
            "program-calls",
        ),
    )  # fmt: skip
    split = TimeSplit(1.0, cpu=0.9, threads=1.0, read=80e6, written=80e6, io_calls=1500)
    waiting = line(18, 0.9, main_cpu=0.0, own=0.0, waits={"lock": 0.9})
    found = first(run(waiting, profiles=profiles, time_split=split, machine=documents.machine()))
    assert (found.rule, found.where.function, found.where.line) == ("pickling", "<listcomp>", 43)
    # Lines that stand still while the thread of the pool has the lock, and a line that works.
    still = line(18, 0.5, main_cpu=0.1, own=0.1), line(19, 0.4, main_cpu=0.05, own=0.05)
    document = run(*still, profiles=profiles, time_split=split, machine=documents.machine())
    every = [one for one in find_insights(document) if one.rule == "pickling"]
    assert [(one.where.function, one.where.line) for one in every] == [("<listcomp>", 43)]
    assert every[0].gain is not None
    assert every[0].gain.at_most == pytest.approx(0.75, abs=0.02)
    works = line(18, 0.9, main_cpu=0.9, own=0.9)
    assert (
        first(run(works, profiles=profiles, time_split=split, machine=documents.machine())).rule == "hot-spot"
    )


@pytest.mark.parametrize(("works", "rule"), [(0.3, "pickling"), (1.5, "hot-spot")])
def test_a_pool_that_works_less_than_it_pickles_large_objects_is_said_to_pickle(
    works: float, rule: str
) -> None:
    pool = "/usr/lib/python3.11/multiprocessing/pool.py"
    handing = Hotspot("_handle_tasks", 0.9, file=pool), Hotspot("match", works, file="/app/work.py")
    profiles = (Profile("", "s", 0.9 + works, handing, "sampled-functions"),)
    split = TimeSplit(1.0, cpu=0.9, threads=1.0, read=80e6, written=80e6, io_calls=1500)
    waiting = line(18, 0.9, main_cpu=0.0, own=0.0, waits={"lock": 0.9})
    found = first(run(waiting, profiles=profiles, time_split=split, machine=documents.machine()))
    assert found.rule == rule


@pytest.mark.parametrize(("pickled", "waits"), [(0.0, 0.0), (0.8, 0.45), (2.4, 0.675)])
def test_what_workers_do_outside_of_the_program_stays_at_the_line_that_waits_for_them(
    pickled: float, waits: float
) -> None:
    """Two processes compute for 0.8 s in line 30, and for so long in what sends them their tasks."""
    main = line(18, 0.9, main_cpu=0.0, own=0.0, waits={"lock": 0.9})
    work = line(30, 0.0, own=0.8, other_wall=0.8, other_cpu=0.8, processes=2)
    sampled = SampledTime(0.9, 0.8 + pickled, rest_cpu=pickled, lines=(main, work))
    document = replace(documents.empty(), sampled=(sampled,))
    seconds = {spot.where.line: spot.seconds for spot in hot_spots(document) if spot.kind != "rest"}
    assert seconds.get(18, 0.0) == pytest.approx(waits, abs=0.1)
    assert seconds[30] == pytest.approx(0.9 - waits, abs=0.1)


def ended(python: str | None, cost: float) -> RunDocument:
    """A run whose first Python process has 2 of the 3 s that the pass of the stacks took."""
    stacks = PassResult("stacks", "profkit", "finished", seconds=3.0, cost=cost)
    workload = replace(documents.empty().workload, python=python)
    return run(line(3, 1.9), wall=2.0, workload=workload, passes=(stacks,))


def test_what_a_script_starts_beside_python_is_no_time_of_a_line_of_python() -> None:
    assert [round(spot.share, 3) for spot in ended(None, 1.1).hot_spots] == [0.633, 0.367]
    # The start of an interpreter is the program's own; several runs took several times as long.
    assert ended("python", 1.1).hot_spots[0].share == pytest.approx(0.95)
    assert ended(None, 2.2).hot_spots[0].share == pytest.approx(0.95)

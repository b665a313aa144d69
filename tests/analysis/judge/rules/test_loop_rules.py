"""What a loop does once for each item, an event loop that is held, warnings and small writes: with and without each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.judge.rules.host_native import small_transfers as native_transfers
from profkit.analysis.judge.rules.spot_loops import (
    all_pairs,
    integer_product,
    is_in_loop,
    list_for_each,
    message_for_each,
    prediction_for_each,
    query_for_each,
    row_for_each,
)
from profkit.analysis.judge.rules.spot_values import element_wise, own_warning
from profkit.analysis.judge.rules.spot_waits import interpreter_lock
from profkit.analysis.judge.rules.work.queries import calls_in_loop, small_transfers
from profkit.analysis.stacks.source import line_code
from profkit.core.types import (
    ArrayForm,
    Beneath,
    CodeLine,
    CodeSpot,
    Hotspot,
    LineCode,
    LineCount,
    LineSamples,
    Place,
    Profile,
    ProgramWarning,
    RunDocument,
    SampledTime,
    TimeSplit,
    Variable,
)
from profkit.profiling.program_warnings import read_warnings
from tests import documents
from tests.analysis.judge.rules.test_chain_rules import findings, ran

WORK = "/app/work.py"


def spot_at(text: str, line: int, **more: object) -> CodeSpot:
    """A place with seven tenths of two seconds, at a line of a source."""
    place = Place(function="report", file=WORK, line=line)
    return replace(CodeSpot(0.7, 1.4, "library", place, code=line_code(text, line)), **more)


# ---------------------------------------------------------------- queries

_DJANGO = "/lib/django/db/models/sql/compiler.py"
_LAZY = "/lib/sqlalchemy/orm/strategies.py"
_EXPIRED = "/lib/sqlalchemy/orm/loading.py"
_ENGINE = "/lib/sqlalchemy/engine/default.py"
_PEEWEE = "/lib/python3.11/site-packages/peewee.py"
LOOP = "def report():\n    for order in orders:\n        name = order.customer.name\n"


def _asked(
    function: str,
    file: str,
    statements: int,
    looked_at: str = "",
    looks: int | None = None,
    below: float = 0.9,
    text: str = LOOP,
    variables: dict[str, Variable] | None = None,
    also: tuple[CodeLine, ...] = (),
) -> tuple[str, str] | None:
    """Title and change of `name = order.customer.name`, looked at so often, with so many statements in the run."""
    spot = spot_at(
        text,
        3,
        under=Beneath("__get__", file.split("/")[2], calls=looks, public=looked_at or None),
        below=(CodeLine(f"Some.{function}", file, 1500, below), *also),
        variables=variables or {},
    )
    counted = Profile("", "s", 2.0, (Hotspot(function, 0.1, 1.2, statements, file, 1500),), "own-time")
    callee = CodeLine("first", file, 10, 0.0)
    edge = Hotspot("report", 1.0, 1.2, 3000, WORK, 1, callee=callee)
    document = replace(
        documents.empty(),
        profiles=(counted, Profile("", "s", 2.0, (edge,), "program-calls")),
        hot_spots=(spot,),
    )
    found = query_for_each(document, spot)
    return None if found is None else (found.title, found.change)


@pytest.mark.parametrize(
    ("function", "file", "looked_at", "looks", "word"),
    [
        ("execute_sql", _DJANGO, "ForwardManyToOneDescriptor", 3000, "select_related"),
        ("execute_sql", _DJANGO, "QuerySet", 3000, "prefetch_related"),
        ("execute_sql", _DJANGO, "", None, "in_bulk"),  # Model.objects.get: cProfile has another name of it
        ("_emit_lazyload", _LAZY, "InstrumentedAttribute", 6000, "selectinload"),  # two looks, one query
        ("load_scalar_attributes", _EXPIRED, "InstrumentedAttribute", 3000, "expire_on_commit"),
        ("do_execute", _ENGINE, "", None, "WHERE key IN"),
        ("execute", _PEEWEE, "ForeignKeyAccessor", 3000, ".join(Related)"),
        ("execute", _PEEWEE, "BaseModelSelect", 3000, "prefetch("),
    ],
)
def test_a_query_for_each_item_is_told_with_the_words_of_its_library(
    function: str, file: str, looked_at: str, looks: int | None, word: str
) -> None:
    found = _asked(function, file, 3010, looked_at, looks)
    assert found is not None
    times = "3,010" if function in ("_emit_lazyload", "load_scalar_attributes") else "3,000"
    assert found[0] == f"Ask once for all items: this line sent a query {times} times"
    assert word in found[1]


def _relation(kind: str, prefetched: bool) -> dict[str, Variable]:
    held = {"order.items [relation]": Variable(kind, None)}
    return held | ({"order.items [prefetched]": Variable("list", 1)} if prefetched else {})


_FILTERED = LOOP.replace("order.customer.name", "list(order.items.filter(sold=True).order_by('day'))")


@pytest.mark.parametrize(
    ("kind", "prefetched", "title", "change"),
    [
        (
            "ReverseManyToOneDescriptor", True,
            "order.items was prefetched, and .filter(...).order_by(...) asks the database again: 3,000 queries",
            "[each for each in order.items.all() if ...]",
        ),
        ("ManyToManyDescriptor", True, "order.items was prefetched, and .filter(", 'Prefetch("items", queryset='),
        ("ReverseManyToOneDescriptor", False, "Ask once for all items", "prefetch_related(RELATION)"),
        ("ManyToManyDescriptor", False, "Ask once for all items", "prefetch_related(RELATION)"),
        ("ForwardManyToOneDescriptor", False, "Ask once for all items", "select_related(FIELD)"),
    ],
)  # fmt: skip
def test_a_relation_of_django_is_prefetched_or_what_was_prefetched_is_used(
    kind: str, prefetched: bool, title: str, change: str
) -> None:
    held = _relation(kind, prefetched)
    found = _asked("execute_sql", _DJANGO, 3010, "filter", 3000, text=_FILTERED, variables=held)
    assert found is not None
    assert found[0].startswith(title)
    assert change in found[1]
    assert ("in_bulk" in found[1], "select_related" in found[1]) == (False, kind.startswith("Forward"))


@pytest.mark.parametrize(("look", "deferred"), [(0.85, True), (0.0, False)])
def test_a_field_that_only_left_out_is_said_and_an_object_that_the_program_reads_again_is_not(
    look: float, deferred: bool
) -> None:
    also = (
        CodeLine("Model.refresh_from_db", "/lib/django/db/models/base.py", 700, 0.85),
        CodeLine("DeferredAttribute.__get__", "/lib/django/db/models/query_utils.py", 200, look),
    )
    found = _asked("execute_sql", _DJANGO, 3010, "DeferredAttribute", 3000, below=0.5, also=also)
    assert found is not None
    assert ("only(...)" in found[1]) == deferred


def test_a_manager_of_many_that_is_seen_below_is_prefetched_and_another_relation_says_nothing() -> None:
    manager = "create_reverse_many_to_one_manager.<locals>.RelatedManager.get_queryset"
    below = CodeLine(manager, "/lib/django/db/models/fields/related_descriptors.py", 755, 0.3)
    found = _asked("execute_sql", _DJANGO, 3010, "filter", 3000, text=_FILTERED, also=(below,))
    assert found is not None
    assert "prefetch_related(RELATION)" in found[1]
    other = {
        name.replace("items", "others"): held
        for name, held in _relation("ManyToManyDescriptor", True).items()
    }
    found = _asked("execute_sql", _DJANGO, 3010, "filter", 3000, text=_FILTERED, variables=other)
    assert found is not None
    assert "in_bulk" in found[1]


def test_what_was_prefetched_and_is_used_sends_no_query() -> None:
    held = _relation("ReverseManyToOneDescriptor", True)
    text = LOOP.replace("order.customer.name", "[item for item in order.items.all() if item.sold]")
    assert _asked("execute_sql", _DJANGO, 20, "QuerySet", 3000, text=text, variables=held) is None


@pytest.mark.parametrize(("method", "word"), [("aggregate", "annotate("), ("first", "in_bulk")])
def test_a_number_of_a_relation_is_annotated_and_an_object_is_loaded(method: str, word: str) -> None:
    text = LOOP.replace("order.customer.name", f"order.payments.filter(settled=True).{method}()")
    found = _asked("execute_sql", _DJANGO, 3010, "", 3000, text=text)
    assert found is not None
    assert word in found[1]


@pytest.mark.parametrize(
    ("function", "file"), [("execute_sql", _DJANGO), ("_emit_lazyload", _LAZY), ("execute", _PEEWEE)]
)
def test_what_was_loaded_with_the_first_query_sends_none_for_each_item(function: str, file: str) -> None:
    assert _asked(function, file, 2800, "Accessor", 3000) is not None  # some were known already
    assert _asked(function, file, 20, "Accessor", 3000) is None
    few = _asked(function, file, 300, "Accessor", 3000)  # most were known: the loop is about something else
    assert (few is None) == (function != "_emit_lazyload")  # which runs for nothing but a query
    assert _asked(function, file, 3010, "Accessor", 3000, below=0.2) is None  # the time is elsewhere
    once = "def report():\n    order = orders[0]\n    name = order.customer.name\n"
    assert _asked(function, file, 3010, "Accessor", 3000, text=once) is None  # no loop


# ---------------------------------------------------------------- messages to another process

SHARED = """
from multiprocessing import Manager
def tally(words, counts):
    for word in words:
        counts[word] = counts.get(word, 0) + 1
if __name__ == "__main__":
    with Manager() as manager:
        counts = %s
        tally([f"w{n %% 97}" for n in range(%s)], counts)
        manager.dict(counts)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("held", "count", "said"), [("manager.dict()", 6000, True), ("dict()", 2_000_000, False)]
)
def test_an_object_that_another_process_holds_is_said_where_each_use_is_a_message(
    tmp_path: Path, held: str, count: int, said: bool
) -> None:
    found = findings(tmp_path, SHARED % (held, count)).get("calls-in-loop")
    assert (found is not None and found.where.line == 5) == said


def test_messages_of_workers_are_known_by_their_size_and_number() -> None:
    text = "def report(counts):\n    for word in words:\n        counts[word] = counts.get(word, 0) + 1\n"
    below = (CodeLine("BaseProxy._callmethod", "/lib/python3.11/multiprocessing/managers.py", 809, 0.9),)
    spot = spot_at(text, 3, below=below)

    def said(calls: int, size: float) -> bool:
        split = TimeSplit(2.0, read=calls * size, written=0.0, io_calls=calls)
        return message_for_each(replace(documents.empty(), time_split=split), spot) is not None

    assert said(180_000, 39.0)
    assert not said(180_000, 40_000.0)  # large pieces
    assert not said(300, 39.0)


# ---------------------------------------------------------------- rows of a frame

ROWS = "import pandas\ndef gross(row):\n    return row['net'] * 2\nframe['gross'] = frame.apply(gross, axis=%s)\n"
_BY_PANDAS = (CodeLine("FrameApply.apply_series_generator", "/lib/pandas/core/apply.py", 1350, 0.5),)


@pytest.mark.parametrize(("axis", "said"), [("1", True), ("'columns'", True), ("0", False)])
def test_a_function_that_pandas_calls_with_each_row_is_said_at_its_own_line(axis: str, said: bool) -> None:
    spot = spot_at(ROWS % axis, 3, callers=_BY_PANDAS, variables={"row": Variable("pandas.Series")})
    found = row_for_each(documents.empty(), spot)
    assert (found is not None) == said
    elsewhere = replace(spot, callers=(CodeLine("main", WORK, 20, 0.5),))
    assert row_for_each(documents.empty(), elsewhere) is None  # the program calls it itself


def test_the_line_that_applies_a_function_to_rows_needs_no_loop_around_it() -> None:
    below = (CodeLine("FrameApply.apply_series_generator", "/lib/pandas/core/apply.py", 1350, 0.9),)
    found = row_for_each(documents.empty(), spot_at(ROWS % 1, 4, below=below))
    assert found is not None
    assert found.title == "Work on whole columns of frame, not on one row at a time"
    assert row_for_each(documents.empty(), spot_at(ROWS % 1, 4)) is None  # its time is elsewhere


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("frame[f'lag{k}'] = base.shift(k)", "pandas.DataFrame", False),  # a column
        ("rows = frame[frame.key == k]", "pandas.DataFrame", False),  # a mask
        ("total += frame.iloc[k]", "pandas.DataFrame", True),
        ("total += frame[k]", "numpy.ndarray", True),
    ],
)
def test_a_column_of_a_frame_is_no_element(line: str, kind: str, said: bool) -> None:
    spot = spot_at(
        f"def report():\n    for k in range(900):\n        {line}\n", 3, variables={"frame": Variable(kind)}
    )
    assert (element_wise(documents.empty(), spot) is not None) == said


# ---------------------------------------------------------------- a batch of one

MODEL = Beneath("_wrapped_call_impl", "torch", 20_000, 80e-6, "Module")
SCIKIT = Beneath("predict", "sklearn", 5000, 900e-6)


@pytest.mark.parametrize(
    ("body", "under", "said"),
    [
        ("for row in rows:\n        found.append(model(row.unsqueeze(0)))", MODEL, True),
        ("for row in rows:\n        found.append(model.predict([row]))", SCIKIT, True),
        ("for n in range(9):\n        found.append(model.predict(rows[n:n + 1]))", SCIKIT, True),
        ("for row in rows:\n        found.append(model.predict(row.reshape(1, -1)))", SCIKIT, True),
        ("for row in rows:\n        found.append(model.predict(row))", SCIKIT, False),  # a chunk of rows
        ("for n in range(9):\n        found.append(model.predict(rows[n:n + 100]))", SCIKIT, False),
        ("for n in range(9):\n        state = model(state.unsqueeze(0))", MODEL, False),  # of the step before
        ("for row in rows:\n        state = model((row + state)[None])", MODEL, False),
        ("for row in rows:\n        found.append(model(self.state[None]))", MODEL, False),
        ("for row in rows:\n        found.append(save([row]))", SCIKIT, False),  # no model
        ("for row in rows:\n        found.append(model.predict([row]))", replace(SCIKIT, calls=20), False),
        ("for row in rows:\n        found.append(model.predict([row]))", replace(SCIKIT, seconds_per_call=0.4), False),
    ],
)  # fmt: skip
def test_a_model_that_is_called_for_one_item_at_a_time_is_said_where_no_item_needs_another(
    body: str, under: Beneath, said: bool
) -> None:
    spot = spot_at(f"def report(rows):\n    {body}\n", 3, under=under)
    assert (prediction_for_each(documents.empty(), spot) is not None) == said


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"rows": Variable("numpy.ndarray", 3780), "row": Variable("numpy.ndarray", 9)}, True),
        ({"rows": Variable("numpy.ndarray", 270), "row": Variable("numpy.ndarray", 9)}, False),
        ({"rows": Variable("list", 420)}, True),
        ({}, False),
    ],
)
def test_the_length_of_what_a_loop_goes_through_proves_how_often_a_model_is_called(
    held: dict[str, Variable], said: bool
) -> None:
    body = "def report(rows):\n    for row in rows:\n        found.append(model.predict([row]))\n"
    for calls in (9, None):
        under = replace(SCIKIT, calls=calls, seconds_per_call=None)
        spot = replace(spot_at(body, 3, under=under, variables=held), partial=True)
        found = prediction_for_each(documents.empty(), spot)
        assert (found is not None) == said
        if found is not None:
            assert found.gain is not None
            assert found.gain.at_most == pytest.approx(spot.share, rel=0.01)


@pytest.mark.parametrize(
    ("calls", "partial", "said"), [(52, True, True), (52, False, False), (20, True, False)]
)
def test_fewer_calls_of_a_model_prove_as_much_where_their_count_gave_up_early(
    calls: int, partial: bool, said: bool
) -> None:
    body = "def report(rows):\n    for row in rows:\n        found.append(model.predict([row]))\n"
    spot = replace(spot_at(body, 3, under=replace(SCIKIT, calls=calls)), partial=partial)
    assert (prediction_for_each(documents.empty(), spot) is not None) == said


ROUTER = """class Router:
    def department_of(self, text):
        return self.model.predict([text])
    def route(self, texts):
        last = texts[0]
        for text in texts:
            %s
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("found.append(self.department_of(text))", True),
        ("last = self.department_of(last)", False),  # of the item before
        ("found.append(self.department_of(texts))", False),  # of all
        ("found.append(self.department_of(history.words(text)))", True),  # of what the item is made into
        ("last = self.department_of(history.after(text, last))", False),
    ],
)
def test_a_batch_of_one_that_a_function_makes_is_said_where_a_loop_calls_it_with_its_items(
    call: str, said: bool
) -> None:
    text = ROUTER % call
    spot = spot_at(text, 3, under=SCIKIT, caller_code=line_code(text, 7))
    assert (prediction_for_each(documents.empty(), spot) is not None) == said


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("features(order).reshape(1, -1)", True),
        ("np.array([order.amount, order.age]).reshape(1, -1)", True),
        ("(features(order) - self.mean).reshape(1, -1)", False),  # may change with each item
        ("table.reshape(1, -1)", False),  # what all items share
    ],
)
def test_what_a_batch_of_one_calls_is_no_part_of_it(batch: str, said: bool) -> None:
    text = f"""import numpy as np
class Fraud:
    def risk(self, order):
        return float(self.forest.predict({batch})[0])
    def score(self, orders):
        for order in orders:
            found.append(self.risk(order))
"""
    spot = spot_at(text, 4, under=SCIKIT, caller_code=line_code(text, 7))
    assert (prediction_for_each(documents.empty(), spot) is not None) == said


def test_a_search_that_ends_at_the_first_hit_needs_one_item_after_the_other() -> None:
    text = "def report(rows):\n    for row in rows:\n        if model.predict([row]):\n            break\n"
    assert line_code(text, 3) is not None
    assert prediction_for_each(documents.empty(), spot_at(text, 3, under=SCIKIT)) is None
    head = "def report(rows):\n    for row in rows:\n"
    before = f"{head}        x = row / last\n        model.predict([x])\n        last = x\n"
    assert prediction_for_each(documents.empty(), spot_at(before, 4, under=SCIKIT)) is None
    scaled = before.replace("last = x", "count(x)")
    assert prediction_for_each(documents.empty(), spot_at(scaled, 4, under=SCIKIT)) is not None


# ---------------------------------------------------------------- an event loop that is held

SERVER = """
import asyncio, hashlib
def key_of(n):
    return hashlib.pbkdf2_hmac("sha256", b"%%d" %% n, b"salt", %s)
async def login(first):
    for n in range(first, first + %s):
        %s
        await asyncio.sleep(0.001)
async def main():
    %s
asyncio.run(main())
"""
GATHERED = "await asyncio.gather(*(login(n) for n in range(4)))"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rounds", "count", "line", "runs", "said"),
    [
        (120_000, 5, "key_of(n)", GATHERED, True),
        (120_000, 5, "await asyncio.to_thread(key_of, n)", GATHERED, False),
        (120_000, 12, "key_of(n)", "await login(0)", False),  # nobody waits
        (120_000, 12, "key_of(n)", "await asyncio.wait_for(asyncio.create_task(login(0)), 60)", False),
        (300, 500, "key_of(n)", GATHERED, False),  # each is short
    ],
)
def test_what_holds_an_event_loop_is_said_where_something_else_was_ready(
    tmp_path: Path, rounds: int, count: int, line: str, runs: str, said: bool
) -> None:
    found = findings(tmp_path, SERVER % (rounds, count, line, runs)).get("blocked-event-loop")
    assert (found is not None) == said, found
    if found is not None:
        assert found.where.line == 4
        assert "called from login" in found.evidence


WAITING = """
import asyncio, time
def load():
    time.sleep(0.04)
async def prices():
    for _ in range(12):
        %s
        await asyncio.sleep(0.01)
async def ping():
    for _ in range(150):
        sum(range(60_000))
        await asyncio.sleep(0.001)
async def main():
    %s
asyncio.run(main())
"""
BOTH = "await asyncio.gather(prices(), ping(), ping())"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "runs", "said"),
    [
        ("load()", BOTH, True),
        ("await asyncio.to_thread(load)", BOTH, False),
        ("load()", "await prices()", False),  # nobody waits
    ],
)
def test_what_waits_in_a_function_that_a_coroutine_calls_blocks_the_loop_of_others(
    tmp_path: Path, line: str, runs: str, said: bool
) -> None:
    found = findings(tmp_path, WAITING % (line, runs)).get("blocked-event-loop")
    assert (found is not None) == said, found
    if found is not None:
        assert found.where.line == 4
        assert "the event loop" in found.title
        assert "called from prices" in found.evidence


# ---------------------------------------------------------------- warnings of the program itself

PRINTED = """3 orders
/app/work.py:3: PerformanceWarning: DataFrame is highly fragmented.  Consider pd.concat(axis=1) instead.
  frame[k] = value
/app/work.py:3: PerformanceWarning: DataFrame is highly fragmented.  Consider pd.concat(axis=1) instead.
work.py:7: UserWarning: A tensor of arrays is extremely slow. Join them. (Triggered internally at /x/new.cpp:252.)
/app/work.py:3: DeprecationWarning: orders is the old name
/app/work.py: Warning: no line
/lib/profkit/runtime/passes/host/operation_window.py:86: UserWarning: A tensor of arrays is extremely slow. Join them.
"""


def test_warnings_are_read_each_once_where_the_program_has_its_line(tmp_path: Path) -> None:
    log = tmp_path / "timing-1.log"
    log.write_text(PRINTED)
    found = read_warnings(log)
    assert [(one.file, one.line, one.category) for one in found] == [
        (WORK, 3, "PerformanceWarning"),
        ("work.py", 7, "UserWarning"),
        (WORK, 3, "DeprecationWarning"),
    ]
    assert found[1].text == "A tensor of arrays is extremely slow. Join them."
    assert read_warnings(tmp_path / "none.log") == ()


@pytest.mark.parametrize(
    ("line", "category", "text", "said"),
    [
        (3, "PerformanceWarning", "DataFrame is highly fragmented. Consider pd.concat.", True),
        (3, "UserWarning", "A list of arrays is extremely slow. Join them.", True),
        (3, "DeprecationWarning", "orders is the old name. Use order.", False),  # it costs no time
        (9, "PerformanceWarning", "DataFrame is highly fragmented. Consider pd.concat.", False),  # elsewhere
    ],
)
def test_a_warning_is_shown_in_its_own_words_where_it_is_of_a_hot_line_and_of_time(
    line: int, category: str, text: str, said: bool
) -> None:
    document = replace(documents.empty(), warnings=(ProgramWarning(WORK, line, category, text),))
    found = own_warning(document, spot_at(LOOP, 3))
    assert (found is not None) == said
    if found is not None:
        assert found.title == f"This line gets a {category}: {text.split('. ')[0]}"
        assert found.change == text.split(". ")[1]


# ---------------------------------------------------------------- small writes


def _split(calls: int, each: float) -> TimeSplit:
    return TimeSplit(2.0, read=0.0, written=calls * each, io_calls=calls)


@pytest.mark.parametrize(
    ("text", "calls", "each", "said"),
    [
        ("for n in rows:\n    print(n, flush=True)\n", 600_000, 4.0, True),
        ("for n in rows:\n    print(n)\n", 600_000, 4.0, False),  # those are of another line
        ("for n in rows:\n    print(n, flush=True)\n", 900, 4.0, False),
        ("for n in rows:\n    print(n, flush=True)\n", 600_000, 65536.0, False),
    ],
)
def test_lines_that_are_flushed_one_by_one_are_said(text: str, calls: int, each: float, said: bool) -> None:
    document = replace(documents.empty(), time_split=_split(calls, each))
    found = small_transfers(document, spot_at(text, 2))
    assert (found is not None) == said
    assert found is None or "flush=True" in found.change


@pytest.mark.parametrize(
    ("name", "calls", "each", "said"),
    [
        ("__GI___libc_write", 1_400_000, 4.0, True),
        ("read", 2_300_000, 2.0, True),
        ("write", 400, 4.0, False),
        ("write", 1_400_000, 65536.0, False),
        ("__vfprintf_internal", 1_400_000, 4.0, False),  # the time is not in the kernel
    ],
)
def test_system_calls_of_a_few_bytes_are_said_of_compiled_code(
    name: str, calls: int, each: float, said: bool
) -> None:
    place = Place(function="main", file="/app/work.cpp", line=6)
    spot = CodeSpot(0.9, 1.8, "native", place, under=Beneath(name, "libc.so.6"))
    found = native_transfers(replace(documents.empty(), time_split=_split(calls, each)), spot)
    assert (found is not None) == said
    assert found is None or f"{calls:,} system calls" in found.title


def test_a_line_without_source_is_no_place_in_a_loop() -> None:
    spot = replace(spot_at(LOOP, 3), code=LineCode("order.customer"))
    assert query_for_each(documents.empty(), spot) is None


_WAITS = (CodeLine("Condition.wait", "/usr/lib/python3.11/threading.py", 320, 1.6),)
_LOOKS = """def report():
    while left:
        try:
            order = orders.get_nowait()
        except Empty:
            continue
        left.remove(order)
"""


@pytest.mark.parametrize(
    ("queued", "beside", "said"),
    [
        (0.0, (), 4),
        (0.9, (), None),  # they wait for a processor
        (0.0, (LineSamples("take", WORK, 8, other_wall=0.6, other_cpu=0.1, threads=1, below=_WAITS),), 4),
        (0.0, (LineSamples("main", WORK, 9, main_wall=0.6, main_cpu=0.6),), 4),  # before they began
        (
            0.0,
            (
                LineSamples(
                    "report", WORK, 6, other_wall=0.5, other_cpu=0.4, threads=1, code=line_code(_LOOKS, 6)
                ),
            ),
            None,
        ),
    ],
)
def test_threads_that_compute_at_the_same_time_are_said_to_wait_for_the_interpreters_lock(
    queued: float, beside: tuple[LineSamples, ...], said: int | None
) -> None:
    workers = tuple(
        Hotspot(f"worker {n}", 0.5, 0.5, counters={"threads": 1.0, "first_process": 1.0}) for n in range(4)
    )
    split = TimeSplit(2.0, threads=1.05, queued=queued)
    threads = Profile("", "s", 2.0, workers, "sampled-threads")
    work = LineSamples("report", WORK, 3, other_wall=2.0, other_cpu=0.5, threads=4)
    sampled = SampledTime(0.5, 1.0, lines=(work, *beside))
    document = replace(documents.empty(), profiles=(threads,), time_split=split, sampled=(sampled,))
    spot = spot_at(LOOP, 3, kind="python", threads=4)
    found = interpreter_lock(document, spot)
    assert (found is not None) == bool(said)
    assert found is None or f": {said}.0 threads besides the main one are ready" in found.evidence
    again = replace(sampled, wall=1.0, lines=(*sampled.lines, *sampled.lines))  # of two runs of the program
    main = Hotspot("main", 0.0, 0.5, counters={"threads": 1.0, "first_process": 1.0})
    threads = replace(threads, hotspots=(*workers, main))
    assert found == interpreter_lock(replace(document, profiles=(threads,), sampled=(again,)), spot)


@pytest.mark.parametrize("waits", [0.0, 0.5])
def test_threads_that_mostly_wait_are_not_said_to_wait_for_the_interpreters_lock(waits: float) -> None:
    workers = tuple(
        Hotspot(f"worker {n}", 0.2, 0.5, counters={"threads": 1.0, "first_process": 1.0}) for n in range(2)
    )
    threads = Profile("", "s", 0.4, workers, "sampled-threads")
    work = LineSamples("report", WORK, 3, other_wall=1.0, threads=2, other_waits={"lock": waits})
    document = replace(documents.empty(), profiles=(threads,), time_split=TimeSplit(0.5, threads=1.0))
    document = replace(document, sampled=(SampledTime(0.5, 0.5, lines=(work,)),))
    spot = spot_at(LOOP, 3, kind="python", threads=2)
    assert (interpreter_lock(document, spot) is not None) == (waits == 0.0)


# ---------------------------------------------------------------- arrays of all pairs, lists that become arrays

PAIRS = """def distances(points, centres):
    diff = points[:, None, :] - centres[None, :, :]
    return np.sqrt((diff ** 2).sum(axis=2))
"""
ONE_LINE = """def distances(points, centres):
    return ((points[:, None] - centres[None]) ** 2).sum(-1)
"""
PRODUCTS = """def scores(points, centres):
    return (points[:, None] * centres[None]).sum(-1)
"""
KEPT = """def differences(points, centres):
    return points[:, None] - centres[None]
"""
BY_ROW = """def centred(points, centres):
    return ((points - centres[0]) ** 2).sum(-1)
"""


def paired(text: str, points: tuple[int, ...], centres: tuple[int, ...], times: int = 50) -> RunDocument:
    """A run whose lines of NumPy take all of the time, the last one most."""
    text = f"import numpy as np\n{text}"
    whole = (points[0], centres[0], *points[1:])
    forms = {"points": points, "centres": centres, "diff": whole}
    spots, counts = [], []
    for number in range(3, len(text.splitlines()) + 1):
        code = line_code(text, number)
        assert code is not None
        held = {name: (ArrayForm("<f8", shape, "C"),) for name, shape in forms.items() if name in code.text}
        counts.append(LineCount(WORK, number, "distances", times, 6, held))
        spot = CodeSpot(
            0.1 * number, number, "python", Place(function="distances", file=WORK, line=number), code=code
        )
        spots.append(spot)
    return replace(documents.empty(), hot_spots=tuple(spots), line_counts=tuple(counts))


@pytest.mark.parametrize(
    ("text", "points", "centres", "said"),
    [
        (PAIRS, (11000, 32), (24, 32), ("matrix product", 0.7)),
        (ONE_LINE, (11000, 32), (24, 32), ("matrix product", 0.3)),
        (PRODUCTS, (11000, 32), (24, 32), ("einsum", 0.3)),
        (ONE_LINE, (500, 32), (24, 32), None),  # 3 MB: in the cache
        (ONE_LINE, (110000, 32), (2, 32), None),  # twice as large
        (KEPT, (11000, 32), (24, 32), None),  # what it is for
        (BY_ROW, (110000, 32), (24, 32), None),
    ],
)
def test_an_array_of_all_pairs_that_is_summed_up_is_said_once(
    text: str, points: tuple[int, ...], centres: tuple[int, ...], said: tuple[str, float] | None
) -> None:
    document = paired(text, points, centres)
    found = [one for spot in document.hot_spots if (one := all_pairs(document, spot)) is not None]
    assert len(found) == (1 if said else 0)
    for one in found:
        assert one.gain is not None
        assert said is not None
        assert (said[0] in one.change, one.gain.at_most) == (True, pytest.approx(said[1]))
        assert one.where.line == 3  # where it is made
        assert "64.5 MiB" in one.title


@pytest.mark.parametrize(("times", "said"), [(6, 1), (2, 0)])
def test_an_array_of_all_pairs_is_said_of_the_few_passes_of_a_clustering(times: int, said: int) -> None:
    document = paired(PAIRS, (11000, 32), (24, 32), times)
    assert len([spot for spot in document.hot_spots if all_pairs(document, spot) is not None]) == said


ITEM = """class Rows:
    def __getitem__(self, index):
        row = [x / 3 for x in self.rows[index]]
        return torch.tensor(row, dtype=torch.float32)
"""


@pytest.mark.parametrize(
    ("held", "calls", "said"),
    [
        (Variable("list", 320), 5000, True),
        (Variable("list", 3), 5000, False),
        (Variable("numpy.ndarray"), 5000, False),
        (Variable("list", 320), 20, False),
        (None, 5000, False),
    ],
)
def test_a_list_that_becomes_a_tensor_for_each_item_is_said(
    held: Variable | None, calls: int, said: bool
) -> None:
    text = f"import torch\n{ITEM}"
    under = Beneath("torch.tensor", "torch", calls, 30e-6)
    variables = {"row": held} if held is not None else {}
    spot = spot_at(text, 5, under=under, variables=variables, calls=calls)
    assert (list_for_each(documents.empty(), spot) is not None) == said


LAYERS = """def day(orders):
    for order in orders:
        show(order)
def show(order):
    return name(order)
def name(order):
    return order.customer.name
"""


@pytest.mark.parametrize(
    ("between", "said"), [("", True), ("/lib/python3.11/site-packages/web/app.py", False)]
)
def test_a_loop_is_seen_through_functions_of_the_program_and_not_through_a_library(
    between: str, said: bool
) -> None:
    loop = LineSamples("day", WORK, 3, main_wall=1.0, code=line_code(LAYERS, 3))
    above = CodeLine("day", WORK, 3, 1.0) if not between else CodeLine("dispatch", between, 70, 1.0)
    shows = LineSamples("show", WORK, 5, main_wall=1.0, code=line_code(LAYERS, 5), callers=(above,))
    document = replace(documents.empty(), sampled=(SampledTime(1.4, 1.4, outer=(loop, shows)),))
    spot = spot_at(LAYERS, 7, callers=(CodeLine("show", WORK, 5, 1.0),), caller_code=line_code(LAYERS, 5))
    assert is_in_loop(document, spot) == said


# ---------------------------------------------------------------- trimming, elements that are kept, event loops

TRIM = """
import re
EDGE = re.compile(r"%s")
text = "a" + " " * 600 + "b " * 200
for n in range(%s):
    EDGE.sub("", text)
"""


@pytest.mark.parametrize("pattern", [r"^[\s]+|[\s]+$", r"\s+$", r"[ \t]*$"])
def test_a_pattern_that_only_trims_is_said_to_be_what_strip_does(tmp_path: Path, pattern: str) -> None:
    found = findings(tmp_path, TRIM % (pattern, 120))["backtracking"]
    assert found.where.line == 6
    assert found.title == "Trim the text without a regular expression"
    assert "strip" in found.change


@pytest.mark.parametrize("pattern", [r"^\s+", r"b\s+$", r"[\s]+", r"\s+b$"])
def test_a_pattern_that_does_more_than_trim_is_not(tmp_path: Path, pattern: str) -> None:
    assert "backtracking" not in findings(tmp_path, TRIM % (pattern, 120))


KEPT = """
import numpy
values = numpy.random.default_rng(1).normal(size=4000)
means = numpy.empty(3000)
for i in range(3000):
    means[i] = %s
"""


@pytest.mark.thorough
def test_an_element_that_keeps_what_a_call_gives_is_not_what_takes_the_time(tmp_path: Path) -> None:
    assert "element-wise" not in findings(tmp_path, KEPT % "numpy.sort(values)[:90].mean()")


WAITS = """
import asyncio
async def ask(n):
    for _ in range(40):
        await asyncio.sleep(0.004)
async def work():
    await asyncio.gather(*(ask(n) for n in range(20)))
asyncio.run(work())
"""


def test_an_event_loop_whose_waits_are_short_waits_and_does_not_compute(tmp_path: Path) -> None:
    spots = ran(tmp_path, WAITS).hot_spots
    kinds = {spot.kind for spot in spots if spot.share > 0.3 and spot.kind != "rest"}
    assert kinds
    assert kinds <= {"input", "await", "import"}


@pytest.mark.parametrize(("calls", "said"), [(300, "report calls codecs.open 300 times"), (3, None)])
def test_what_is_counted_below_a_call_is_not_the_number_of_that_call(calls: int, said: str | None) -> None:
    text = "import codecs\ndef report(name):\n    lines = list(codecs.open(name))\n"
    spot = spot_at(text, 3, calls=calls, under=Beneath("__next__", "codecs", 90_300, public="codecs.open"))
    found = calls_in_loop(documents.empty(), spot)
    assert (found is not None) == (said is not None)
    assert said is None or (found is not None and found.title.startswith(said))


@pytest.mark.parametrize(
    ("line", "kinds", "said"),
    [
        ("both = self.present.T @ self.present", {"self.present": "integers"}, True),
        ("both = numpy.dot(left, right)", {"left": "integers", "right": "integers"}, True),
        ("both = left.dot(right)", {"left": "integers", "right": "floats"}, False),
        ("both = left @ right.astype(float)", {"left": "integers", "right": "integers"}, False),
    ],
)
def test_a_product_of_integers_is_said_where_both_are(line: str, kinds: dict[str, str], said: bool) -> None:
    text = f"import numpy\ndef report(self, left, right):\n    {line}\n"
    names = {"integers": "numpy.ndarray of integers", "floats": "numpy.ndarray"}
    held = {name: Variable(names[kind]) for name, kind in kinds.items()}
    assert (integer_product(documents.empty(), spot_at(text, 3, variables=held)) is not None) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [("numpy.add.at(table[row], basket, 1)", False), ("total += numpy.sqrt(table[row])", True)],
)
def test_a_row_that_is_given_to_a_function_of_arrays_is_no_element(line: str, said: bool) -> None:
    text = f"import numpy\ndef report(table, baskets):\n    for row, basket in baskets:\n        {line}\n"
    held = {"table": Variable("numpy.ndarray")}
    assert (element_wise(documents.empty(), spot_at(text, 4, variables=held)) is not None) == said


BESIDE_SERVER = """
import asyncio, select, socket, threading, time
ready, other = socket.socketpair()
def serve():
    while True:
        select.select([ready], [], [], 5)
threading.Thread(target=serve, daemon=True).start()
answers, carrier = socket.socketpair()
def answer():
    while carrier.recv(1):
        time.sleep(0.01)
        carrier.send(b"1")
threading.Thread(target=answer, daemon=True).start()
def ask():
    answers.send(b"?")
    select.select([answers], [], [], 5)
    return answers.recv(1)
async def fare():
    await asyncio.sleep(0.001)
    return ask()
async def main():
    await asyncio.gather(*(fare() for _ in range(60)))
asyncio.run(main())
"""


def test_what_a_thread_of_a_server_waits_for_is_no_time_of_a_task(tmp_path: Path) -> None:
    document = ran(tmp_path, BESIDE_SERVER)
    (sampled,) = document.sampled
    waited = {line.line: sum(line.waits.values()) for line in sampled.lines}
    assert waited.get(16, 0.0) > 0.4  # 60 answers of 10 ms
    assert waited.get(22, 0.0) < 0.2  # the task that waits for all others

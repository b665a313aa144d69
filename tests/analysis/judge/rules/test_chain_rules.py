"""What a library does below a place: small programs that are sampled and counted, with each finding and without it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules.spot_chains import spinning
from profkit.analysis.stacks.source import line_code
from profkit.backends.source_lines import with_source
from profkit.core.types import (
    CodeLine,
    CodeSpot,
    Hotspot,
    Insight,
    LineSamples,
    Place,
    Profile,
    RunDocument,
    SampledTime,
    Variable,
)
from profkit.profilers.cprofile import read_cprofile
from profkit.profilers.host.stacks import read_stacks
from profkit.runtime.passes.command import START_FOLDER
from tests import documents


def ran(folder: Path, code: str) -> RunDocument:
    """The document of a program: its stacks, then its calls, each of one run."""
    program = folder / "work.py"
    program.write_text(textwrap.dedent(code))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROFKIT"))}
    sampled = env | {"PYTHONPATH": str(START_FOLDER), "PROFKIT_STACKS": str(folder / "stacks.jsonl")}
    counted = [sys.executable, "-m", "cProfile", "-o", "calls.prof", str(program)]
    for words, more in (([sys.executable, str(program)], sampled), (counted, env)):
        subprocess.run(words, cwd=folder, env=more, check=True, capture_output=True, timeout=60)
    stacks, calls = read_stacks(folder / "stacks.jsonl"), read_cprofile(folder / "calls.prof")
    document = documents.empty()
    lines = with_source(stacks, replace(document.workload, folder=str(folder)))
    assert lines is not None
    document = replace(document, sampled=(lines,), profiles=(*stacks.profiles, *calls.profiles))
    return replace(document, hot_spots=hot_spots(document))


def findings(folder: Path, code: str) -> dict[str, Insight]:
    return {one.rule: one for one in find_insights(ran(folder, code)) if one.rule != "hot-spot"}


# ---------------------------------------------------------------- the same again

ROUTES = """
import re
re._MAXCACHE = re._MAXCACHE2 = 30  # of 512: the same with fewer patterns
paths = [f"/shop/{n}/item" for n in range(300)]
for round in range(%s):
    for n in range(%s):
        [re.match(rf"/(shop|cart)/{n}%s/(\\w+)", path) for path in paths[:%s]]
"""
NETWORKS = """
from ipaddress import ip_address, ip_network
names = [f"10.{n // 250}.{n %% 250}.0/24" for n in range(%s)]
for n in range(%s):
    [ip_network(name) for name in names]
"""
FOLDERS = """
import os, tempfile
with tempfile.TemporaryDirectory() as root:
    inner = os.path.join(root, "a", "b", "c", "d")
    os.makedirs(inner)
    for n in range(20_000):
        os.path.realpath(os.path.join(inner, str(n %% %s)))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        (
            ROUTES % (480, 35, "", 1),
            7,
            "Regular expressions are compiled again and again from the same text: 16,8",
        ),
        (NETWORKS % (30, 6000), 5, "Networks are parsed again and again from the same text: 180,000 times"),
        (FOLDERS % 40, 7, "Paths are resolved again and again from the same text: 20,0"),
    ],
)
def test_what_a_library_computes_again_from_the_same_arguments_is_said(
    tmp_path: Path, code: str, line: int, said: str
) -> None:
    found = findings(tmp_path, code)["repeated-work"]
    assert found.where.line == line
    assert found.title.startswith(said)
    assert found.gain is not None
    assert found.gain.at_most > 0.3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "code",
    [
        ROUTES % (8, 20, "", 300),  # re finds each of the twenty in its cache
        ROUTES % (40, 60, "{round}", 1),  # each pattern is another one
        NETWORKS % (30_000, 1),  # each network as well
        FOLDERS % 9000,
    ],
)
def test_what_is_computed_once_for_each_argument_is_not_said_to_be_repeated(
    tmp_path: Path, code: str
) -> None:
    assert "repeated-work" not in findings(tmp_path, code)


# ---------------------------------------------------------------- all tasks that are left

BY_HAND = """
import asyncio
async def work(gate):
    async with gate:
        await asyncio.sleep(0)
async def main():
    gate = asyncio.Semaphore(2)
    left = {asyncio.create_task(work(gate)) for n in range(1300)}
    while left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
asyncio.run(main())
"""
LOOKED_AT = """
import asyncio
async def main():
    end = asyncio.Event()
    left = {asyncio.create_task(end.wait()) for n in range(800)}
    for round in range(400):
        done, left = await asyncio.wait(left, timeout=0)
    end.set()
asyncio.run(main())
"""
BATCHES = """
import asyncio
async def work():
    await asyncio.sleep(0)
async def main():
    for batch in range(100):
        await asyncio.wait([asyncio.create_task(work()) for n in range(100)])
asyncio.run(main())
"""
COMPLETED = """
import asyncio
async def work(gate):
    async with gate:
        await asyncio.sleep(0)
async def main():
    gate = asyncio.Semaphore(2)
    for task in asyncio.as_completed([asyncio.create_task(work(gate)) for n in range(3000)]):
        await task
asyncio.run(main())
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "line"), [(BY_HAND, 10), (LOOKED_AT, 7), (BATCHES, None), (COMPLETED, None)]
)
def test_asyncio_wait_over_tasks_that_are_left_each_time_is_said_and_over_new_ones_is_not(
    tmp_path: Path, code: str, line: int | None
) -> None:
    found = findings(tmp_path, code).get("waits-for-all")
    assert (found.where.line if found is not None else None) == line


# ---------------------------------------------------------------- made for nothing

LEVELS = """
import json, logging
logging.basicConfig(level=logging.%s)
log = logging.getLogger("shop")
def shown(orders):
    return ", ".join(f"{key}={value}" for key, value in sorted(orders.items()))
orders = {f"order{n}": n for n in range(300)}
for n in range(2000):
    %s
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("level", "line", "said"),
    [
        ("WARNING", 'log.debug("%s", shown(orders))', 9),  # the time is in the function that it calls
        ("WARNING", 'log.info(f"now {json.dumps(orders)}")', 9),
        ("WARNING", 'log.info(f"now {orders}")', 9),  # a text has no call that could be counted
        ("WARNING", 'log.info("now %s" % orders)', 9),
        ("WARNING", 'log.isEnabledFor(20) and log.info(f"now {orders}") or orders.copy()', None),
        ("INFO", 'log.info(f"now {orders}")', None),
        ("WARNING", 'log.info("%s", orders)', None),  # made where it is written
        ("WARNING", 'log.isEnabledFor(10) and log.debug("%s", shown(orders)) or orders.copy()', None),
        ("DEBUG", 'log.debug("%s", shown(orders))', None),
        ("WARNING", 'log.debug("%s", shown(orders) if n % 4 == 0 else n); shown(orders)', None),
    ],
)
def test_what_is_made_for_a_message_that_nobody_writes_is_said(
    tmp_path: Path, level: str, line: str, said: int | None
) -> None:
    found = findings(tmp_path, LEVELS % (level, line)).get("dropped-messages")
    assert (found.where.line if found is not None else None) == said


# ---------------------------------------------------------------- statements of a database within the process

DATABASE = """
import sqlite3
db = sqlite3.connect(":memory:")
db.executescript('''
    CREATE TABLE parcel (id INTEGER PRIMARY KEY, street TEXT, weight INTEGER);
    CREATE TABLE scan (parcel INTEGER REFERENCES parcel(id) ON DELETE CASCADE);
    PRAGMA foreign_keys = ON;
''')
db.executemany("INSERT INTO parcel VALUES (?, ?, 1)", [(n, f"street {n %% 500}") for n in range(40000)])
db.executemany("INSERT INTO scan VALUES (?)", [(n,) for n in range(40000)])
%s
for n in range(%s):
    db.execute(%s)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("index", "count", "statement", "said"),
    [
        ("", 300, '"SELECT sum(weight) FROM parcel WHERE street = ?", (f"street {n}",)', True),
        ("", 300, '"DELETE FROM parcel WHERE id = ?", (n,)', True),
        (
            "db.execute('CREATE INDEX i ON scan(parcel)')",
            9000,
            '"DELETE FROM parcel WHERE id = ?", (n,)',
            False,
        ),
        ("", 60_000, '"SELECT weight FROM parcel WHERE id = ?", (n % 12000,)', False),
    ],
)
def test_statements_that_look_through_rows_are_told_from_those_that_find_one(
    tmp_path: Path, index: str, count: int, statement: str, said: bool
) -> None:
    assert ("slow-statements" in findings(tmp_path, DATABASE % (index, count, statement))) == said


@pytest.mark.thorough
def test_a_condition_for_which_no_index_is_used_is_named(tmp_path: Path) -> None:
    statement = "\"SELECT sum(weight) FROM parcel WHERE street LIKE '%9'\""
    found = findings(tmp_path, DATABASE % ("", 300, statement))
    assert found["slow-statements"].title.startswith("`LIKE '%` uses no index: each of 300 statements")


# ---------------------------------------------------------------- asking without a pause

WORKER = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
stop, told = threading.Event(), {"done": False}
def work():
    total = 0
    for n in range(%s):
        total += n * n
    told["done"] = True
    stop.set()
    return total
%s
"""
ASKS = """
def follow():
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        pass
follow()
"""
READS = """
def follow():
    threading.Thread(target=work).start()
    while not told["done"]:
        pass
follow()
"""
SLEEPS = """
def follow():
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
follow()
"""
COUNTS = """
def follow():
    threading.Thread(target=work).start()
    rounds = 0
    while not stop.is_set():
        rounds += len(str(rounds))
follow()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("code", "said"), [(ASKS, True), (READS, True), (SLEEPS, False), (COUNTS, False)])
def test_a_loop_that_only_asks_another_thread_is_said_and_one_that_works_or_sleeps_is_not(
    tmp_path: Path, code: str, said: bool
) -> None:
    assert ("spinning" in findings(tmp_path, WORKER % (3_000_000, code))) == said


def test_a_loop_that_was_never_seen_to_run_is_not_said_to_spin() -> None:
    code = line_code("def follow(thread):\n    while thread.is_alive():\n        pass\n", 3)
    spot = CodeSpot(0.9, 0.9, "python", Place(function="follow", file="/app/work.py", line=3), code=code)
    threads = Profile("", "s", 1.0, (Hotspot("main", 0.5), Hotspot("worker", 0.5)), "sampled-threads")
    asked = Hotspot("follow", 0.5, 0.5, 90_000, "/app/work.py", 1)
    counted = Profile("", "s", 1.0, (asked,), "own-time")
    asks = replace(asked, callee=CodeLine("is_alive", "/lib/python3.11/threading.py", 1, 0.0))
    calls = Profile("", "s", 1.0, (asks,), "program-calls")

    def said(processor_time: float) -> bool:
        line = LineSamples("follow", "/app/work.py", 3, main_wall=0.9, main_cpu=0.9 * processor_time)
        sampled = SampledTime(1.0, processor_time, lines=(line,))
        document = replace(documents.empty(), sampled=(sampled,), profiles=(threads, counted, calls))
        return spinning(document, spot) is not None

    assert said(1.0)
    assert not said(0.0)  # a clock that does not tell the threads' time


def test_a_loop_whose_questions_are_counted_to_another_threads_function_is_said_to_spin() -> None:
    code = line_code("def follow(thread):\n    while thread.is_alive():\n        pass\n", 3)
    spot = CodeSpot(0.9, 0.9, "python", Place(function="follow", file="/app/work.py", line=3), code=code)
    threads = Profile("", "s", 1.0, (Hotspot("main", 0.5), Hotspot("worker", 0.5)), "sampled-threads")
    sampled = SampledTime(1.0, 1.0, lines=(LineSamples("follow", "/app/work.py", 3, 0.5, 0.5),))

    def said(questions: int) -> bool:
        # as cProfile of Python 3.12 writes it: `follow` called once, for no time, and is_alive by the worker
        follow = Hotspot("follow", 0.0, 0.0, 1, "/app/work.py", 1)
        alive = Hotspot("is_alive", 0.4, 0.45, questions, "/lib/python3.12/threading.py", 1)
        counted = Profile("", "s", 1.0, (alive, follow), "own-time")
        calls = Profile("", "s", 1.0, (), "program-calls")
        document = replace(documents.empty(), sampled=(sampled,), profiles=(threads, counted, calls))
        return spinning(document, spot) is not None

    assert said(90_000)
    assert not said(4_000)  # more than 0.1 ms for each: what it asks may take that long


@pytest.mark.parametrize(("shown", "said"), [(0.01, True), (0.2, False)])
def test_a_thread_that_watches_without_a_pause_is_said_to_spin_without_counts(
    shown: float, said: bool
) -> None:
    text = (
        "def watch(job):\n    seen = 0\n    while not job.is_set():\n        if job.completed != seen:\n"
        "            seen = show(job)\n"
    )
    asks, shows = line_code(text, 3), line_code(text, 5)
    spot = CodeSpot(0.5, 0.5, "python", Place(function="watch", file="/app/work.py", line=3), code=asks)
    threads = Profile("", "s", 1.0, (Hotspot("main", 0.5), Hotspot("watch", 0.5)), "sampled-threads")
    lines = (
        LineSamples("watch", "/app/work.py", 3, other_cpu=0.5 - shown, code=asks),
        LineSamples("watch", "/app/work.py", 5, other_cpu=shown, code=shows),
    )
    sampled = SampledTime(1.0, 1.0, lines=lines)
    document = replace(documents.empty(), sampled=(sampled,), profiles=(threads,))
    assert (spinning(document, spot) is not None) == said


# ---------------------------------------------------------------- libraries that are not installed with profkit

PANDAS = "/venv/lib/python3.11/site-packages/pandas/core/indexes/base.py"


def placed(
    text: str, number: int, variables: dict[str, Variable], profile: Profile, *below: CodeLine
) -> set[str]:
    """The rules that are said of a line with nine tenths of a second of one."""
    code = line_code(textwrap.dedent(text), number)
    line = LineSamples("work", "/app/work.py", number, 0.9, 0.9, below=below, variables=variables, code=code)
    sampled = SampledTime(1.0, 1.0, rest_wall=0.1, lines=(line,))
    document = replace(documents.empty(), sampled=(sampled,), profiles=(profile,))
    document = replace(document, hot_spots=hot_spots(document))
    return {one.rule for one in find_insights(document)} - {"hot-spot"}


FRAME, SERIES, MANY = Variable("pandas.DataFrame"), Variable("pandas.Series"), Variable("list", 900)


@pytest.mark.parametrize(
    ("text", "held", "function", "calls", "seconds", "said"),
    [
        ("rows = book.loc[[client]]", {"book": FRAME}, "get_indexer_non_unique", 900, 4.0, True),
        ("price = prices.loc[name]", {"prices": SERIES, "name": Variable("str", 4)}, "get_loc", 5000, 6.0, True),
        ("row = table.loc[day, 'open']", {"table": FRAME}, "get_loc", 400, 0.8, True),
        # sorted labels
        ("rows = book.loc[[client]]", {"book": FRAME}, "get_indexer_non_unique", 900, 0.18, False),
        ("rows = book.loc[names]", {"book": FRAME, "names": MANY}, "get_indexer_non_unique", 200, 4.0, False),
        ("rows = book.loc[[*clients]]", {"book": FRAME}, "get_indexer_non_unique", 200, 4.0, False),
        ("rows = book.loc[[client]]", {"book": FRAME}, "get_indexer_non_unique", 3, 4.0, False),
        ("rows = book.loc[[client]]", {}, "get_indexer_non_unique", 900, 4.0, False),
    ],
)  # fmt: skip
def test_labels_of_an_unsorted_index_are_said_where_each_look_up_takes_long(
    text: str, held: dict[str, Variable], function: str, calls: int, seconds: float, said: bool
) -> None:
    counted = Hotspot(function, seconds, seconds, calls, PANDAS, 6386, "pandas")
    profile = Profile("", "s", 10.0, (counted,), "own-time")
    below = CodeLine(f"Index.{function}", PANDAS, 6386, 0.5)
    assert ("unsorted-labels" in placed(text, 1, held, profile, below)) == said
    few = replace(below, value=0.1)  # of 0.9 s
    assert "unsorted-labels" not in placed(text, 1, held, profile, few)


ARRAYS = {name: Variable("numpy.ndarray") for name in ("dist", "gap", "x")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("strength = qq / dist ** 3", True),
        ("fall = np.power(gap, -1.5)", True),
        ("wave = (gap - 0.5) ** 4", True),
        ("area = dist ** 2", False),  # numpy multiplies
        ("root = dist ** 0.5", False),
        ("bright = x ** 2.2", False),  # nothing is faster
        ("size = edge ** 3", False),  # no array
    ],
)
def test_a_power_of_an_array_that_is_few_multiplications_is_said_where_the_samples_are_in_it(
    text: str, said: bool
) -> None:
    text = f"import numpy as np\n{text}\n"
    functions = (Hotspot("__ieee754_pow_fma", 0.4, 0.4), Hotspot("DOUBLE_multiply", 0.6, 0.6))
    profile = Profile("", "s", 1.0, functions, "functions")
    assert ("general-power" in placed(text, 2, ARRAYS, profile)) == said
    elsewhere = replace(profile, hotspots=functions[1:])
    assert "general-power" not in placed(text, 2, ARRAYS, elsewhere)


def test_a_power_of_a_truth_value_is_no_number() -> None:
    code = line_code("def f(x):\n    return x ** True\n", 2)
    assert code is None or code.find("power") == ()


@pytest.mark.thorough
def test_what_a_message_is_made_of_by_a_library_and_by_the_program_adds_up(tmp_path: Path) -> None:
    document = ran(tmp_path, LEVELS % ("WARNING", 'log.debug("%s %s", shown(orders), json.dumps(orders))'))
    (found,) = [one for one in find_insights(document) if one.rule == "dropped-messages"]
    parts = [spot.share for spot in document.hot_spots if spot.kind in ("python", "library")]
    assert found.gain is not None
    assert found.gain.at_most > 0.85 * sum(parts) > max(parts)  # neither part alone


def test_a_line_that_explains_the_places_below_it_comes_in_their_place_and_once(tmp_path: Path) -> None:
    document = ran(tmp_path, LEVELS % ("WARNING", 'log.debug("%s", shown(orders))'))
    found = [one for one in find_insights(document) if one.gain is not None and one.gain.at_most >= 0.1]
    assert [(one.rule, one.where.line) for one in found] == [("dropped-messages", 9)]
    profiles = tuple(replace(profile, partial=True) for profile in document.profiles)
    counted_in_part = replace(document, profiles=profiles)
    part = next(one for one in find_insights(counted_in_part) if one.rule == found[0].rule)
    assert "is made at least " in part.title
    assert "is made at least " not in found[0].title
    assert document.hot_spots[0].where.function == "shown"  # the row stays where the samples are
    shares = [min(1.0, 1.3 * spot.share) for spot in document.hot_spots]  # some samples of it have no caller
    spots = tuple(replace(one, share=share) for one, share in zip(document.hot_spots, shares, strict=True))
    again = [one for one in find_insights(replace(document, hot_spots=spots)) if one.rule != "import"]
    assert (again[0].rule, again[0].where.line) == ("dropped-messages", 9)


# ---------------------------------------------------------------- what stays is gone through for each item

PEOPLE = """
class Person:
    def __init__(self, number):
        self.number, self.name = number, str(number)
people = [Person(n) for n in range(800)]
wanted = [Person(n * 7 % 800) for n in range(40_000)]
"""
BY_PARAMETER = """
def find(all, number):
    for one in all:
        if one.number == number:
            return one
def main(people):
    for one in wanted:
        find(people, one.number)
main(people)
"""
BY_METHOD = """
class Book:
    def __init__(self, all):
        self.all = all
    def name(self, number):
        return next((one.name for one in self.all if one.number == number), "")
def main():
    book = Book(people)
    for one in wanted:
        book.name(one.number)
main()
"""
BY_COMPARISON = """
class Key:
    def __init__(self, number):
        self.number = number
    def __eq__(self, other):
        return self.number == other.number
keys = [Key(n) for n in range(800)]
class Store:
    def __init__(self):
        self.keys = list(keys)
    def place(self, key):
        return self.keys.index(key)
def main():
    store = Store()
    for n in range(4000):
        store.place(Key(n % 800))
main()
"""
BY_DICT = """
def main():
    by_number = {one.number: one for one in people}
    names = []
    for n in range(200):
        for one in wanted:
            names.append(by_number[one.number].name)
main()
"""
OF_EACH = """
def first(lines, kind):
    for line in lines:
        if line == kind:
            return line
def main():
    for n in range(6000):
        lines = [str(n + k) for k in range(300)]
        first(lines, str(n + 299))
main()
"""
FEW = """
shelf = [Person(n) for n in range(5)]
def place(number):
    for one in shelf:
        if one.number == number:
            return one
def main():
    for n in range(600_000):
        place(n % 5)
main()
"""
TREE = """
import xml.etree.ElementTree as tree
text = "<all>" + "".join(f"<one id='{n}'><name>{n}</name></one>" for n in range(800)) + "</all>"
root = tree.fromstring(text)
def name(number):
    return root.find(f"one[@id='{number}']")
for n in range(4000):
    name(n % 800)
"""
TREE_OF_EACH = """
import xml.etree.ElementTree as tree
text = "<all>" + "".join(f"<one><name>{n}</name><kind>{n}</kind></one>" for n in range(3000)) + "</all>"
root = tree.fromstring(text)
def read(one, fields):
    return [one.findtext(field) for field in fields]
for n in range(60):
    for one in root:
        read(one, ("name", "kind"))
"""
SORTED = """
class Board:
    def __init__(self):
        self.all = []
    def add(self, points):
        self.all.append(points)
        self.all.sort(key=lambda one: -one)
        return self.all[0]
board = Board()
for n in range(3000):
    board.add(n * 7919 % 3001)
"""
SORTED_ANEW = """
class Board:
    def __init__(self):
        self.all = []
    def add(self, points):
        self.all = [(points * k) % 3001 for k in range(400)]
        self.all.sort(key=lambda one: -one)
        return self.all[0]
board = Board()
for n in range(3000):
    board.add(n)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "rule", "lines"),
    [
        (PEOPLE + BY_PARAMETER, "linear-search", (9, 10)),
        (PEOPLE + BY_METHOD, "linear-search", (12,)),
        (BY_COMPARISON, "linear-search", (12,)),
        (PEOPLE + BY_DICT, "linear-search", None),
        (OF_EACH, "linear-search", None),
        (PEOPLE + FEW, "linear-search", None),
        (TREE, "linear-search", (6,)),
        (TREE_OF_EACH, "linear-search", None),
        (SORTED, "repeated-sort", (7,)),
        (SORTED_ANEW, "repeated-sort", None),
    ],
)
def test_what_stays_and_is_gone_through_for_each_item_is_said(
    tmp_path: Path, code: str, rule: str, lines: tuple[int, ...] | None
) -> None:
    found = findings(tmp_path, code).get(rule)
    assert (found is None) if lines is None else (found is not None and found.where.line in lines)


TAKES = """
import queue, threading
done = queue.Queue()
def work():
    for n in range(1000):
        sum(k * k for k in range(12_000))
        done.put(n)
def collect():
    left = 1000
    while left:
        try:
            number = done.get_nowait()
        except queue.Empty:
            continue
        left -= 1
threads = [threading.Thread(target=one) for one in (work, collect)]
[one.start() for one in threads]
[one.join() for one in threads]
"""
FULL = """
import queue, threading
done = queue.Queue()
for n in range(1_600_000):
    done.put(n)
def work():
    for n in range(600):
        sum(k * k for k in range(12_000))
def collect():
    left = 1_600_000
    while left:
        try:
            number = done.get_nowait()
        except queue.Empty:
            continue
        left -= 1
threads = [threading.Thread(target=one) for one in (work, collect)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


LOOKS_FOR_THE_END = TAKES.replace(
    "            continue", "            if not left:\n                return\n            continue"
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (TAKES, True),
        (LOOKS_FOR_THE_END, True),
        (FULL, False),
        (TAKES.replace("get_nowait()", "get(timeout=1)"), False),
    ],
)
def test_a_thread_that_asks_an_empty_queue_again_and_again_is_said(
    tmp_path: Path, code: str, said: bool
) -> None:
    found = findings(tmp_path, code)
    assert ("spinning" in found) == said
    assert "interpreter-lock" not in found


# ---------------------------------------------------------------- generators within generators

TREE = """
import time
class Post:
    def __init__(self): self.replies = []
    def walk(self):
        yield self
        for reply in self.replies:
            %s
    def stacked(self):
        stack = [self]
        while stack:
            post = stack.pop()
            yield post
            stack.extend(post.replies)
posts = [Post() for _ in range(400)]
%s
until = time.perf_counter() + 0.8
while time.perf_counter() < until:
    total = sum(1 for post in posts[0].%s())
"""
CHAIN = "for parent, child in zip(posts, posts[1:]): parent.replies.append(child)"
BALANCED = "for n in range(1, 400): posts[(n - 1) // 3].replies.append(posts[n])"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "shape", "walk", "said"),
    [
        ("yield from reply.walk()", CHAIN, "walk", True),
        ("yield from reply.walk()", BALANCED, "walk", False),
        ("yield from reply.walk()", CHAIN, "stacked", False),
    ],
)
def test_a_generator_that_yields_from_itself_is_said_where_it_is_deep(
    text: str, shape: str, walk: str, said: bool, tmp_path: Path
) -> None:
    found = findings(tmp_path, TREE % (text, shape, walk)).get("nested-generators")
    assert (found is not None) == said
    assert found is None or found.where.line == 8


STARVED = """
import threading
from collections import deque
jobs, ended = deque(), threading.Event()
def upload():
    while True:
        try:
            job = jobs.popleft()
        except IndexError:
            if ended.is_set():
                return
            continue
threads = [threading.Thread(target=upload) for _ in range(3)]
[one.start() for one in threads]
for n in range(1500):
    total = sum(k * k for k in range(12_000))
    jobs.append(total)
ended.set()
[one.join() for one in threads]
"""


@pytest.mark.thorough
def test_threads_that_ask_an_empty_deque_cost_the_time_in_which_the_main_thread_could_not_run(
    tmp_path: Path,
) -> None:
    """Their own lines are a small part of the main thread's time, which is what a run's time is."""
    found = findings(tmp_path, STARVED)["spinning"]
    assert found.gain is not None
    assert found.gain.at_most > 0.3

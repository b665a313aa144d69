"""Insights on places that ask for one thing at a time: queries and requests for each item, reads of a few bytes."""

from __future__ import annotations

import re

from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rules.counted import last_name, profile_of, with_slashes
from profkit.analysis.judge.rules.spot_loops import LONG_STATEMENT, unindexed_look_up
from profkit.analysis.judge.rules.spots import MIN_CALLS, called_names, calls_text, count_text, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity
from profkit.core.types import CodeSpot, Insight, RunDocument

MIN_SHARE = 0.5  # of the time in one line
FEW_BYTES = 16  # of a read: a file without a buffer is read line by line
_OF_DATABASE = re.compile(r"(execute|fetch|scal).*")
_QUERIES = re.compile(
    r"(.*\.)?(execute|executemany|fetchone|fetchall|fetchmany|scalar|scalars|urlopen|request|open|connect|stat|listdir)"
)
# In a database within the process, the overhead of a statement is some 20 µs. A statement that takes much longer goes
# through rows, and does not become faster if many statements are joined into one.
_EMBEDDED = re.compile(r"<method 'execute\w*' of '_?(sqlite3|duckdb)\..*")
_PAGES = re.compile(r"\bOFFSET\b(?!\s*0\b)")  # the keyword of SQL; in lower case it may be a name
# If a good part of a statement's time is spent on building its SQL, that should be changed first.
_WRITES_SQL, WRITING = re.compile(r"/sqlalchemy/sql/compiler\.py$"), 0.4
_TRANSFERS = ("read", "write", "recv", "send", "readline", "flush")


def _seconds_of_embedded(document: RunDocument, spot: CodeSpot) -> float | None:
    """Return how long a statement of a place takes in a database within the process; None if it is not in one.

    It is known by cProfile, whose time counts where the samples have only a part of the calls.
    """
    profile = profile_of(document, "program-calls")
    timed = [
        row
        for row in (profile.hotspots if profile is not None else ())
        if row.file == spot.where.file and row.callee is not None and row.calls
        if row.function == (spot.where.function or "").rpartition(".")[2]
        and _EMBEDDED.fullmatch(row.callee.function)
    ]
    if not timed:
        return None
    sampled = spot.under.seconds_per_call if spot.under is not None else None
    return sampled or sum(row.own for row in timed) / sum(row.calls or 0 for row in timed)


def _writes_sql(spot: CodeSpot) -> bool:
    """Return whether building the SQL of a statement takes a good part of its time, each time."""
    found = [frame.value for frame in spot.below if _WRITES_SQL.search(with_slashes(frame.file))]
    return max(found, default=0.0) >= WRITING


def calls_in_loop(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a query, a request or a file for each item: many calls, each short."""
    under = spot.under
    calls = (under.calls if under is not None else None) or spot.calls or 0
    names = called_names(spot)
    name = under.name if under is not None and under.name else next(iter(names), "")
    query = next((each_name for each_name in (name, *names) if _QUERIES.fullmatch(each_name)), None)
    if query is not None and last_name(query) != last_name(name):
        # The counted function does not query itself; it is called by the one that does.
        in_loop = spot.code is not None and spot.code.loop is not None
        calls = min(calls, spot.executions or (None if in_loop else spot.calls) or calls)
        if spot.code is not None and re.match(
            rf"(?:async )?for\b.*\bin\b.*{last_name(query)}\(", spot.code.text
        ):
            calls = (
                spot.executions or 0
            )  # asked once for all that the loop goes through; what makes an item is counted
    if query is None or calls < MIN_CALLS or _writes_sql(spot):
        return None
    if under is None and "." not in query and spot.kind == "python":
        return (
            None  # a function of the program with such a name, below which nothing else was seen: it computes
        )
    if last_name(query) == "open" and _differs(spot, "open"):
        return None  # files that are all different: each has to be opened
    if _asks_others_the_same(spot, last_name(query)):
        return None
    loop = f"; called from {spot.caller}" if spot.caller else ""
    each = _seconds_of_embedded(document, spot)
    computes = spot.kind in ("python", "library")
    if computes and (unindexed := unindexed_look_up(spot, calls)) is not None:
        return unindexed
    if each is not None and each >= LONG_STATEMENT and computes:
        if spot.code is not None and _PAGES.search(f"{spot.code.text}\n{spot.code.statement}"):
            return say(
                spot,
                "slow-statements",
                f"OFFSET reads all rows before the page again, {count_text(calls)} times",
                f"{calls_text(spot)}{loop}",
                change=words("slow-statements.offset", "host"),
            )
        return say(
            spot,
            "slow-statements",
            f"Each of {count_text(calls)} statements scans many rows: {format_quantity(each, 's')} each",
            f"{calls_text(spot)}; with an index, finding a row takes about 20 µs{loop}",
        )
    last = last_name(query)
    same = (
        last == "open"
        and any(last_name(construct.name) == last and construct.how for construct in spot.code.find("call"))
        if spot.code
        else False
    )
    queries = _OF_DATABASE.fullmatch(last) is not None
    return say(
        spot,
        "calls-in-loop",
        f"{place_name(spot.where)} opens the same file {count_text(calls)} times"
        if same
        else f"{place_name(spot.where)} calls {query.lstrip('.')} {count_text(calls)} times, once for each item",
        f"{calls_text(spot)}{loop}",
        spot.share * (1 - 1 / calls),
        change=words(f"calls-in-loop{'.file' if same else '.queries' if queries else ''}", "host"),
    )


def _asks_others_the_same(spot: CodeSpot, name: str) -> bool:
    """Return whether a line asks what differs with the item the same question: each is a database of its own."""
    text = spot.code.text if spot.code is not None else ""
    constant = re.search(rf"\.{name}\(\s*([\"'])[^\"']*\1\s*\)", text)
    return constant is not None and _differs(spot, name)


def _differs(spot: CodeSpot, name: str) -> bool:
    """Return whether a call of a line gets what changes with the item of the loop around it."""
    varies = spot.code.find("varies") if spot.code is not None else ()
    return any(last_name(each.name) == name and each.how == "item" for each in varies)


def _reads_lines(spot: CodeSpot) -> bool:
    """Return whether most of the time is in going through something that is no container: `for line in
    process.stdout`.
    """
    names = [construct.name for construct in spot.code.find("iterates")] if spot.code is not None else []
    return spot.share >= MIN_SHARE and any(name not in spot.variables for name in names)


def small_transfers(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find reads and writes of a few bytes, each of which enters the kernel."""
    split = document.time_split
    names = {name.rpartition(".")[2] for name in called_names(spot)}
    if split is None or not split.io_calls:
        return None
    each = ((split.read or 0.0) + (split.written or 0.0)) / split.io_calls
    prints = spot.code is not None and bool(spot.code.find("flushes"))
    if names.isdisjoint(_TRANSFERS) and not prints and not (_reads_lines(spot) and each <= FEW_BYTES):
        return None
    if _is_of_a_file_each(spot):
        return None
    if split.io_calls < 20_000 * max(split.wall, 0.1) or each > 1024:
        return None
    return say(
        spot,
        "small-transfers",
        "Read and write larger blocks",
        f"{count_text(split.io_calls)} reads and writes of {format_quantity(each, 'B')} each",
        change=words(f"small-transfers{'.flush' if prints else ''}", "host"),
    )


_READS_ALL = re.compile(r"\.(read|readlines|read_text|read_bytes)\(\s*\)")


def _is_of_a_file_each(spot: CodeSpot) -> bool:
    """Return whether a line reads all of a file, or writes one that a block in the loop around opened for it alone."""
    code = spot.code
    if code is None:
        return False
    names = {last_name(name) for name in called_names(spot)}
    opened = [each for each in code.find("within") if not each.name and each.how.isdigit()]
    inside = code.loop is not None and any(int(each.how) > code.loop for each in opened)
    return _READS_ALL.search(code.text) is not None or ("write" in names and inside)


PATTERNS = (small_transfers, calls_in_loop)

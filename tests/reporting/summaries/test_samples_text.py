"""The summary of sampled Python stacks."""

from __future__ import annotations

from profkit.core.types import CodeLine, Hotspot, Profile
from profkit.profilers.stacks import read_stacks
from tests.conftest import ROOT
from tests.documents import reading
from tests.reporting.shown import concern_text


def test_a_function_stands_at_its_hottest_line_with_its_caller_and_the_calls_that_cprofile_counted() -> None:
    profiles = read_stacks(ROOT / "tests" / "data" / "stacks" / "pool.jsonl").profiles
    counted = Profile(
        "", "s", 1.0, (Hotspot("collatz", 0.5, 0.5, 59_999, "/folder-1/collatz.py", 7),), "own-time"
    )
    summary = concern_text("python", reading("time.python", 1.0, "s"), profiles=(*profiles, counted))
    assert summary.headline.startswith("collatz collatz.py:9 takes 49")
    functions, lines, imports, threads = summary.tables
    assert functions.rows[0][0] == "collatz collatz.py:9"
    assert functions.rows[0][3:] == ("60.0 k", "mapstar pool.py:48")
    assert [row[0] for row in lines.rows][:2] == ["collatz collatz.py:9", "dump collatz.py:16"]
    assert imports.rows[0][0] == "multiprocessing"
    assert threads.rows[0][:2] == ("collatz.py: main", "2")


def test_a_program_that_only_imports_says_so() -> None:
    importing = Hotspot("torch", 1.0, 6.4, callers=(CodeLine("<module>", "/app.py", 1, 6.4),))
    profiles = (
        Profile("", "s", 2.1, (), "sampled-functions"),
        Profile("", "s", 6.4, (importing,), "sampled-imports"),
    )
    summary = concern_text("python", reading("time.python", 0.0, "s"), profiles=profiles)
    assert summary.headline == "No function of Python ran for as long as a sample; imports take 6.40 s."
    assert [table.rows[0][-1] for table in summary.tables] == ["<module> app.py:1"]

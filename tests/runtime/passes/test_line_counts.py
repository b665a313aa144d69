"""Executions of lines are counted whole or not at all, and the program does what it does alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from profkit.core.types import ArrayForm, LineCount
from profkit.profilers.cprofile import is_partial, read_pass_notes
from profkit.profilers.host.line_counts import read_line_counts
from profkit.runtime.passes.command import HOST_PROGRAM
from profkit.runtime.passes.host import line_counts
from profkit.runtime.passes.read import read_raises
from tests.conftest import ROOT

PLAIN: dict[str, object] = {"each": True, "names": [], "loop": False}
ROW_OF = {"file": "work.py", "line": 1, "function": "f", **PLAIN}
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


def counted(
    folder: Path, code: str, lines: dict[str, dict[str, object]], longest: float | None = None
) -> tuple[str, dict[str, LineCount], list[str]]:
    """What a program prints, the counts by the marks (`# a`) of its lines, and the codes of notes."""
    text = textwrap.dedent(code)
    (folder / "work.py").write_text(text)
    wanted = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.rpartition("# ")[2] if "# " in line else ""
        if mark in lines:
            row = {"file": str(folder / "work.py"), "line": number, "function": "f", **PLAIN}
            wanted.append((mark, {**row, **lines[mark]}))
    directive = {"pass_name": "cprofile", "record": str(folder / "r"), "lines": [row for _, row in wanted]}
    directive |= {"longest": longest} if longest is not None else {}
    done = subprocess.run(
        [sys.executable, str(HOST_PROGRAM), "cprofile", str(folder / "out.prof"), "--", str(folder / "work.py")],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**ENV, "PROFKIT_DIRECTIVE": json.dumps(directive), "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    by_line = {one.line: one for one in read_line_counts(folder / "out.lines.json")}
    notes = [one.code for one in read_pass_notes(folder / "out.lines.json")]
    return done.stdout, {mark: by_line[row["line"]] for mark, row in wanted if row["line"] in by_line}, notes


def test_executions_are_those_of_the_line_and_not_of_its_function(tmp_path: Path) -> None:
    code = """
        import re
        def f(rows):
            out = []
            for row in rows:
                a = re.sub("a", "b", row)  # a
                if row != "x":
                    a = re.sub("b", "c", a)  # b
                out.append(
                    re.sub(  # c
                        "c",
                        "d", a))
                try:
                    a += "1"
                finally:
                    a += "2"  # d
            if out:
                return out  # e
            return out
        for k in range(20):
            f(["x", "y", "z"])
    """
    plain: dict[str, object] = {}
    lines = {"a": plain, "b": plain, "c": {"each": False}, "d": plain, "e": plain}
    _, counts, notes = counted(tmp_path, code, lines)
    assert {mark: one.executions for mark, one in counts.items()} == {
        "a": 60,
        "b": 40,
        "c": 60,
        "d": 60,
        "e": 20,
    }
    assert notes == []


def test_a_function_and_a_lambda_of_one_line_and_a_generator_are_counted(tmp_path: Path) -> None:
    code = """
        def f(x): return x + 1  # a
        def cell(x): return lambda: x  # b
        def gen(n): yield n  # c
        for k in range(6):
            f(k)
            cell(k)()
            list(gen(k))
        list(map(lambda x: x * 2, range(8)))  # d
    """
    names = {"a": "f", "b": "cell", "c": "gen", "d": "<lambda>"}
    counts = counted(
        tmp_path, code, {mark: {"function": name, "each": mark != "c"} for mark, name in names.items()}
    )[1]
    assert {mark: one.executions for mark, one in counts.items()} == {"a": 6, "b": 6, "c": 6, "d": 8}


def test_a_statement_over_several_lines_is_not_counted_each_time_that_its_line_is_come_to(
    tmp_path: Path,
) -> None:
    code = """
        def g(*numbers): return len(numbers)
        def f():
            return g(  # a
                g(1),
                g(2),
            )
        for k in range(7):
            f()
    """
    first = counted(tmp_path, code, {"a": {"each": False}})[1]
    each = counted(tmp_path, code, {"a": {"each": True}})[1]
    assert first["a"].executions == 7
    assert each["a"].executions == 14  # when it begins, and for the outer call


def test_types_and_shapes_of_arrays_are_seen_and_no_code_of_the_program_runs_for_them(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    code = """
        import numpy as np
        class Loud:
            def __getattribute__(self, name): print("asked", name)
            shape = property(lambda self: print("asked"))
        class Mine(np.ndarray):
            def __getattribute__(self, name):
                print("asked", name)
        class Model:
            def __init__(self): self.w = [np.zeros((4, 2), order="F")]
            def f(self, x, n, mine, loud, given):
                y = x @ self.w[0]  # a
                return y
        for k in range(10):
            given = {"x": np.ones((2, 3), "f4")[:, ::2]}
            Model().f(np.zeros((3 + (k == 9), 4)), 2.5, np.zeros(3).view(Mine), Loud(), given)
    """
    names = [
        ["x"],
        ["self", ".w", "[0]"],
        ["n"],
        ["mine"],
        ["loud"],
        ["given", "['x']"],
        ["none"],
        ["np", ".e"],
    ]
    said, counts, _ = counted(tmp_path, code, {"a": {"names": names}})
    assert said == ""
    assert counts["a"].forms == {
        "x": (ArrayForm("<f8", (3, 4), "C", 8),),
        "self.w[0]": (ArrayForm("<f8", (4, 2), "F", 8),),
        "n": (ArrayForm("float"),),
        "mine": (ArrayForm(""),),
        "loud": (ArrayForm(""),),
        "given['x']": (ArrayForm("<f4", (2, 2), "", 8),),
        "none": (ArrayForm(""),),
        "np.e": (ArrayForm("float"),),
    }
    assert counts["a"].looks == 4  # of ten executions


def test_shapes_that_change_are_all_seen(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    code = """
        import numpy as np
        def f(x):
            return x * 2  # a
        for k in range(200):
            f(np.zeros(4 if k % 2 else 5))
    """
    forms = counted(tmp_path, code, {"a": {"names": [["x"]]}})[1]["a"].forms["x"]
    assert {one.shape for one in forms} == {(4,), (5,)}


def test_iterations_of_a_loop_are_timed_by_eighths_and_a_disturbed_one_changes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = line_counts._Line({**ROW_OF, "loop": True})
    at = [0.0]
    monkeypatch.setattr(line_counts, "perf_counter", lambda: at[0])
    for k in range(81):
        line.count(sys._getframe())
        at[0] += k // 10 + 1 + (100 if k % 10 == 5 else 0)
    assert line.row()[-1] == pytest.approx([1, 2, 3, 4, 5, 6, 7, 8])
    many = line_counts._Line({**ROW_OF, "loop": True})
    for k in range(100_000):
        many.count(sys._getframe())
        at[0] += 1 if k < 50_000 else 3
    assert many.row()[-1] == pytest.approx([1, 1, 1, 1, 3, 3, 3, 3])
    assert len(many.marks) < line_counts.MAX_MARKS
    few = line_counts._Line({**ROW_OF, "loop": True})
    for _ in range(8):
        few.count(sys._getframe())
    assert few.row()[-1] == []


def counter(code: CodeType, lines: dict[int, str]) -> dict[str, Any]:
    """What a counter says that ran over a whole program in this process."""
    rows = [{"file": "work.py", "line": at, "function": name, **PLAIN} for at, name in lines.items()]
    made = line_counts.LineCounter(rows)
    before = sys.gettrace()
    sys.settrace(None)  # that of a coverage tool
    try:
        made.start()
        exec(code, {})
        made.stop()
    finally:
        sys.settrace(before)
    return made.result()


HOT = "def f(n):\n    for k in range(n):\n        k += 1\ndef g(n):\n    f(n)\nfor _ in range(9): g(2000)\n"


def test_lines_that_run_too_often_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_counts, "FREE", 9.0)
    code = compile(HOT, "work.py", "exec")
    cheap = counter(code, {3: "f", 5: "g"})
    assert sorted((row[1], row[3]) for row in cheap["rows"]) == [(3, 18000), (5, 9)]
    monkeypatch.setattr(line_counts, "LINE", 9.0)
    dear = counter(code, {3: "f", 5: "g"})
    codes = [one["code"] for one in dear["notes"]]
    if sys.version_info < (3, 12):  # sys.settrace slows down what it does not ask for, too
        assert (dear["rows"], codes) == ([], ["lines-ended"])
    else:
        assert ([(row[1], row[3]) for row in dear["rows"]], codes) == ([(5, 9)], ["lines-too-often"])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="comprehensions are no functions of their own there")
def test_a_comprehension_at_a_counted_line_ends_it_as_its_lines_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_counts, "FREE", 9.0)
    code = compile(
        "def f(n):\n    return [k for k in range(n)]\nfor _ in range(9): f(2000)\n", "work.py", "exec"
    )
    assert [row[3] for row in counter(code, {2: "f"})["rows"]] == [9]
    monkeypatch.setattr(line_counts, "LINE", 9.0)
    assert counter(code, {2: "f"})["rows"] == []


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is told of each function once")
def test_a_program_that_calls_too_much_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_counts, "FREE", 9.0)
    code = compile(
        "def g(k): return k\ndef f():\n    return sum(map(g, range(5000)))\nf()\n", "work.py", "exec"
    )
    cheap = counter(code, {3: "f"})
    assert ([row[3] for row in cheap["rows"]], cheap["notes"]) == ([1], [])
    monkeypatch.setattr(line_counts, "CALL", 9.0)
    dear = counter(code, {3: "f"})
    assert (dear["rows"], [one["code"] for one in dear["notes"]]) == ([], ["lines-ended"])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is told of each function once")
def test_what_imports_call_does_not_end_the_count_of_what_comes_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many_calls.py").write_text("def g(k): return k\nx = sum(map(g, range(5000)))\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(line_counts, "FREE", 0.003)
    monkeypatch.setattr(line_counts, "MAX_COUNTING_SHARE", 0.0)
    code = compile("import many_calls\ndef f(): pass\nfor k in range(9): f()\n", "work.py", "exec")
    assert [row[3] for row in counter(code, {2: "f"})["rows"]] == [9]
    monkeypatch.delitem(sys.modules, "many_calls")
    monkeypatch.setattr(line_counts, "IMPORTS", 0.003)
    assert [one["code"] for one in counter(code, {2: "f"})["notes"]] == ["lines-ended"]
    monkeypatch.delitem(sys.modules, "many_calls")


def test_a_program_that_traces_itself_gets_all_its_events(tmp_path: Path) -> None:
    code = """
        import sys
        seen = []
        def f():
            a = 1  # a
            return a
        f()
        sys.settrace(lambda frame, event, arg: seen.append(frame.f_code.co_name))
        f()
        print(seen, sys.gettrace() is not None)
    """
    said, counts, notes = counted(tmp_path, code, {"a": {}})
    assert said == "['f'] True\n"
    if sys.version_info < (3, 12):
        assert (counts, notes) == ({}, ["lines-traced-elsewhere"])
    else:
        assert counts["a"].executions == 2


def test_only_the_main_threads_executions_count_and_none_of_a_forked_child(tmp_path: Path) -> None:
    code = """
        import os, sys, threading
        def f():
            a = 1  # a
        f()
        thread = threading.Thread(target=f)
        thread.start()
        thread.join()
        if hasattr(os, "fork"):
            child = os.fork()
            if not child:
                f()
                print(sys.gettrace())
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(child, 0)
    """
    said, counts, _ = counted(tmp_path, code, {"a": {}})
    assert counts["a"].executions == 1
    assert said in ("", "None\n")


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import os; os._exit(4)", "raise ValueError('x')"])
def test_an_ending_is_the_programs_own(tmp_path: Path, code: str) -> None:
    (tmp_path / "work.py").write_text(f"def f():\n    {code}\nf()\n")
    wanted = {
        "file": str(tmp_path / "work.py"),
        "line": 2,
        "function": "f",
        "each": True,
        "names": [["os"]],
        "loop": True,
    }
    directive = json.dumps({"pass_name": "cprofile", "record": str(tmp_path / "r"), "lines": [wanted]})
    words = [str(HOST_PROGRAM), "cprofile", str(tmp_path / "out.prof"), "--", str(tmp_path / "work.py")]
    alone, under = (
        subprocess.run(
            [sys.executable, *more], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
            env={**ENV, "PROFKIT_DIRECTIVE": directive} if more is words else ENV,
        )
        for more in ([str(tmp_path / "work.py")], words)
    )  # fmt: skip
    assert under.returncode == alone.returncode
    assert under.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]


ROW = '{"entries": 0, "rows": [["a", 1, "f", 2, 0, %s, %s]]}'
NO_FORM, NO_TIME = ROW % ('{"x": [["<f4", [-1], ""]]}', "[]"), ROW % ("{}", "[1, 1, 1, 1, 1, 1, 1, NaN]")
NONE = [
    "",
    "[]",
    "{}",
    '{"entries": 0, "rows": 3}',
    '{"entries": 0, "rows": [[1]]}',
    ROW % ("{}", "[1, 2]"),
    NO_FORM,
    NO_TIME,
]


@pytest.mark.parametrize("text", NONE)
def test_a_file_that_is_none_has_no_counts(tmp_path: Path, text: str) -> None:
    (tmp_path / "out.lines.json").write_text(text)
    assert read_line_counts(tmp_path / "out.lines.json") == ()


def test_a_file_with_counts_has_them(tmp_path: Path) -> None:
    (tmp_path / "out.lines.json").write_text(ROW % ('{"x": [["<f4", [1], ""]]}', "[]"))
    form = ArrayForm("<f4", (1,))
    assert read_line_counts(tmp_path / "out.lines.json") == (LineCount("a", 1, "f", 2, 0, {"x": (form,)}),)


def test_lines_are_counted_to_the_end_where_the_profiler_stops_before(tmp_path: Path) -> None:
    code = """
        import time
        def f():
            time.sleep(0.01)  # a
        for k in range(60):
            f()
    """
    _, counts, notes = counted(tmp_path, code, {"a": {}}, longest=0.2)
    assert counts["a"].executions == 60
    assert notes == []
    assert is_partial(tmp_path / "out.json")


def test_only_what_runs_in_a_region_counts_with_how_often_it_was_entered(tmp_path: Path) -> None:
    code = """
        import profkit
        def f(n):
            for k in range(n):
                n += 1  # a
        f(5)
        for k in range(3):
            with profkit.region("r"):
                f(7)
            f(11)
    """
    (one,) = counted(tmp_path, code, {"a": {}})[1].values()
    assert (one.executions, one.entries) == (21, 3)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="lines that run often are given up alone")
@pytest.mark.parametrize(("texts", "raises"), [("['x', '1']", True), ("['2', '1']", False)])
def test_where_lines_run_too_often_exceptions_are_counted_instead(
    tmp_path: Path, texts: str, raises: bool
) -> None:
    code = f"""
        def f(text):
            try:
                return int(text)  # a
            except ValueError:
                return None
        for text in {texts} * 60_000:
            f(text)
    """
    _, counts, notes = counted(tmp_path, code, {"a": {}})
    assert not counts
    assert notes == ["lines-ended"]
    raised = read_raises(tmp_path / "out.json")
    assert (raised is not None) == raises
    if raised is not None:
        (row,) = raised.hotspots
        assert (row.function, row.line, row.callee.function if row.callee else "") == ("f", 4, "ValueError")
        assert row.own == pytest.approx(0.5 * (row.calls or 0), abs=2)

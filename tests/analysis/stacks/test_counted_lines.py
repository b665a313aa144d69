"""Which lines are counted, what their statements call, and which loop is the program's step."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

import pytest

from profkit.analysis.stacks.line_counts import calls_in, find_loops, lines_to_count, names_in, path_of
from profkit.analysis.stacks.lines import LineTally
from profkit.analysis.stacks.python_code import PythonSample
from profkit.analysis.stacks.source import line_code
from profkit.core.types import CodeLine, CountedLine, Frame, LineCode, LineSamples, SampledTime
from tests import documents

TEXT = textwrap.dedent("""\
    import numpy as np
    from numpy import exp
    def f(x, exp2):
        y = np.dot(x, x) + exp(x)
        z = g(
            x)
        w = [g(a) for a in x]
        for a in x:
            g(a)
        if np.any(x):
            return y
        try:
            pass
        finally:
            v = g(x,
                  y)
            u = g(x)
        def exp(x): return x
""")


@pytest.mark.parametrize(
    ("line", "statement", "each"),
    [
        (5, "z = g(x)", False),
        (7, "w = [g(a) for a in x]", False),
        (9, "g(a)", True),
        (10, "numpy.any(x)", True),
        (11, "return y", True),
        (17, "u = g(x)", True),
        (15, "", True),  # over two lines, and in the bytecode twice
        (16, "", True),  # no statement begins there
        (8, "", True),
        (3, "", True),
    ],
)
def test_the_statement_of_a_line_and_whether_it_is_come_to_once(
    line: int, statement: str, each: bool
) -> None:
    code = line_code(TEXT, line)
    assert code is not None
    assert (code.statement, code.each) == (statement, each)


def test_modules_have_their_own_names_where_nothing_else_has_that_name() -> None:
    code = line_code("import numpy as np\nfrom numpy import exp\ny = np.dot(x, x) + exp(x)\n", 3)
    assert code is not None
    assert code.statement == "y = numpy.dot(x, x) + numpy.exp(x)"
    code = line_code("from numpy import exp\ndef f(exp, x):\n    y = exp(x)\n", 3)
    assert code is not None
    assert code.statement == "y = exp(x)"


def test_paths_are_names_attributes_and_fixed_elements() -> None:
    paths = [
        path_of(ast.parse(text, mode="eval").body)
        for text in ("a.b[0]['k']", "a[i]", "f().b", "a[-1]", "a['x y']")
    ]
    assert paths == [("a", ".b", "[0]", "['k']"), (), (), (), ()]


def test_names_are_what_a_statement_works_on() -> None:
    found = ["".join(path) for path in names_in("y = numpy.exp(self.w.T @ x['k'], out=z)")]
    assert sorted(found) == ["self", "self.w", "self.w.T", "x", "x['k']", "z"]
    assert list(names_in("w -= r * g")) == [("w",), ("r",), ("g",)]
    assert names_in("w = (") == ()


@pytest.mark.parametrize(
    ("statement", "calls"),
    [
        ("a = re.sub('a', 'b', re.sub('c', 'd', t))", {"sub": 2}),
        ("a = f(x) or g(x)", {"f": 1}),
        ("a = f(x) if g(x) else h(x)", {"g": 1}),
        ("a = f(x) < g(x) < h(x)", {"f": 1, "g": 1}),
        ("a = [f(b) for b in g(x)]", {}),
        ("a = lambda: f(x)", {}),
        ("a = f(x) or f(y)", {}),
        ("assert f(x)", {"f": 1}),
        ("items[k](x)", {}),
        ("a = ", {}),
    ],
)
def test_calls_are_those_that_each_execution_makes(statement: str, calls: dict[str, int]) -> None:
    assert calls_in(statement) == calls


LOOPS = textwrap.dedent("""\
    def main():
        for epoch in range(3):
            for batch in range(500):
                step(batch)
                check()
    def step(batch):
        work()
    def work():
        while True:
            x = 1
    main()
""")
TREE = ast.parse(LOOPS)


def sample(function: str, line: int, wall: float, *around: tuple[str, int]) -> LineSamples:
    within = tuple(CodeLine(name, "t.py", at, wall) for name, at in around)
    return LineSamples(function, "t.py", line, main_wall=wall, within=within)


def test_loops_hold_what_is_called_from_their_bodies_and_the_outer_ones_stand_first() -> None:
    top, body = ("<module>", 11), ("main", 4)
    lines = (
        sample("work", 10, 8.0, top, body, ("step", 7)),
        sample("main", 5, 1.0, top),
        sample("<module>", 11, 1.0),
    )
    found = find_loops(lines, 10.0, lambda _: TREE)
    assert [(one.line, one.first, one.last, round(one.share, 3), one.each) for one in found] == [
        (2, 3, 5, 0.9, False),
        (3, 4, 5, 0.9, True),
        (9, 10, 10, 0.8, True),
    ]
    assert found[0].seconds == pytest.approx(9.0)


def test_a_loop_with_less_than_most_of_the_time_is_no_step() -> None:
    lines = (sample("main", 4, 7.0, ("<module>", 11)), sample("<module>", 11, 3.0))
    assert find_loops(lines, 10.0, lambda _: TREE) == ()
    assert find_loops(lines, 0.0, lambda _: TREE) == ()


def test_lines_of_most_time_are_counted_and_first_lines_of_loops() -> None:
    code = LineCode("y = x @ w", statement="y = x @ w")
    lines = (
        replace(sample("step", 7, 6.0), code=code),
        replace(sample("main", 4, 3.9), code=LineCode("step(", statement="step(batch)", each=False)),
        replace(sample("f", 9, 0.05), code=code),
    )
    loops = find_loops((sample("main", 4, 10.0),), 10.0, lambda _: TREE)
    sampled = SampledTime(10.0, 10.0, lines=lines, loops=loops)
    found = lines_to_count(replace(documents.document(), sampled=(sampled,)))
    assert found == (
        CountedLine("t.py", 3, "main", False, loop=True),
        CountedLine("t.py", 4, "main", False, (("step",), ("batch",))[1:], loop=True),
        CountedLine("t.py", 7, "step", True, (("x",), ("w",))),
    )
    assert lines_to_count(replace(documents.document(), sampled=())) == ()


def test_a_line_has_the_lines_of_the_program_around_it_with_the_main_threads_time() -> None:
    main, step = Frame("main", "python", "/app/t.py", 1), Frame("step", "python", "/app/t.py", 6)
    library = Frame("apply", "python", "/usr/lib/python3/site-packages/pandas/frame.py", 9)
    tally = LineTally()
    for at, wall in ((4, 2.0), (5, 1.0)):
        stack = PythonSample((main, library, step), (at, 10, 7), wall, wall, True)
        tally.add(stack, "main", "0")
    tally.add(PythonSample((main, step), (4, 7), 9.0, 9.0, False), "thread", "1")
    (line,) = tally.sampled({}, 0.0, 0).lines
    assert (line.function, line.line) == ("step", 7)
    assert [(one.function, one.line, one.value) for one in line.within] == [
        ("main", 4, 2.0),
        ("main", 5, 1.0),
    ]


def test_what_a_loop_was_not_seen_to_wait_for_is_awaited_as_what_it_was_seen_to() -> None:
    """Requests of 9 ms, in each of which the loop computes: half of the looks find that it ran lately."""
    run = Frame("<module>", "python", "/app/t.py", 1)
    select = Frame("EpollSelector.select", "python", "/usr/lib/python3/selectors.py", 451)
    board = Frame("refresh_board", "python", "/app/t.py", 48)
    tally = LineTally()
    waits = PythonSample((run, select), (76, 468), 0.4, 4.0, True)
    tally.add(waits, "main", "0")
    tally.add_wait(waits, "main", "input", 1.2)
    factor = tally.add_unseen_inputs()
    assert factor == pytest.approx(3.0)
    tally.move_wait(PythonSample((board,), (53,), 0.0, 0.0, True), 1.2 * factor, alone=True)
    lines = {line.line: line for line in tally.sampled({}, 0.0, 0).lines}
    assert lines[53].waits == pytest.approx({"await": 3.6})
    assert lines[76].main_wall == pytest.approx(0.4)

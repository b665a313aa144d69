"""What a line of source does is told by its text; what a name holds is not."""

from __future__ import annotations

import textwrap

import pytest

from profkit.analysis.stacks.source import body_line, line_code
from profkit.core.types import Construct, LineCode


def code_of(text: str, line: int) -> LineCode:
    found = line_code(textwrap.dedent(text).lstrip("\n"), line)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "line", "construct"),
    [
        ("def f(a, b):\n    for x in a:\n        if x in b: pass", 3, Construct("contains", "b")),
        ("def f(a):\n    while a:\n        a.pop(0)", 3, Construct("shift", "a", "pop")),
        ("class A:\n    def f(self):\n        self.a.remove(3)", 3, Construct("shift", "self.a", "remove")),
        ("import numpy as np\ndef f(a):\n    a = np.append(a, 1)", 3, Construct("grow", "a", "numpy.append")),
        ("def f(a, b):\n    a = a + b + 'x'", 2, Construct("grow", "a", "texts")),
        ("def f(a, b):\n    a = a + f'{b}'", 2, Construct("grow", "a", "text")),
        ("def f(a, b):\n    a = a + b", 2, Construct("grow", "a", "+")),
        ("def f(a, n):\n    for i in n:\n        a[i] = 1", 3, Construct("element", "a", "[i]")),
        ("def f(t):\n    for x in t:\n        t[x].argmax().item()", 3, Construct("element", "", "item")),
        (
            "import re\nP = re.compile('(a+)+')\ndef f(x):\n    P.match(x)",
            4,
            Construct("pattern", "(a+)+", "match"),
        ),
        (
            "import json\nT = '1'\ndef f(x):\n    json.loads(T)",
            4,
            Construct("call", "json.loads", "constant"),
        ),
        ("import json\ndef f(x):\n    json.loads(x)", 3, Construct("call", "json.loads")),
        ("import time\nwhile 1:\n    time.sleep(0.1)", 3, Construct("while")),
        ("def f(lock):\n    with lock:\n        work()", 3, Construct("within", "lock", "2")),
        ("import torch.nn\nprint(1)", 1, Construct("import", "torch.nn", "unused")),
        ("def f(n):\n    return f(n - 1) + max(n, 1)", 2, Construct("pure-recursion", "f", "2")),
        ("async def f():\n    await g()", 2, Construct("coroutine", "f")),
    ],
)
def test_what_a_line_does_is_found(text: str, line: int, construct: Construct) -> None:
    assert construct in code_of(text, line).constructs


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        ("def f(n):\n    print(n)\n    return f(n - 1)", 3, "pure-recursion"),  # it prints
        ("def f(n):\n    global a\n    a = n\n    return f(n - 1)", 4, "pure-recursion"),
        ("def f(a, b):\n    a = b + a", 2, "grow"),  # not the left side
        ("def f(a):\n    return a[3]", 2, "element"),  # in no loop
        ("def f(a):\n    a.pop()", 2, "shift"),
        ("import torch\nprint(torch)", 1, "unused"),
    ],
)
def test_what_only_looks_like_it_is_not(text: str, line: int, kind: str) -> None:
    found = code_of(text, line)
    assert not any(one.kind == kind or one.how == kind for one in found.constructs)


def test_the_loop_of_a_comprehension_is_a_loop_and_that_of_another_function_is_none() -> None:
    text = "async def f():\n    return [await g(n) for n in range(3)]\n\ndef h():\n    return 1\n"
    assert code_of(text, 2).loop == 2
    assert code_of(text, 5).loop is None


def test_a_short_function_that_a_line_calls_is_told_with_its_only_line() -> None:
    text = "class A:\n    def add(self, x):\n        self.t = self.t + x + '!'\n\na = A()\n"
    text += "for n in 'ab':\n    a.add(n)\n"
    inner = code_of(text, 7).into[0]
    assert (inner.function, inner.line) == ("add", 3)
    assert inner.code is not None
    assert inner.code.find("grow")


@pytest.mark.parametrize(("text", "line"), [("", 1), ("x = 1", 9), ("x = 1", 0)])
def test_a_line_that_is_not_there_is_none(text: str, line: int) -> None:
    assert line_code(text, line) is None


def test_a_file_of_another_language_keeps_its_line_and_proves_nothing() -> None:
    assert line_code("int main() {\n  return 0;\n}", 2) == LineCode("return 0;")


HEADS = """
@cache
def f(
    a,
):
    \"\"\"Documented.\"\"\"
    return a

async def g(): await h()

def documented():
    \"\"\"Alone.\"\"\"
"""


@pytest.mark.parametrize(
    ("line", "body"), [(2, 7), (3, 7), (4, 7), (6, 6), (7, 7), (9, 9), (11, 12), (1, 1), (99, 99)]
)
def test_a_line_in_the_head_of_a_function_stands_for_its_first_statement(line: int, body: int) -> None:
    assert body_line(HEADS, line) == body


def test_what_another_line_of_the_function_calls_too_is_marked() -> None:
    text = """
    import re
    def f(xs):
        a = re.sub("a", "b", xs)
        b = re.sub("c", "d", a).strip()
        def g():
            return b.strip()
        return b
    """
    elsewhere = {one.name for one in code_of(text, 3).find("called-elsewhere")}
    assert elsewhere == {"sub"}  # strip is called in another function's code
    assert not code_of(text, 7).find("called-elsewhere")

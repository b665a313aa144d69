"""What a line of source does is told by its text; what a name holds is not."""

from __future__ import annotations

import ast
import textwrap

import pytest

from profkit.analysis.stacks import source
from profkit.analysis.stacks.line_counts import nodes_at
from profkit.analysis.stacks.source import body_line, line_code, lines_of
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
        ("def f(a):\n    return sum(a, [])", 2, Construct("grow", "a", "sum")),
        ("def f(a, b):\n    for x in b:\n        x in a['k'].values", 3, Construct("contains", "a", "array")),
        ("def f(a, b):\n    for x in b:\n        a[(a.k == x) & (a.n > 3)]", 3, Construct("mask", "a", "x")),
        ("def f(a, b):\n    for x in b:\n        a.loc[a['k'] == x, 'n']", 3, Construct("mask", "a", "x")),
        ("def f(a):\n    for n, x in enumerate(a):\n        x + n", 3, Construct("item", "x", "a")),
        ("def f(a, n):\n    return sum(a + n)", 2, Construct("builtin", "a", "sum")),
        ("def f(a, b):\n    for x in b:\n        max(a)", 3, Construct("aggregates", "a", "max")),
        (
            "def f(a, b):\n    for x in b:\n        sum(y.n for y in a)",
            3,
            Construct("aggregates", "a", "sum"),
        ),
        (
            "import numpy as np\ndef f(a):\n    u, s, v = np.linalg.svd(a)\n    return u[:, :2], v",
            3,
            Construct("vectors", "u", "a 0"),
        ),
        ("def f(a, b):\n    a = a + f'{b}'", 2, Construct("grow", "a", "text")),
        ("def f(a, b):\n    a = a + b", 2, Construct("grow", "a", "+")),
        ("def f(a, n):\n    for i in n:\n        a[i] = 1", 3, Construct("element", "a", "[i]")),
        ("for page in pages():\n  for row in page:\n    n += 1", 2, Construct("paged", "page")),
        ("rows = list(query.filter(pk=last)[: size])", 1, Construct("paged", "filter")),
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


METHOD = """class Tree:
    def __init__(self, nodes):
        self.nodes = nodes
        self.seen = {{}}
    def below(self, name):
        found = {{name}}
        for child in self.nodes[name].children:
            found |= self.below(child)
        return found
    def count(self, name):
        self.seen.update({{name: len(self.below(name))}})
{other}
"""


@pytest.mark.parametrize(
    ("other", "pure"),
    [
        ("", True),
        ("    def show(self):\n        return sorted(self.nodes.items())", True),
        ("    def add(self, name, node):\n        self.nodes[name] = node", False),
        ("    def add(self, name, node):\n        self.nodes[name].children.append(node)", False),
        ("    def add(self, name):\n        held = self.nodes\n        held[name] = 1", False),
        ("def add(tree, name):\n    tree.nodes.pop(name)", False),
    ],
)
def test_a_method_is_pure_where_no_function_changes_what_it_looks_at(other: str, pure: bool) -> None:
    constructs = code_of(METHOD.format(other=other), 8).constructs
    assert (Construct("pure-recursion", "below", "8") in constructs) == pure


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        ("def f(n):\n    print(n)\n    return f(n - 1)", 3, "pure-recursion"),  # it prints
        ("def f(n):\n    global a\n    a = n\n    return f(n - 1)", 4, "pure-recursion"),
        ("def f(a, b):\n    a = b + a", 2, "grow"),  # not the left side
        ("def f(a):\n    return a[3]", 2, "element"),  # in no loop
        ("def f(a):\n    return [g(x) for x in a.tolist()]", 2, "element"),  # once, before the loop
        ("def f(a, n):\n    return [len(a[part]) for part in n.split(256)]", 2, "element"),  # many at once
        ("for order in orders:\n  items = order.items.all()\n  for one in items:\n    n += 1", 3, "paged"),
        ("for order in orders:\n  for one in order.items.all():\n    n += 1", 2, "paged"),
        ("rows = list(table)[0]", 1, "paged"),
        ("def f(a):\n    a.pop()", 2, "shift"),
        ("import torch\nprint(torch)", 1, "unused"),
        ("def f(a, b):\n    for x in b:\n        max(a, key=lambda y: y - x)", 3, "aggregates"),
        ("def f(a, b):\n    for x in b:\n        a = g(x)\n        max(a)", 4, "aggregates"),
        ("def f(a):\n    return sum(g(x) for x in a)", 2, "builtin"),
        ("def f(a):\n    return g(max(a.shape))", 2, "builtin"),
        ("def f(a, x):\n    a.loc[a['k'] == x, 'n'] = 3", 2, "mask"),
        ("import numpy as np\ndef f(a):\n    u, s, v = np.linalg.svd(a)\n    return u @ v", 3, "vectors"),
        ("import numpy as np\ndef f(a):\n    u, s, v = np.linalg.svd(a, full_matrices=False)", 3, "vectors"),
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

    text = """
    def f(db, names):
        for n in db.execute("SELECT n FROM t"):
            db.execute("SELECT m FROM u WHERE n = ?", n)
    """
    assert [one.how for one in code_of(text, 3).find("called-elsewhere")] == ["1"]  # before the loop
    assert [one.how for one in code_of(text, 2).find("called-elsewhere")] == [""]  # in the loop


# ---------------------------------------------------------------- searches


def said_at(text: str, line: int, *kinds: str) -> set[tuple[str, str, str]]:
    code = line_code(text, line)
    assert code is not None
    return {(one.kind, one.name, one.how) for one in code.constructs if one.kind in kinds}


@pytest.mark.parametrize(
    ("text", "line", "name", "how"),
    [
        (
            "class A:\n def f(self, k):\n  for c in self.all:\n   if c.id == k:\n    return c",
            4,
            "self.all",
            "c.id == k",
        ),
        (
            "class A:\n def f(self, k):\n  for c in self.all:\n   if c.id == k:\n    return c",
            3,
            "self.all",
            "c.id == k",
        ),
        (
            "class A:\n def f(self, k):\n  return next((c for c in self.all.values() if c.id == k), None)",
            3,
            "self.all",
            "c.id == k",
        ),
        ("class A:\n def f(self, k):\n  return any(c == k for c in self.all)", 3, "self.all", "c == k"),
        ("class A:\n def f(self, k):\n  return self.root.find(f'a[@id={k}]')", 3, "self.root", ".find"),
        (
            "def f(orders, people):\n for o in orders:\n  for p in people:\n   if p.id == o.id:\n    o.p = p",
            4,
            "people",
            "p.id == o.id",
        ),
        (
            "def f(orders, people):\n for o in orders:\n  p = [p for p in people if p.id == o.id and p.new]",
            3,
            "people",
            "p.id == o.id and p.new",
        ),
        ("def f(a, b):\n return [(x, y) for x in a for y in b if x.id == y.id]", 2, "b", "x.id == y.id"),
        (
            "def f(keys, rows):\n return {k: sum(1 for r in rows if r[0] == k) for k in keys}",
            2,
            "rows",
            "r[0] == k",
        ),
        (
            "def f(keys):\n for i in keys:\n  for n in range(len(ALL)):\n   if ALL[n].id == i:\n    break",
            4,
            "ALL",
            "ALL[n].id == i",
        ),
        (
            "def f(all, keys):\n for k in keys:\n  for p in all:\n   if p.id != k:\n    continue\n   p.x()",
            4,
            "all",
            "p.id != k",
        ),
    ],
)
def test_what_stays_and_is_compared_with_each_item_is_a_search(
    text: str, line: int, name: str, how: str
) -> None:
    assert said_at(text, line, "search") == {("search", name, how)}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(o, k):\n return [p for p in o.parts if p.new]", 2),  # compared with nothing
        (
            "def f(orders):\n for o in orders:\n  p = [p for p in o.parts if p.id == o.id]",
            3,
        ),  # those of the item
        (
            "def f(orders, people):\n for o in orders:\n  p = [p for p in people if p.kind == 3]",
            3,
        ),  # always the same
        ("def f(self, k):\n for c in self.all:\n  if c.id == k:\n   return c.cost()", 4),  # found
        ("def f(self, k):\n for c in self.all:\n  c.step()\n  if c.id == k:\n   return c", 4),  # does more
        ("def f(self, k):\n rows = load(k)\n return [r for r in rows if r.id == k]", 3),  # made in each call
        ("def f(items):\n for i in items:\n  i.find(f'a{i.tag}')", 3),
        ("class A:\n def f(self, item):\n  return self.root.find('a/b')", 3),
        ("class A:\n def f(self, end):\n  return self.text.find(end, self.at)", 3),  # from where it is
        ("def f(orders, people):\n p = [p for p in people if p.id == KEY]", 2),  # once
        ("def f(orders):\n for o in [p for p in ALL if p.id == orders]:\n  o.go()", 3),
    ],
)
def test_what_is_gone_through_for_another_reason_is_no_search(text: str, line: int) -> None:
    assert said_at(text, line, "search") == set()


def test_a_parameter_stays_where_the_loop_around_the_call_gives_the_same() -> None:
    text = (
        "def f(all, k):\n return [c for c in all if c.id == k]\ndef g(orders, people):\n for o in orders:\n"
    )
    text += "  f(people, o.id)\n  f(o.people, o.id)\n"
    assert ("parameter", "all", "0") in said_at(text, 2, "parameter")
    assert said_at(text, 5, "gives") == {("gives", "f", "0")}
    assert said_at(text, 6, "gives") == set()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("for name in names:\n open(name)", 2, {("varies", "open", "item")}),
        ("for name in names:\n open(KEPT)", 2, set()),
        ("def f(name):\n return open(name)", 2, {("varies", "open", "given")}),
        ("def f(name):\n return open(KEPT)", 2, set()),
        (
            "def f(self):\n return open(self.name)",
            2,
            set(),
        ),  # what an object holds stays, as far as the line says
        ("for key in keys:\n held[key]", 2, {("varies", "[]", "item")}),
        ("all = [open(name) for name in names]", 1, {("varies", "open", "item")}),
    ],
)
def test_a_call_varies_with_the_item_of_a_loop_or_with_what_the_function_is_given(
    text: str, line: int, said: set[tuple[str, str, str]]
) -> None:
    assert said_at(text, line, "varies") == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  self.heap.remove(e)\n  heapq.heapify(self.heap)", ("self.heap", "heapify")),
        ("  self.all.append(e)\n  self.all.sort()", ("self.all", "sort")),
        ("  self.all.append(e)\n  return sorted(self.all)[0]", ("self.all", "sorted")),
        ("  self.all = [e, e]\n  self.all.sort()", None),  # other elements each time
        ("  found = load(e)\n  found.sort()", None),
        ("  ALL.append(e)\n  ALL.sort()", ("ALL", "sort")),
        ("  NEW.append(e)\n  NEW.sort()\ndef g():\n global NEW\n NEW = []", None),
    ],
)
def test_what_stays_and_is_sorted_is_told_from_what_is_new(body: str, said: tuple[str, str] | None) -> None:
    text = f"class A:\n def __init__(self):\n  self.all = []\n def f(self, e):\n{body}"
    assert said_at(text, 6, "sorts") == ({("sorts", *said)} if said else set())


WATCHES = "def f(job):\n seen = 0\n while not job.{ask}():\n  now = {read}\n  if now != seen:\n   show(now)\n"


@pytest.mark.parametrize(
    ("ask", "read", "line", "said"),
    [
        ("is_set", "job.completed", 3, True),
        ("is_set", "job.completed", 5, True),
        ("is_set", "job.completed", 6, False),  # only where something has changed
        ("is_set", "job.progress()", 3, False),  # which may take long
        ("is_alive", "job.completed", 3, False),  # of a process it is a call of the system
    ],
)
def test_lines_that_only_ask_and_compare_are_told(ask: str, read: str, line: int, said: bool) -> None:
    assert bool(said_at(WATCHES.format(ask=ask, read=read), line, "asks-only")) == said


GET = "def f(q, left):\n while left:\n  try:\n   x = q.get_nowait()\n  except Empty:\n   {}\n  {}\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (GET.format("continue", "left.remove(x)"), 4, {"spin"}),
        (GET.format("continue", "left.remove(x)"), 6, {"spin", "idle"}),
        (GET.format("continue", "left.remove(x)"), 7, set()),  # something was there
        (GET.format("pass", ""), 6, {"spin", "idle"}),
        (GET.format("pass", "work()"), 6, set()),  # it has something else to do
        (GET.format("break", "left.remove(x)"), 4, set()),  # it ends there
        (GET.format("time.sleep(1)", "left.remove(x)"), 4, set()),
        (GET.replace("get_nowait()", "get(timeout=1)").format("continue", "left.remove(x)"), 4, set()),
        (GET.replace("get_nowait()", "get(block=False)").format("continue", "left.remove(x)"), 4, {"spin"}),
        ("def f(q):\n while True:\n  if not q.poll(0):\n   continue\n  take(q)", 4, {"spin", "idle"}),
        ("def f(q):\n while True:\n  if q.empty():\n   continue\n  take(q)", 3, {"spin"}),
        ("def f(q):\n while True:\n  if not q.poll(1):\n   continue\n  take(q)", 3, set()),
        ("def f(q):\n while on:\n  if not q.empty():\n   take(q)", 3, {"spin", "idle"}),
        ("def f(q):\n while on:\n  if not q.empty():\n   take(q)", 4, set()),
        ("def f(q):\n while on:\n  if not q.empty():\n   take(q)\n  else:\n   work()", 3, set()),
        ("def f(q):\n while on:\n  step()\n  if not q.empty():\n   take(q)", 4, set()),
        ("def f(q):\n while True:\n  step()\n  if q.empty():\n   continue\n  take(q)", 4, set()),
    ],
)
def test_a_loop_that_begins_again_where_there_is_nothing_is_told(
    text: str, line: int, said: set[str]
) -> None:
    assert {kind for kind, _, _ in said_at(text, line, "spin", "idle")} == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "R = []\ndef f(a):\n for name, rule in R:\n  m = rule.search(a)\n  if m:\n   return name, m.group(1)",
            True,
        ),
        ("def f(a):\n parts = a.split()\n return ' '.join(sorted(parts))", True),
        ("def f(a):\n return random.choice(a)", False),
        ("def f(a):\n return NEXT[a]\ndef g(a):\n NEXT[a] = 1", False),
        ("def f(a):\n return ALL.get(a)\ndef g(a):\n ALL.update(a)", False),
        ("def f(a):\n return SIZE + a\ndef g():\n global SIZE\n SIZE = 2", False),
        ("def f(a):\n a.count += 1\n return a", False),
        ("def f(a):\n yield a.lower()", False),
        ("def f(a):\n print(a)\n return a", False),
        ("def f():\n return 1", False),
    ],
)
def test_a_function_that_depends_on_its_arguments_alone_is_told(text: str, said: bool) -> None:
    line = next(n for n, one in enumerate(text.splitlines(), 1) if one.startswith("def f")) + 1
    assert bool(said_at(text, line, "pure")) == said


LONG_FILE = "import os\n" + "".join(
    f"def work_{n}(items):\n    for one in items:\n        if one in items:\n            os.stat(one)\n"
    for n in range(400)
)


def test_a_file_is_gone_through_once_for_all_of_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[ast.AST] = []
    whole = source.owned_nodes
    monkeypatch.setattr(source, "owned_nodes", lambda tree: [walks.append(tree), whole(tree)][1])
    text = f"{LONG_FILE}# of this test\n"
    codes = [line_code(text, 4 + 4 * n) for n in range(60)]
    assert all(code is not None and Construct("contains", "items") in code.constructs for code in codes)
    assert len(walks) == 1


def test_a_line_of_a_long_file_costs_no_more_than_its_function() -> None:
    tree = ast.parse(LONG_FILE)
    nodes = list(nodes_at(tree, 804))
    assert [one.name for one in nodes if isinstance(one, ast.FunctionDef)] == ["work_200"]
    assert len(nodes) < 40 < len(list(ast.walk(tree)))


PACED = """
import time
while {test}:
    work()
    {end}
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("test", "end", "how"),
    [
        ("time.time() < end", "pass", "clock"),
        ("time.monotonic() - begun < 5", "pass", "clock"),
        ("time.time() < end", "if ready(): break", ""),  # it waits for that, with a limit
        ("not ready()", "pass", ""),
        ("time.time() < end and not done.is_set()", "pass", ""),
        ("True", "pass", ""),
    ],
)
def test_a_loop_that_only_a_time_ends_waits_for_nothing(test: str, end: str, how: str) -> None:
    code = line_code(PACED.format(test=test, end=end), 6)
    assert code is not None
    assert [one.how for one in code.find("while")] == [how]


@pytest.mark.parametrize(
    ("text", "line", "beside"),
    [
        ("while True:\n    work()\n    poll()", 3, True),
        ("while True:\n    poll()", 2, False),
        ("def f():\n    work()\n    poll()", 3, True),
        ("work()\npoll()", 2, False),  # once each
    ],
)
def test_a_line_has_others_beside_it_in_its_loop_or_function(text: str, line: int, beside: bool) -> None:
    assert code_of(text, line).beside is beside


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_form_feed_ends_no_line(end: str) -> None:
    text = end.join(["x = 1", "\f", "# a\x1cb\u2028c", "def f(n):", "    return g(n)", ""])
    assert lines_of(text)[4] == "    return g(n)"
    assert code_of(text, 5).text == "return g(n)"

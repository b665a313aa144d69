"""What a line calls has a public name: that of its own text, of the class, or of what runs below."""

from __future__ import annotations

import pytest

from profkit.analysis.hot_spots.callees import public_call
from profkit.analysis.stacks.source import line_code
from profkit.core.types import CodeLine, LineSamples

SITE = "/usr/lib/python3.11/site-packages"


def shown(text: str, *below: tuple[str, str, float]) -> str | None:
    """Return the name of what `text` calls, where `below` it these functions were sampled, the called one first."""
    lines = tuple(CodeLine(function, file, 1, seconds) for function, file, seconds in below)
    line = LineSamples("main", "/app/a.py", 1, lines[0].value, below=lines, code=line_code(text, 1))
    return public_call(line, lines[0])


@pytest.mark.parametrize(
    ("text", "below", "name"),
    [
        (
            'dates.dt.strftime("%H")',
            (
                ("Properties._delegate_method", f"{SITE}/pandas/core/indexes/accessors.py", 1.0),
                ("DatetimeIndex.strftime", f"{SITE}/pandas/core/indexes/datetimes.py", 1.0),
                ("DatetimeArray._format_native_types", f"{SITE}/pandas/core/arrays/datetimes.py", 0.9),
            ),
            "strftime",
        ),
        (
            "rank = nx.pagerank(graph)",
            (
                ("argmap_pagerank_30", "<class 'networkx.utils.decorators.argmap'> compilation 33", 1.0),
                ("_dispatchable._call_if_no_backends_installed", f"{SITE}/networkx/utils/backends.py", 1.0),
                ("pagerank", f"{SITE}/networkx/algorithms/link_analysis/pagerank_alg.py", 1.0),
            ),
            "pagerank",
        ),
        (  # by another name, and where the text has several calls: the function that has the time
            "rank = score(convert(graph))",
            (
                ("argmap_pagerank_30", "<class 'networkx.utils.decorators.argmap'> compilation 33", 1.0),
                ("pagerank", f"{SITE}/networkx/algorithms/link_analysis/pagerank_alg.py", 1.0),
            ),
            "pagerank",
        ),
        # a module that nobody knows: what runs below it, else the library
        (
            "for order in customer.orders:",
            (
                ("InstanceState._cleanup", f"{SITE}/sqlalchemy/orm/state.py", 1.0),
                ("ClassManager.new_instance", f"{SITE}/sqlalchemy/orm/instrumentation.py", 1.0),
            ),
            "sqlalchemy",
        ),
        ("m = part.mean()", (("_mean", f"{SITE}/numpy/_core/_methods.py", 1.0),), "mean"),
        ("m = part.max()", (("_amax", f"{SITE}/numpy/_core/_methods.py", 1.0),), "max"),
        # What the text calls takes too little of it.
        (
            "total = price * sum(taxes)",
            (("Series._arith", f"{SITE}/pandas/core/series.py", 1.0), ("sum", f"{SITE}/a.py", 0.2)),
            "Series",
        ),
        # of the program, by the class of the library that it is derived from
        (
            "calls = [CallRecord(n) for n in days]",
            (("Model.__init__", f"{SITE}/django/db/models/base.py", 1.0),),
            "CallRecord",
        ),
        ("made = build(n)", (("Model.__init__", f"{SITE}/django/db/models/base.py", 1.0),), "Model"),
        ('x = row["a"]', (("Series.__getitem__", f"{SITE}/pandas/core/series.py", 1.0),), "Series[]"),
        ('row["a"] = 1', (("Series.__setitem__", f"{SITE}/pandas/core/series.py", 1.0),), "Series[]="),
        ("y = net(x)", (("Module._wrapped_call_impl", f"{SITE}/torch/nn/modules/module.py", 1.0),), "Module"),
        # A module says less than the function that it leads to.
        (
            "y = a + b",
            (
                ("_dispatch", f"{SITE}/lib/api.py", 1.0),
                ("_Backend.go", f"{SITE}/lib/api.py", 1.0),
                ("solve", f"{SITE}/lib/solver.py", 0.9),
            ),
            "solve",
        ),
        ("y = a + b", (("_dispatch", f"{SITE}/lib/api.py", 1.0),), "lib.api"),
        (  # what the text calls only makes the object that does the work
            "async with session.post(url) as answer: pass",
            (
                ("_BaseRequestContextManager.__aenter__", f"{SITE}/aiohttp/client.py", 1.0),
                ("BaseEventLoop.call_at", "/usr/lib/python3.11/asyncio/base_events.py", 0.4),
                ("ClientSession.post", f"{SITE}/aiohttp/client.py", 0.01),
            ),
            "post",
        ),
        # Methods that are made from text.
        ("p = Point(1, 2)", (("__create_fn__.<locals>.__init__", "<string>", 1.0),), "Point"),
        ("points.sort()", (("__create_fn__.<locals>.__lt__", "<string>", 1.0),), "sort (generated __lt__)"),
        ("x = a < b", (("__create_fn__.<locals>.__lt__", "<string>", 1.0),), "generated __lt__"),
        ("p = Row(1, 2)", (("<lambda>", "namedtuple_Row", 1.0),), "Row"),
        ("p = Row(1, 2)", (("__init__", "<attrs generated init __main__.Row>", 1.0),), "Row"),
        ("rows.sort()", (("__lt__", "<attrs generated methods app.Row>", 1.0),), "Row.__lt__"),
        ("x = f(1)", (("_lambdifygenerated", "<lambdifygenerated-1>", 1.0),), "f"),
        ("x = f(g(1))", (("_lambdifygenerated", "<lambdifygenerated-1>", 1.0),), "generated code"),
        # A public name stands.
        ("d = json.loads(x)", (("loads", "/usr/lib/python3.11/json/__init__.py", 1.0),), None),
        ("p = join(a, b)", (("join", "<frozen posixpath>", 1.0),), None),
    ],
)
def test_a_line_calls_what_has_a_public_name(
    text: str, below: tuple[tuple[str, str, float], ...], name: str | None
) -> None:
    assert shown(text, *below) == name

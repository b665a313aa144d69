"""Insights on work that a loop does for each item, and could do once for all: queries, messages, rows, predictions.

The chain of sampled calls leads from the line in the loop to the work, and a count tells how often it is done. Each
finding needs both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profkit.analysis.judge.rules.counted import (
    calls_from,
    counted_function,
    last_name,
    share_below,
    with_slashes,
)
from profkit.analysis.judge.rules.spot_conversions import goes_through_arrays
from profkit.analysis.judge.rules.spot_relations import (
    deferred_field,
    has_related_manager,
    prefetched_in_vain,
    relation_asked,
)
from profkit.analysis.judge.rules.spots import (
    MIN_CALLS,
    SEVERAL,
    Find,
    called_names,
    calls_text,
    count_text,
    say,
)
from profkit.analysis.judge.words import words
from profkit.analysis.necessary_work.calls import Tensor
from profkit.analysis.necessary_work.numpy_lines import NumpyOperation, forms_of, numpy_operations
from profkit.analysis.necessary_work.work import broadcast_shape
from profkit.analysis.stacks.line_counts import count_of
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Hotspot, Insight, RunDocument

CHAIN = 0.3  # of a place's time: a function below it with less is not what the place is about
ASKS_EACH_TIME = 0.8  # queries for each look: where a cache answers most, the loop is about something else
PART_OF_CALLS = 4  # where the pass that counts calls gave up early: so much fewer calls prove as much
SHORT = 20e-3  # seconds of a prediction: a longer one is work, and no overhead
SMALL_MESSAGES = 512  # bytes
MAX_LAYERS = 8  # functions of the program between a loop and a place
REPEATED_LINE = 3  # executions of a line that makes a large array: each of them takes long
TIMES_AS_LARGE, BEYOND_CACHES = 4, 8e6  # times the size of the arrays that an array is made of; bytes
TRANSFERS_OF_A_MESSAGE = 4  # a length and a body each way, at least, in each of two processes


@dataclass(frozen=True)
class _Query:
    """A function of a library for objects in a database that sends a statement.

    `of_relation`: it runs only when an attribute is read, so that its calls are the proof. Else each lookup must be
    seen to send a statement. `kinds`: the end of the name of the attribute -> the words on what to change.
    """

    function: str
    files: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]
    of_relation: bool = False


_SQLALCHEMY = ("/sqlalchemy/orm/strategies.py",)
_QUERIES = (
    _Query("_emit_lazyload", _SQLALCHEMY, (("", "sqlalchemy"),), of_relation=True),
    _Query("load_scalar_attributes", ("/sqlalchemy/orm/loading.py",), (("", "expired"),), of_relation=True),
    _Query("_load_scalar_attributes", ("/sqlalchemy/orm/loading.py",), (("", "expired"),), of_relation=True),
    _Query("do_execute", ("/sqlalchemy/engine/default.py",), (("", "keys"),)),
    _Query(
        "execute_sql",
        ("/django/db/models/sql/compiler.py",),
        (("Descriptor", "django"), ("QuerySet", "django.many"), ("", "django.keys")),
    ),
    _Query("execute", ("/peewee.py",), (("Accessor", "peewee"), ("Select", "peewee.many"), ("", "keys"))),
)


_DEFERRED = ("/django/db/models/base.py", "/django/db/models/query_utils.py")
_AGGREGATES = frozenset(
    {"aggregate", "count", "exists"}
)  # of Django: a number, which prefetched objects cannot answer


def is_in_loop(document: RunDocument, spot: CodeSpot) -> bool:
    """Return whether the line of a place is in a loop, or a line is that leads to it through the program's functions.

    Callers beyond a frame of a library do not count: they call the program for each request or event.
    """
    codes = (spot.code, spot.caller_code)
    if any(code is not None and code.loop is not None for code in codes):
        return True
    outer = {(sample.file, sample.line): sample for sampled in document.sampled for sample in sampled.outer}
    callers = spot.callers
    for _ in range(MAX_LAYERS):
        line = outer.get((callers[0].file, callers[0].line)) if callers else None
        if line is None:
            return False
        if line.code is not None and line.code.loop is not None:
            return True
        callers = line.callers
    return False


def query_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return an object of a database that sends a query when it is read, for each item of a loop."""
    if spot.code is not None and spot.code.find("paged"):
        return None  # a query for each page of a table
    for query in _QUERIES if is_in_loop(document, spot) else ():
        below, counted = (
            share_below(spot, query.function, query.files),
            counted_function(document, query.function, query.files),
        )
        statements = (counted.calls or 0) if counted is not None else 0
        if below < CHAIN or statements < MIN_CALLS:
            continue
        lookups = statements if query.of_relation else _lookup_count(document, spot)
        if lookups < MIN_CALLS or statements < ASKS_EACH_TIME * lookups:
            continue
        if (unindexed := unindexed_look_up(spot, lookups)) is not None:
            return unindexed
        looked_at = (spot.under.public or "") if spot.under is not None else ""
        key = next(key for end, key in query.kinds if looked_at.endswith(end))
        asked = relation_asked(spot) if key.startswith("django") else None
        if asked is not None and asked.prefetched:
            return prefetched_in_vain(spot, asked, below, statements, lookups)
        deferred = min(share_below(spot, name, _DEFERRED) for name in ("refresh_from_db", "__get__"))
        if key.startswith("django") and deferred >= below:
            return deferred_field(spot, deferred, lookups)
        if asked is not None or has_related_manager(spot):
            key = "django.many" if asked is None or asked.is_of_many else "django"
        if key.startswith("django.") and _AGGREGATES & {
            name.rpartition(".")[2] for name in called_names(spot)
        }:
            key = "django.aggregate"
        return say(
            spot,
            "calls-in-loop",
            f"Ask once for all items: this line sent a query {_at_least(spot, lookups)} times",
            f"{percent_text(100 * below)} of this is in {query.function} below it, which ran "
            f"{'at least ' if spot.partial else ''}{count_text(statements, 'time')}",
            spot.share * below * (1 - 1 / lookups),
            change=words(f"calls-in-loop.{key}", "host"),
        )
    return None


# Seconds: with an index, finding a row takes about 20 µs in the process, and 200 µs through an ORM.
LONG_STATEMENT = 0.3e-3
# Conditions for which a database cannot use the index of a column, since they test its text and not its value.
_UNINDEXED = re.compile(
    r"__(iexact|icontains|contains|iendswith|endswith|iregex|regex)(?=\s*=)|\.(ilike|contains|endswith|regexp_match)\("
    r"|\bfunc\.(lower|upper)\(|\bLIKE\s+['\"]%"
)


def unindexed_look_up(spot: CodeSpot, calls: int) -> Insight | None:
    """Find a query condition in the source line that no column index serves, if each query takes long."""
    found = _UNINDEXED.search(spot.code.text) if spot.code is not None else None
    if found is None or spot.seconds < LONG_STATEMENT * max(1, calls):
        return None
    return say(
        spot,
        "slow-statements",
        f"`{found[0].strip('_. (')}` uses no index: each of {count_text(calls)} statements scans the table",
        f"{calls_text(spot)}; with an index, finding a row takes about 20 µs",
        change=words("slow-statements.unindexed", "host"),
    )


def _at_least(spot: CodeSpot, number: int) -> str:
    return f"{'at least ' if spot.partial else ''}{count_text(number)}"


def _lookup_count(document: RunDocument, spot: CodeSpot) -> int:
    """Return how often the line calls the library: by the place's count, else by the longest call of its function."""
    if spot.under is not None and spot.under.calls:
        return spot.under.calls
    edges = [
        edge for edge in calls_from(document, spot) if edge.callee and edge.callee.file != spot.where.file
    ]
    first = max(edges, key=_seconds, default=None)
    if first is None or _seconds(first) < CHAIN * sum(_seconds(edge) for edge in edges):
        return 0
    return first.calls or 0


def _seconds(row: Hotspot) -> float:
    return row.total or row.own


# ------------------------------------------------------------ messages to another process

_PROXY = ("_callmethod", ("/multiprocessing/managers.py",))


def message_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return an object that another process holds (multiprocessing.Manager): each use of it is a message and an
    answer.
    """
    below, counted, split = (
        share_below(spot, *_PROXY),
        counted_function(document, *_PROXY),
        document.time_split,
    )
    if below < CHAIN or not is_in_loop(document, spot):
        return None
    sent = (counted.calls or 0) if counted is not None else 0
    text = (
        f"{_PROXY[0]} of its proxy sent {_at_least(spot, sent)} messages, and waited for the answer to each"
    )
    if sent < MIN_CALLS:  # these may be messages of workers, whose calls are not counted
        if (
            split is None
            or not split.io_calls
            or split.io_calls < TRANSFERS_OF_A_MESSAGE * MIN_CALLS * max(1.0, split.wall)
        ):
            return None
        each = ((split.read or 0.0) + (split.written or 0.0)) / split.io_calls
        if each > SMALL_MESSAGES:
            return None
        text = (
            f"its proxy sends a message each time: {count_text(split.io_calls)} reads and writes of "
            f"{format_quantity(each, 'B')} each"
        )
    return say(
        spot,
        "calls-in-loop",
        "Keep the data in this process: each use of a manager's object sends a message to another process",
        f"{percent_text(100 * below)} of this is in multiprocessing's proxy: {text}",
        spot.share * below,
        change=words("calls-in-loop.proxy", "host"),
    )


# ------------------------------------------------------------ rows of a frame, predictions of one

_APPLY = "/pandas/core/apply.py"


def row_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a function that pandas calls with each row of a frame: `frame.apply(function, axis=1)`, and what it
    does.
    """
    code = spot.code
    applies = (
        [construct for construct in code.find("element") if construct.how == "apply"]
        if code is not None
        else []
    )
    below = share_below(spot, "apply_series_generator", (_APPLY,))
    frame = next((construct.name for construct in applies if below >= CHAIN or _is_a_row(spot)), "")
    if not frame and code is not None and _is_a_row(spot):  # the function, in its own lines
        frame = next((construct.name for construct in code.find("applied")), "")
    if not frame:
        return None
    return say(
        spot,
        "element-wise",
        f"Work on whole columns of {frame}, not on one row at a time",
        "apply with axis=1 makes a Series of each row and calls the function with it"
        + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
        change=words("element-wise.pandas", "host"),
    )


def _is_a_row(spot: CodeSpot) -> bool:
    """Return whether pandas itself called the function of a place, with a Series."""
    first = spot.callers[0] if spot.callers else None
    by_pandas = first is not None and with_slashes(first.file).endswith(_APPLY)
    return by_pandas and any(variable.type == "pandas.Series" for variable in spot.variables.values())


_GROUPS = "/pandas/core/groupby/"
MANY_GROUPS, SHORT_GROUP = 500, 2e-3  # calls; seconds of one: a longer one may be work on many rows
_OTHERS_WORK = re.compile(r"/(scipy|sklearn|statsmodels)/|/numpy/(linalg/|lib/_?polynomial)")


def group_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a function that pandas calls with each of many groups, for operations on a few rows each."""
    first, calls = spot.callers[0] if spot.callers else None, spot.calls or 0
    if first is None or _GROUPS not in with_slashes(first.file) or calls < MANY_GROUPS:
        return None
    if not any(
        variable.type in ("pandas.DataFrame", "pandas.Series") for variable in spot.variables.values()
    ):
        return None
    works = any(
        _OTHERS_WORK.search(with_slashes(frame.file)) and frame.value >= CHAIN for frame in spot.below
    )
    if works or spot.seconds > SHORT_GROUP * calls:
        return None
    # The seconds are those of the whole run, the calls those of the part that was counted.
    each = f"{'at most ' if spot.partial else ''}{format_quantity(spot.seconds / calls, 's')}"
    return say(
        spot,
        "calls-in-loop",
        f"{last_name(spot.where.function or '')} is called for each of {_at_least(spot, calls)} groups of a few rows",
        f"{each} here for each group: an operation of pandas takes some 100 µs, however few the rows are",
        change=words("calls-in-loop.groups", "host"),
    )


_PREDICTS = frozenset(
    {
        "predict",
        "predict_proba",
        "predict_log_proba",
        "decision_function",
        "score_samples",
        "transform",
        "encode",
    }
)


def prediction_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a model that gets a batch of a single item in each iteration, if no item needs the result of another."""
    under = spot.under
    least = MIN_CALLS // PART_OF_CALLS if spot.partial else MIN_CALLS
    if spot.code is None or under is None:
        return None
    through = _items_of_loop(spot) if spot.partial or not under.calls else 0
    if (under.calls or 0) < least and through < MIN_CALLS:
        return None
    # If the batch is made in a function, a loop must call that function with its items.
    items = spot.caller_code.find("of-item") if spot.caller_code is not None else ()
    calling = {last_name(construct.name) for construct in items}
    called = {
        last_name(construct.name)
        for construct in spot.code.find("of-one")
        if not construct.how or construct.how in calling
    }
    if not called or (under.seconds_per_call or 0.0) > SHORT:
        return None
    if under.name not in _PREDICTS & called and (under.public, under.library) != ("Module", "torch"):
        return None
    return say(
        spot,
        "calls-in-loop",
        "Give the model many items at once: each call has a batch of only one",
        calls_text(spot),
        spot.share * (1 - 1 / max(under.calls or 1, through)),
        change=words("calls-in-loop.batch", "host"),
    )


def _items_of_loop(spot: CodeSpot) -> int:
    """Return how many items a loop goes through, by the length of what it goes through; 0 where it was not seen.

    An array has its length in elements, and so has each of its rows.
    """
    for construct in spot.code.find("item") if spot.code is not None else ():
        whole, item = spot.variables.get(construct.how), spot.variables.get(construct.name)
        if whole is not None and whole.type in ("list", "tuple"):
            return whole.length or 0
        if whole is not None and item is not None and whole.type.startswith(item.type) and item.length:
            return (whole.length or 0) // item.length
    return 0


_CONVERTS = ("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray")


def list_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a list of numbers that becomes an array or a tensor for each item, one number at a time."""
    under = spot.under
    often = (spot.calls or 0) >= MIN_CALLS or is_in_loop(document, spot)
    if spot.code is None or under is None or (under.calls or 0) < MIN_CALLS or not often:
        return None
    for construct in spot.code.find("call"):
        if construct.name not in _CONVERTS or last_name(construct.name) != last_name(under.name):
            continue
        given = re.search(rf"\b{last_name(construct.name)}\(\s*([\w.]+)\s*[,)]", spot.code.text)
        held = spot.variables.get(given[1]) if given is not None else None
        if (
            given is None
            or held is None
            or held.type not in ("list", "tuple")
            or (held.length or 0) < SEVERAL
            or goes_through_arrays(spot, given[1])
        ):
            continue
        return say(
            spot,
            "list-for-each",
            f"{construct.name} converts the numbers of a list one by one, again for each item",
            f"{given[1]} is a {held.type} of up to {count_text(held.length or 0)}; {calls_text(spot)}",
            change=words("list-for-each", "host").format(make=construct.name),
        )
    return None


# ------------------------------------------------------------ arrays of all pairs

_ONE_BY_ONE = frozenset({"subtract", "add", "multiply", "divide", "not_equal", "equal", "less", "greater"})
_REDUCED = frozenset({"sum", "mean", "prod", "max", "min", "any", "all", "argmin", "argmax"})


@dataclass(frozen=True)
class _PairArray:
    """An array of all pairs of two arrays: the place where it is made, by what, and its shape."""

    spot: CodeSpot
    operation: NumpyOperation
    whole: Tensor


def all_pairs(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return an array of all pairs of two others that is larger than any cache, and is reduced at once."""
    here = (spot.where.file, spot.where.function)
    lines = [
        (hot_spot, operations)
        for hot_spot in document.hot_spots
        if (hot_spot.where.file, hot_spot.where.function) == here
        and (operations := _operations_at(document, hot_spot))
    ]
    made = next((pairs for pair in lines if (pairs := _pairs(*pair)) is not None), None)
    if made is None:
        return None
    uses = [
        (hot_spot, operations)
        for hot_spot, operations in lines
        if hot_spot is made.spot or any(_takes(each, made.whole) for each in operations)
    ]
    works, every = [hot_spot for hot_spot, _ in uses], [each for _, operations in uses for each in operations]
    sums = next(
        (
            operation.name
            for operation in every
            if operation.name in _REDUCED and _takes(operation, made.whole)
        ),
        None,
    )
    if sums is None or spot is not max(works, key=lambda hot_spot: hot_spot.share):
        return None
    shapes = " and ".join(_shape(tensor) for tensor in made.operation.inputs)
    size = format_quantity(made.whole.bytes or 0.0, "B")
    squared = made.operation.name == "subtract" and any(
        operation.name in ("power", "square", "multiply") and _takes(operation, made.whole)
        for operation in every
    )
    products = made.operation.name == "multiply" and sums == "sum"
    key = "distances" if squared and sums == "sum" else "products" if products else "pieces"
    return say(
        spot,
        "large-temporary",
        f"An array of {size} is created for all pairs, only to be reduced again",
        f"{made.operation.name} of {shapes} gives {_shape(made.whole)}, {size}, and {sums} reduces it again: each "
        "pass over it goes to memory" + (f"; {len(works)} lines work on it" if len(works) > 1 else ""),
        sum(work.share for work in works),
        where=made.spot.where,
        change=words(f"large-temporary.{key}", "host"),
    )


def _operations_at(document: RunDocument, spot: CodeSpot) -> tuple[NumpyOperation, ...]:
    """Return the operations of NumPy in a line, by the largest shapes that were sampled."""
    counted = count_of(document, spot.where.file, spot.where.line)
    if counted is None or spot.code is None or not spot.code.statement or counted.executions < REPEATED_LINE:
        return ()
    return numpy_operations(spot.code.statement, forms_of(counted, max)) or ()


def _pairs(spot: CodeSpot, operations: tuple[NumpyOperation, ...]) -> _PairArray | None:
    for operation in operations:
        shape = (
            broadcast_shape(operation.inputs)
            if operation.name in _ONE_BY_ONE and len(operation.inputs) == 2
            else None
        )
        if shape is None:
            continue
        whole = Tensor(shape, operation.inputs[0].type)
        largest = max(each.elements for each in operation.inputs)
        if whole.elements >= TIMES_AS_LARGE * largest and (whole.bytes or 0.0) >= BEYOND_CACHES:
            return _PairArray(spot, operation, whole)
    return None


def _takes(operation: NumpyOperation, whole: Tensor) -> bool:
    return any(tensor.shape == whole.shape for tensor in operation.inputs)


def _shape(tensor: Tensor) -> str:
    return f"[{','.join(map(str, tensor.shape))}]"


_MODULO = re.compile(r"[\w)\]]\s*%=?\s*[\w(]|\bnumpy\.(mod|remainder|fmod)\(")
INTEGERS = "numpy.ndarray of integers"  # the name of the type in sampled variables


def integer_product(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a product of matrices of integers: BLAS multiplies only floating-point numbers."""
    held = spot.variables
    for construct in spot.code.find("product") if spot.code is not None else ():
        names = [name for name in (construct.name, construct.how) if name]
        # Of products that are taken modulo a number, as many digits as there are have to be exact.
        exact = spot.code is not None and _MODULO.search(spot.code.statement or spot.code.text)
        if (
            len(names) == 2
            and not exact
            and all(name in held and held[name].type == INTEGERS for name in names)
        ):
            return say(
                spot,
                "integer-product",
                "Multiply matrices of floats: NumPy has no BLAS for integers",
                f"{' and '.join(dict.fromkeys(names))} {'holds' if construct.name == construct.how else 'hold'} "
                "integers" + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
                change=words("integer-product", "host"),
            )
    return None


PATTERNS: tuple[Find, ...] = (
    integer_product,
    query_for_each,
    message_for_each,
    row_for_each,
    group_for_each,
    prediction_for_each,
    list_for_each,
    all_pairs,
)

"""Rules on what a Python program calls too often, for too little at a time, or at great cost: by cProfile's callers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Gain, Hotspot, Insight, Place, Profile

WORTH = 0.15  # of the time: what takes less is not where one would begin
# of the time, that is not imports: a short run of a program that loads much is about its work, too
LEAST_LOADED = 0.3
HEAVY = 0.2  # of the time, in one library function that nothing special is known of
ONE_BY_ONE = 1000  # calls: fewer are no loop over elements
LINEAR_SECONDS = 1e-6  # own time of a call; a method of lists that looks at one element takes a tenth of it
_MODULE_CALL = re.compile(r"(Module\.)?_(wrapped_)?call_impl")  # what a call of a model of torch goes through
_GENERATED = re.compile(r"argmap_(\w+?)_\d+$")  # networkx wraps its functions in code that it makes


@dataclass(frozen=True)
class LibraryCalls:
    """What one function of the program calls in one way: its place, the time of these calls, and how many there are."""

    caller: Hotspot
    name: str  # of the callee that takes most of it
    library: str
    seconds: float
    share: float  # of the profiled time, 0..1
    calls: int

    def place(self, run: RunEvidence) -> Place:
        """The caller's line of most time among these calls, where stacks were sampled; else its first line."""
        return Place(
            function=self.caller.function, file=self.caller.file, line=_line_of(run, self) or self.caller.line
        )


def _line_of(run: RunEvidence, calls: LibraryCalls) -> int | None:
    """The sampled line of a function that takes most of its time, first among those that lead into the callee."""
    profile = run.profile("sampled-lines")
    lines = [
        one
        for one in (profile.hotspots if profile is not None else ())
        if one.file == calls.caller.file and one.function.rpartition(".")[2] == calls.caller.function
    ]
    inside = [one for one in lines if any(_ends_alike(line.function, calls.name) for line in one.lines)]
    first = max(inside or lines, key=lambda one: one.total or one.own, default=None)
    return first.line if first is not None else None


def _ends_alike(sampled: str, called: str) -> bool:
    """Whether both are the same function: `DataFrame.apply` and `apply`."""
    return brief_name(sampled).rpartition(".")[2] == called.rpartition(".")[2]


@dataclass(frozen=True)
class Construct:
    """Calls that tell of one way to write Python that is slow. `title` names {caller} and {name}."""

    rule: str
    callee: re.Pattern[str]
    library: re.Pattern[str]
    least_calls: int
    title: str
    change: str
    meaning: str = ""  # behind the evidence
    least_seconds: float = 0.0  # of one call
    of_caller: bool = False  # the caller's whole time counts: operators on tensors are no calls


CONSTRUCTS = (
    Construct(
        "pandas-elements",
        re.compile(r"iterrows|itertuples|iteritems|items|__getitem__|__setitem__|get|at|iat|loc|iloc"),
        re.compile("pandas"),
        ONE_BY_ONE,
        "Work on whole columns in {caller}, not on single elements",
        "Arithmetic and comparisons of columns (frame['a'] * frame['b'], numpy.where for conditions), "
        "groupby for sums by key, merge or Series.map to look up; where a loop must be, zip the columns' "
        "to_numpy() or itertuples.",
        "each access to a row or an element of pandas costs microseconds, of an array nanoseconds",
    ),
    Construct(
        "tensor-elements",
        re.compile(r"<method '(item|tolist|numpy)' of 'torch\._C\.TensorBase' objects>|item"),
        re.compile(r"built-in|torch|jax|jaxlib"),
        ONE_BY_ONE,
        "Work on whole tensors in {caller}, not on single elements",
        "Compare, sum and select with operations on the whole tensor, a batch at a time, and take one value at "
        "the end: (scores.argmax(1) == labels).sum().item().",
        "each operation on a tensor costs about a microsecond, however small it is",
        of_caller=True,
    ),
    Construct(
        "linear-list",
        re.compile(r"<method '(pop|insert|remove|index|count)' of 'list' objects>"),
        re.compile("built-in"),
        ONE_BY_ONE,
        "Do not search or shift a list at each step of {caller}",
        "At the front: collections.deque with popleft and appendleft. To find or remove: a dict or a set. In "
        "sorted order: bisect or heapq.",
        "each moves or looks through the rest of the list, so that the time grows with the square of its length",
        LINEAR_SECONDS,
    ),
    Construct(
        "repeated-pattern",
        re.compile(r"compile|_compile"),
        re.compile("standard library"),
        50,
        "Compile patterns once, not in {caller}",
        "Compile outside of the loop what does not change; one pattern with a group, or a test on what the "
        "group found, for what differs; plain text methods (in, startswith, split) where no pattern is needed.",
        "each compiles a pattern that is new to re, whose cache holds 512",
    ),
    Construct(
        "one-row-at-a-time",
        re.compile(r"(predict|transform|kneighbors|score|decision_function)\w*"),
        re.compile(r"sklearn|xgboost|lightgbm|catboost"),
        100,
        "Pass all rows to {name} at once",
        "Collect the rows in one array and call it once: model.predict(rows). What a call costs before its "
        "work begins (checks, threads, indices) is then paid once.",
    ),
    Construct(
        "repeated-search",
        re.compile(r"(argmap_)?(bidirectional_)?(shortest_path|has_path|dijkstra|astar|all_pairs)\w*"),
        re.compile("networkx"),
        100,
        "Search the graph once for each start, not for each pair",
        "single_source_shortest_path_length gives all distances from one node in one search; "
        "all_pairs_shortest_path_length, or scipy.sparse.csgraph, gives all of them.",
    ),
)
# numpy's loops over arrays of objects, and what pandas does only with columns of objects
_OBJECT_LOOPS = re.compile(r"(PyUFunc_O+_O+|OBJECT|npy_Object)\w*")
_OBJECT_FUNCTIONS = re.compile(r"comp_method_OBJECT_ARRAY|_isna_string_dtype|_masked_arith_op")
_OBJECT_TEXTS = "/pandas/core/strings/object_array.py"
_ARRAY_PACKAGES = ("pandas", "numpy")
_ROWS = re.compile(r"apply|applymap|map|agg|aggregate|transform|filter|pipe|rolling")
# They wait, load or only lead on: what they do is another rule's, or the callee's.
_NO_WORK = re.compile(
    r"<built-in method (builtins\.(exec|eval|__import__)|time\.sleep|posix\.(waitpid|read|write|fsync)\w*)>"
    r"|_find_and_load|_handle_fromlist|run_until_complete|main_loop|mainloop|serve_forever"
    r"|<method '(poll|acquire|recv\w*|join)' of .*"
    r"|acquire|wait|join|run|main|start|result|__enter__|__exit__|sleep|gather"
)


_WAIT = re.compile(
    r"<(built-in method (time\.sleep|posix\.(waitpid|read)|select\.\w+)"
    r"|method '(poll|acquire|recv\w*|join|select)' of .*)>"
)
# What these call is the program's own work again, in other threads and processes.
_LEADS_ON = re.compile(
    r".*/(multiprocessing|threading|concurrent|asyncio|socketserver|selectors|runpy|subprocess)\b"
)
_PACKAGE = re.compile(r".*/(?:site|dist)-packages/([^/]+)")
_STANDARD_MODULE = re.compile(
    r".*/[Pp]ython\d?[^/]*/(?:Lib/)?([A-Za-z]\w*)(?:/|\.py$)"
)  # json of .../json/__init__.py


def library_calls(run: RunEvidence) -> list[LibraryCalls]:
    """What the program's own functions call outside of it, the most time first."""
    profile = run.profile("program-calls")
    if profile is None:
        return []
    calls = [
        LibraryCalls(
            edge,
            brief_name(edge.callee.function),
            edge.callee.library or "",
            edge.total or edge.own,
            (edge.total or edge.own) / profile.total,
            edge.calls or 0,
        )
        for edge in profile.hotspots
        if edge.callee is not None
        and is_users_code(edge.file)
        and not is_users_code(edge.callee.file)
        and not _NO_WORK.fullmatch(edge.callee.function)
    ]
    return sorted(calls, key=lambda one: -one.seconds)


def brief_name(function: str) -> str:
    """A function as its users write it: `list.pop`, `json.loads`, `shortest_path_length`."""
    if method := re.fullmatch(r"<method '(\w+)' of '([\w.]+)' objects>", function):
        return f"{method[2].rpartition('.')[2]}.{method[1]}"
    if built_in := re.fullmatch(r"<built-in method ([\w.]+)>", function):
        return built_in[1].removeprefix("builtins.")
    if generated := _GENERATED.match(function):
        return generated[1]
    return "torch.nn.Module" if _MODULE_CALL.fullmatch(function) else function


def worth_share(run: RunEvidence) -> float:
    """The least share (0..1) of the profiled time that is worth an insight: less where imports take most of it."""
    imports, whole = run.profile("imports"), run.profile("own-time")
    if imports is None or whole is None or whole.total <= 0:
        return WORTH
    return WORTH * max(LEAST_LOADED, 1 - imports.total / whole.total)


def slow_constructs(run: RunEvidence) -> Iterator[Insight]:
    """Calls of the program that tell what is slow about its code, and what to write instead."""
    calls = library_calls(run)
    applied = list(_applied_functions(run))
    yield from applied
    seen = {one.where.function for one in applied}
    for construct in CONSTRUCTS:
        for caller, matching in _by_caller(calls, construct):
            share, count = sum(one.share for one in matching), sum(one.calls for one in matching)
            share = _share_with_calls(run, matching[0].caller) if construct.of_caller else share
            if share < worth_share(run) or count < construct.least_calls or caller in seen:
                continue
            if sum(one.seconds for one in matching) < construct.least_seconds * count:
                continue
            if construct.rule == "pandas-elements" and applied:
                continue
            yield _construct_insight(run, construct, matching, share, count)
            seen.add(caller)


def _by_caller(calls: Sequence[LibraryCalls], construct: Construct) -> list[tuple[str, list[LibraryCalls]]]:
    groups: dict[str, list[LibraryCalls]] = {}
    for one in calls:
        name = one.caller.callee.function if one.caller.callee is not None else one.name
        if construct.library.fullmatch(one.library) and construct.callee.fullmatch(name):
            groups.setdefault(one.caller.function, []).append(one)
    return list(groups.items())


def _construct_insight(
    run: RunEvidence, construct: Construct, matching: Sequence[LibraryCalls], share: float, count: int
) -> Insight:
    first = matching[0]
    each = format_quantity(sum(one.seconds for one in matching) / count, "s")
    meaning = f": {construct.meaning}" if construct.meaning else ""
    evidence = (
        f"in {plural(count, 'call')} of {first.name} from {first.caller.function}, {each} each{meaning}"
    )
    if construct.of_caller:
        evidence = f"in {first.caller.function}, with {plural(count, 'call')} of {first.name}{meaning}"
    return Insight(
        construct.rule,
        construct.title.format(caller=first.caller.function, name=first.name),
        f"{percent_text(100 * share)} of the profiled time is {evidence}",
        construct.change,
        first.place(run),
        Gain(share, "the profiled time", "as if it took no time"),
    )


def _share_with_calls(run: RunEvidence, function: Hotspot) -> float:
    """The share of a function with all that it calls."""
    profile = run.profile("own-time")
    return (
        max(
            (
                (one.total or one.own) / profile.total
                for one in profile.hotspots
                if (one.function, one.file, one.line) == (function.function, function.file, function.line)
            ),
            default=0.0,
        )
        if profile is not None
        else 0.0
    )


def _applied_functions(run: RunEvidence) -> Iterator[Insight]:
    """`DataFrame.apply` and its kind: a function of the program's that pandas calls once for each row or element."""
    profile = run.profile("program-calls")
    if profile is None:
        return
    applied = [
        edge
        for edge in profile.hotspots
        if edge.callee is not None
        and is_users_code(edge.callee.file)
        and edge.library == "pandas"
        and (edge.calls or 0) >= ONE_BY_ONE
    ]
    callers = [one for one in library_calls(run) if one.library == "pandas" and _ROWS.fullmatch(one.name)]
    if not applied or not callers or callers[0].share < worth_share(run):
        return
    called, caller = max(applied, key=lambda edge: edge.total or 0.0), callers[0]
    assert called.callee is not None
    yield Insight(
        "pandas-apply",
        f"Replace {caller.name} in {caller.caller.function} by operations on whole columns",
        f"{percent_text(100 * caller.share)} of the profiled time is in {caller.name} of pandas, which calls "
        f"{called.callee.function} {called.calls} times, once for each row or element",
        "Arithmetic of columns (frame['a'] * frame['b']); numpy.where, Series.where or Series.mask for conditions; "
        "Series.map with a dict to look up; the .str and .dt methods for texts and times.",
        caller.place(run),
        Gain(caller.share, "the profiled time", "these calls, as if they took no time"),
    )


def object_columns(run: RunEvidence) -> Iterator[Insight]:
    """Columns of pandas and arrays of numpy that hold Python objects: each operation calls Python for each element.

    Told by the functions that only such data reaches: those of pandas by sampled stacks, the loops of numpy by perf.
    """
    ways: list[tuple[float, str]] = []
    native, sampled = run.profile("functions"), run.profile("sampled-functions")
    if native is not None:
        loops = [one for one in native.hotspots if _OBJECT_LOOPS.fullmatch(one.function)]
        first = max(loops, key=lambda one: one.total or one.own, default=None)
        if first is not None:
            share = (first.total or first.own) / native.total
            ways.append((share, f"of the samples are in numpy's loop over Python objects ({first.function})"))
    if sampled is not None:
        inside = [one for one in sampled.hotspots if _works_on_objects(one)]
        if inside:
            share = sum(one.own for one in inside) / sampled.total
            first = max(inside, key=lambda one: one.own)
            name = first.function.partition(".<locals>")[0].rpartition(".")[2]
            ways.append((share, f"of the processor time is in pandas' functions for Python objects ({name})"))
    share, evidence = max(ways, default=(0.0, ""))
    lines = run.profile("sampled-lines")
    if share < WORTH or lines is None:
        return
    if any(one.rule.startswith("pandas-") for one in slow_constructs(run)):  # rows are arrays of objects
        return
    where = _array_line(lines, share)
    yield Insight(
        "object-dtype",
        f"Give the data in {where.function} a type: it is Python objects"
        if where.function
        else "Give the data a type: it is Python objects",
        f"{percent_text(100 * share)} {evidence}: an array of dtype object calls Python for each element",
        "frame.dtypes and array.dtype tell which. Numbers: astype('float64') or pd.to_numeric; times: pd.to_datetime; "
        "texts: 'category' where few are different, else 'string[pyarrow]'. Convert once, after reading.",
        where,
        Gain(share, "the CPU time", "this work on objects, as if it took none"),
    )


def _works_on_objects(spot: Hotspot) -> bool:
    file = (spot.file or "").replace("\\", "/")
    return file.endswith(_OBJECT_TEXTS) or (
        "/pandas/core/" in file and _OBJECT_FUNCTIONS.fullmatch(spot.function) is not None
    )


def _array_line(lines: Profile, share: float) -> Place:
    """The line of the program's that leads to most work in pandas and numpy; else that with most work of its own."""
    into, own = [], []
    for spot in lines.hotspots:
        package = _PACKAGE.search((spot.lines[0].file or "").replace("\\", "/")) if spot.lines else None
        if package is not None and package[1] in _ARRAY_PACKAGES:
            into.append(spot)
        elif not spot.lines:
            own.append(spot)
    for spots in (into, own):
        first = max(spots, key=lambda one: one.total or one.own, default=None)
        if first is not None and (first.total or first.own) >= 0.5 * share * lines.total:
            return Place(function=first.function, file=first.file, line=first.line)
    return Place()


def heavy_library_call(run: RunEvidence) -> Iterator[Insight]:
    """The library function that takes most of the time, where nothing special is known of it.

    By sampled stacks of all threads and processes, where there are; else by cProfile of a main thread that works.
    """
    special = {one.where.function for one in (*slow_constructs(run), *object_columns(run))}
    lines = run.profile("sampled-lines")
    if special or (lines is None and _waits(run)):
        return
    calls = library_calls(run)
    if lines is not None:
        yield from _heavy_line(lines, calls)
        return
    returning = _returning_libraries(run)
    first = next((one for one in calls if one.library not in returning), None)
    if first is None or first.share < HEAVY:
        return
    yield _heavy_call(first.name, first.library, first.share, "the profiled time", first.place(run), first)


def _waits(run: RunEvidence) -> bool:
    """Whether the profiled thread mostly waits: its calls took long, and did not work."""
    own = run.profile("own-time")
    waited = sum(one.own for one in own.hotspots if _WAIT.fullmatch(one.function)) if own is not None else 0.0
    return own is not None and waited > HEAVY * own.total


def _heavy_line(lines: Profile, calls: Sequence[LibraryCalls]) -> Iterator[Insight]:
    """The line of the program's that leads to most work in a library."""
    leading = [
        one
        for one in lines.hotspots
        if one.lines and not _LEADS_ON.match(one.lines[0].file or "") and is_users_code(one.file)
    ]
    first = max(leading, key=lambda one: (one.total or 0.0) - one.own, default=None)
    share = ((first.total or 0.0) - first.own) / lines.total if first is not None else 0.0
    if first is None or share < HEAVY:
        return
    name = brief_name(first.lines[0].function)
    counted = next(
        (one for one in calls if one.caller.function == first.function and _ends_alike(name, one.name)), None
    )
    place = Place(function=first.function, file=first.file, line=first.line)
    file = (first.lines[0].file or "").replace("\\", "/")
    package = _PACKAGE.search(file)
    module = _STANDARD_MODULE.search(file) if package is None else None
    full_name = f"{module[1]}.{name}" if module is not None else name
    yield _heavy_call(full_name, package[1] if package else "", share, "the processor time", place, counted)


def _heavy_call(
    name: str, library: str, share: float, of: str, where: Place, counted: LibraryCalls | None
) -> Insight:
    calls = counted.calls if counted is not None else 0
    each = ""
    if counted is not None and calls > 1:
        each = f", in {calls} calls of {format_quantity(counted.seconds / calls, 's')} under cProfile"
    package = f" of {library}" if library not in ("", "built-in", "standard library") else ""
    again = calls != 1
    return Insight(
        "heavy-library-call",
        f"Call {name} less often in {where.function}"
        if again
        else f"Give {name} in {where.function} less to do",
        f"{percent_text(100 * share)} of {of} is in {name}{package}{each}",
        "Keep what it gives and use it again (a variable outside of the loop, functools.cache), call it once for "
        "many, or ask it for less."
        if again
        else "Pass less data or ask for less, look for an option that does less or runs on several processors, or for "
        "another function that gives the same.",
        where,
        Gain(share, of, "as if it took no time"),
    )


def _returning_libraries(run: RunEvidence) -> set[str]:
    """The libraries that call the program's own functions: their time is not theirs alone."""
    profile = run.profile("program-calls")
    return {
        edge.library or ""
        for edge in (profile.hotspots if profile is not None else ())
        if edge.callee is not None
        and is_users_code(edge.callee.file)
        and not is_users_code(edge.file)
        and (edge.total or 0.0) >= 0.1 * (profile.total if profile is not None else 0.0)
        and edge.callee.function != "<module>"
    }

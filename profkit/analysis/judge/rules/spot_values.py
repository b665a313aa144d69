"""Insights on the values that a line works on: the lists, texts, arrays and patterns that are seen there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rules.counted import calls_from, last_name, profile_of
from profkit.analysis.judge.rules.spot_exceptions import exceptions
from profkit.analysis.judge.rules.spots import (
    LOOKS,
    MIN_CALLS,
    REPEATED,
    SEVERAL,
    Find,
    calls_text,
    count_text,
    say,
    unused_import,
)
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Construct, Insight, LineSamples, RunDocument, Variable

LONG = 100  # elements of a list that is searched
# Elements of a list that move each time that its front changes: `pop(0)` took 49 ns for 120, 100 ns for 1,000 and 17 us
# for 100,000, `popleft` 40 ns (CPython 3.11).
LONG_SHIFT = 1000
LONG_TEXT = 10_000  # characters of a text that is searched
# Seconds to compare an element, at most: if it took longer, there were more comparisons. The second number is for
# comparisons that call nothing.
EACH_ELEMENT, EACH_PLAIN = 2e-6, 0.5e-6
ADDING = 2e-6  # seconds, at most, that a call of append or add takes, with all that is around it
WORTH_KEEPING, A_SAMPLE = (
    2e-6,
    2.5e-3,
)  # seconds of a call: a dict takes a tenth of it; two samples see two calls
ONE_CALL, OF_ALL = 0.2, 0.15  # seconds, and share of a place's time, that one call of a pattern takes
COPIED = 1000  # elements that are copied to add one
COLLECTING = 0.15  # of the wall time
_ARRAYS = ("numpy.", "torch.", "pandas.", "polars.")
_OF_NUMPY = "_multiarray_umath"  # the library in which NumPy compares, chooses and computes
_GONE_THROUGH = ("list", "tuple", "dict", "set", "frozenset", "collections.deque", "collections.OrderedDict")
_TREES = ("xml.", "lxml.", "bs4.")
# A pattern that only trims: one class of characters at the end of the text, or at its beginning and its end.
_TRIMS = re.compile(r"(?:\^(?:X)[+*]\|)?(?:X)[+*](?:\$|\\Z)".replace("X", r"\[(?:[^]\\]|\\.)+\]|\\[sS]| "))
# Seconds that reading one element may take: if an execution of a line takes longer, the line does something else.
_AN_ELEMENT = {"numpy": 5e-6, "torch": 50e-6, "pandas": 500e-6, "polars": 500e-6}
_NESTED = re.compile(r"\((?:[^()\\]|\\.)*[*+](?:[^()\\]|\\.)*\)[*+{]")
# Functions with the same result for the same text, which cost so much that keeping the results pays.
_KEEPABLE = re.compile(
    r"json\.(loads|dumps)|re\.compile|yaml\.\w*load\w*|pickle\.loads|ast\.parse|tomllib\.loads|zlib\.\w+|hashlib\.\w+"
    r"|xml\.\w+\.\w+\.(fromstring|parse)|datetime\.datetime\.strptime|copy\.deepcopy"
)
_TEXTS = (
    (
        # with a bound: all of what is shared between processes is read by `[:]`
        re.compile(r"\bsum\(\w[\w.]*\[(?! *: *\])[^][]*:[^][]*\]\)"),
        "running-sum",
        "A slice is made and summed in each call",
    ),
    (re.compile(r"\{\*\*[\w.]+, \w"), "copied-dict", "A whole dict is copied to change a part of it"),
)
_COPIED_BY_SLICES = ("bytes", "str", "bytearray", "list", "tuple")
OBJECTS = "numpy.ndarray of objects"  # the name of the type in sampled variables
_COSTS = re.compile(
    r"slow|performance|inefficien|fragmented|cartesian product|recompil|overhead|expensive", re.IGNORECASE
)


def own_warning(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a warning of a library about the speed of the line, in its own words."""
    for warning in document.warnings:
        same_file = PurePath(document.workload.folder, warning.file) == PurePath(
            document.workload.folder, spot.where.file or ""
        )
        if not same_file or warning.line != spot.where.line or spot.kind not in ("python", "library"):
            continue
        if not _COSTS.search(f"{warning.category}: {warning.text}"):
            continue
        first, _, rest = warning.text.partition(". ")
        return say(
            spot,
            "own-warning",
            f"This line gets a {warning.category}: {first.rstrip('.')}",
            calls_text(spot),
            change=rest.strip() or words("own-warning", "host"),
        )
    return None


def linear_search(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a collection that is searched or shifted element by element."""
    constructs = spot.code.constructs if spot.code is not None else ()
    for construct in constructs:
        held = spot.variables.get(construct.name)
        if held is None or construct.kind not in ("contains", "shift", "search"):
            continue
        if construct.how.startswith("rest "):
            sampled = (int(construct.how.split()[1]), spot.code.loop if spot.code is not None else None)
            proved = spot.where.line in sampled or works_itself(document, spot)
            if held.type in _COPIED_BY_SLICES and (held.length or 0) >= COPIED and proved:
                return _copied_rest(spot, construct, held)
        elif _is_gone_through(spot, construct, held, _comprehension_runs(document, spot)):
            return _searched(spot, construct, held)
    return _searched_before(spot)


OWN_WORK = 0.5  # of a function's time, in its own operators


def works_itself(document: RunDocument, spot: CodeSpot) -> bool:
    """Return whether cProfile counted that the function of a place spends its time in its own operators."""
    profile = profile_of(document, "own-time")
    same = (spot.where.file, last_name(spot.where.function or ""))
    counted = (
        row for row in (profile.hotspots if profile is not None else ()) if (row.file, row.function) == same
    )
    return any(row.own >= OWN_WORK * (row.total or row.own) for row in counted)


def _searched_before(spot: CodeSpot) -> Insight | None:
    """Return a list that was searched before a line at which the samples were taken, and that cannot take so long.

    The line only adds to something; the test before it, once for each call, has the time for some of the list.
    """
    each = spot.seconds / spot.calls if spot.calls and spot.kind == "python" else 0.0
    for construct in spot.code.find("tested-before") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        if held is None or held.type not in ("list", "tuple", "collections.deque"):
            continue
        if (spot.calls or 0) >= MIN_CALLS and ADDING < each <= EACH_PLAIN * (held.length or 0):
            found = _searched(spot, replace(construct, kind="contains", how=""), held)
            evidence = (
                f"{percent_text(100 * spot.share)} of the time is at line {spot.where.line}, right behind this search, "
                f"which only adds to something and cannot take {format_quantity(each, 's')} each time; "
                f"{calls_text(spot)}; each lookup scans the list from the start"
            )
            return replace(found, evidence=evidence, where=replace(spot.where, line=int(construct.how)))
    return None


_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")  # were functions before Python 3.12


def _comprehension_runs(document: RunDocument, spot: CodeSpot) -> int:
    """Return how often cProfile counted a comprehension of a place's line; 0 where it has none of its own."""
    return max(
        (
            edge.calls or 0
            for edge in calls_from(document, spot)
            if edge.callee is not None
            and edge.callee.function in _COMPREHENSIONS
            and (edge.callee.file, edge.callee.line) == (spot.where.file, spot.where.line)
        ),
        default=0,
    )


def _is_gone_through(spot: CodeSpot, construct: Construct, held: Variable, runs: int) -> bool:
    """Return whether a search reads one element after the other, many of them, and does so often.

    `runs`: how often a comprehension of the line was counted.
    """
    length = held.length or 0
    if construct.kind == "contains" and held.type.startswith(("numpy.ndarray", "pandas.")):
        # `in` of a series itself asks its index, which is a hash table
        array = held.type.startswith("numpy.ndarray") and length >= LONG
        looped = spot.code is not None and spot.code.loop is not None and spot.looks >= LOOKS
        return (array or construct.how == "array") and (looped or is_often(spot, held))
    if construct.kind != "search":
        by_value = held.type == "dict" and construct.how == "values"
        least = LONG_SHIFT if construct.how in ("pop", "insert") else LONG
        return length >= least and (held.type in ("list", "tuple", "collections.deque") or by_value)
    each = EACH_ELEMENT if "(" in construct.how else EACH_PLAIN
    if not stays_in_calls(spot, construct.name, held, each, runs):
        return False
    often = runs >= MIN_CALLS or is_often(spot, held, each)
    if not construct.how.startswith("."):
        return often and length >= LONG and held.type in _GONE_THROUGH
    if held.type in ("str", "bytes"):
        return often and length >= LONG_TEXT
    return often and held.type.startswith(_TREES)


def stays_in_calls(
    spot: CodeSpot, name: str, held: Variable, each: float = EACH_ELEMENT, runs: int = 0
) -> bool:
    """Return whether a name is no parameter, or the loop that calls the function gives the same each time.

    Or one call of the function goes through all of it many times: by the `runs` of a comprehension, or at `each`
    seconds for an element.
    """
    if spot.code is None:
        return True
    looped = [construct.how for construct in spot.code.find("looped-parameter") if construct.name == name]
    if looped and spot.calls:
        one_call = max(spot.seconds / each / max(1, held.length or 0), runs) / spot.calls
        looped = looped if one_call < MIN_CALLS else []
    places = [*looped, *(one.how for one in spot.code.find("parameter") if one.name == name)]
    given = spot.caller_code.find("gives") if spot.caller_code is not None else ()
    function = (spot.where.function or "").rpartition(".")[2]
    return all(
        any(construct.name == function and at in construct.how.split() for construct in given)
        for at in places
    )


def _searched(spot: CodeSpot, construct: Construct, held: Variable) -> Insight:
    """Return the collection that is searched element by element, and the type that would find the element at once."""
    size = f" of {count_text(held.length)}" if held.length and held.length > 0 else ""
    at_front = construct.how in ("pop", "insert")
    what = "moves all elements behind it" if at_front else "lookup scans the list from the start"
    often = f"; {calls_text(spot)}" if calls_text(spot) else ""
    if construct.kind == "search":
        tree = held.type.startswith(_TREES)
        what = (
            f"{construct.name}{construct.how}(...)" if construct.how.startswith(".") else f"`{construct.how}`"
        )
        what += " goes through it" if construct.how.startswith(".") else " scans it from the start"
        what += " from its start each time" if construct.how.startswith(".") else ""
        key = "tree" if tree else "text" if held.type in ("str", "bytes") else "key"
        change = words(f"linear-search.{key}", "host").format(name=construct.name)
    elif at_front:
        what = f"each {what}"
        change = f"{construct.name} = collections.deque({construct.name}), with popleft and appendleft"
    elif held.type.startswith(("numpy.ndarray", "pandas.")):
        what = "each lookup compares all elements"
        change = words("linear-search.array", "host")
    else:
        what = f"each {what}"
        change = words(
            f"linear-search.{construct.how if construct.how in ('remove', 'count') else 'value'}", "host"
        ).format(name=construct.name)
    if construct.how == "array":
        title = f"Do not search the values of {construct.name} each time"
        return say(spot, "linear-search", title, f"{what}{often}", change=change)
    return say(
        spot,
        "linear-search",
        f"{construct.name} is {'an' if held.type[0] in 'aeiox' else 'a'} {held.type}{size}: "
        + ("do not take from its front" if at_front else "do not search it each time"),
        f"{what}{often}",
        change=change,
    )


def _copied_rest(spot: CodeSpot, cut: Construct, held: Variable) -> Insight:
    """Return a value that is read from its front and replaced by a copy of its rest each time."""
    return say(
        spot,
        "linear-search",
        f"{cut.name} is copied each time something is taken off its front",
        f"it is a {held.type} of up to {count_text(held.length or 0)} elements; {cut.name}[n:] "
        "copies everything that is left",
        where=replace(spot.where, line=int(cut.how.split()[1])),
        change=words(f"copied-rest.{'list' if held.type in ('list', 'tuple') else 'bytes'}", "host"),
    )


def made_for_search(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a list or a set that is made for a single search."""
    made = spot.code.find("contains-made") if spot.code is not None else ()
    if not made:
        return None
    is_list = made[0].name in ("list", "tuple", "sorted")
    return say(
        spot,
        "linear-search" if is_list else "repeated-work",
        f"A new {made[0].how} is made for each search",
        f"all of it is copied{' and then searched' if is_list else ''} each time",
        change=f"make it once, before the loop{', as a set' if is_list else ''}",
    )


def repeated_sort(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a list that is kept sorted by sorting it again after each change."""
    for construct in spot.code.find("sorts") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        known = held is not None and held.type in ("list", "dict", "set", "collections.deque")
        if (
            held is None
            or not known
            or (held.length or 0) < LONG
            or not stays_in_calls(spot, construct.name, held)
        ):
            continue
        if not is_often(spot, held):
            continue
        heap = construct.how == "heapify"
        times = max(spot.calls or 0, spot.executions or 0)
        return say(
            spot,
            "repeated-sort",
            f"{construct.name} is {'made a heap' if heap else 'sorted'} again each time"
            + (f", {count_text(times, 'time')}" if times >= MIN_CALLS else ""),
            f"it has {count_text(held.length or 0)} elements; {calls_text(spot)}",
            change=words(f"repeated-sort{'.heap' if heap else ''}", "host"),
        )
    return None


def is_often(spot: CodeSpot, held: Variable, each: float = EACH_ELEMENT) -> bool:
    """Return whether a place goes through what it holds many times, by counts or by the most time of one element."""
    counted = max(spot.calls or 0, spot.executions or 0) >= MIN_CALLS
    return counted or (held.length is not None and spot.seconds >= MIN_CALLS * held.length * each)


def object_array(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Find arithmetic on an array of NumPy that holds objects of Python: a library that gets texts has them in such."""
    if spot.under is not None and spot.under.library not in (None, "numpy", "built-in"):
        return None
    text = spot.code.text if spot.code is not None else ""
    name = next(
        (name for name, variable in spot.variables.items() if variable.type == OBJECTS and name in text), None
    )
    if name is None:
        return None
    return say(
        spot,
        "object-array",
        f"{name} holds Python objects, so NumPy calls their methods one by one",
        calls_text(spot),
    )


def known_text(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a line whose text proves that each call works on a whole slice or a whole dict."""
    if spot.code is None or (spot.calls or 0) < MIN_CALLS:
        return None
    found = next((entry for entry in _TEXTS if entry[0].search(spot.code.text)), None)
    return say(spot, found[1], found[2], calls_text(spot)) if found is not None else None


def mask_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a table whose rows are all compared again for each group that a loop takes from it."""
    for construct in spot.code.find("mask") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        seen = held is not None
        # What an object holds is not looked at; NumPy's own library has the time where that is an array.
        if not seen and "." in construct.name and spot.under is not None:
            held = Variable("numpy.ndarray", None) if _OF_NUMPY in (spot.under.library or "") else None
        looped = spot.code is not None and spot.code.loop is not None and spot.looks >= LOOKS
        if (
            held is None
            or not held.type.startswith(_ARRAYS)
            or not (looped or (spot.calls or 0) >= MIN_CALLS)
        ):
            continue
        return say(
            spot,
            "mask-for-each",
            f"All rows of {construct.name} are compared again for each {construct.how}",
            (f"{construct.name} is a {held.type}" if seen else "the time is in NumPy's own library")
            + ", and a loop selects its rows by comparing all of them each time"
            + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
            change=words(f"mask-for-each{'.pandas' if held.type.startswith('pandas.') else ''}", "host"),
        )
    return None


def growing_copy(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a text or an array that is copied each time that something is added."""
    for construct in spot.code.find("grow") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        if construct.how == "sum":
            if held is not None and held.type in ("list", "tuple") and (held.length or 0) >= LONG:
                return _summed_lists(spot, construct.name, held)
            continue
        # a literal in the sum proves its type, and the share its cost
        if held is None and construct.how in ("text", "texts"):
            held = Variable("str", COPIED)
        if held is None or (held.type == "str" and "." not in construct.name and construct.how != "texts"):
            continue  # CPython appends to a text in place if only a local name refers to it
        array = held.type.startswith(_ARRAYS) and construct.how not in ("+", "+=")
        copied = ("str", "bytes", "tuple") if construct.how == "+=" else ("str", "bytes", "tuple", "list")
        if not array and (held.type not in copied or (held.length or 0) < COPIED):
            continue
        joined = (
            '"".join(parts)' if held.type in ("str", "bytes") else "one numpy.array(parts) or concatenate"
        )
        long = held.length is not None and held.length > COPIED
        size = f" of {count_text(held.length or 0)} characters" if long and held.type == "str" else ""
        return say(
            spot,
            "growing-copy",
            f"{construct.name} is copied each time something is added to it",
            f"it is a {held.type}{size}, and all of it is copied to add to it",
            change=f"append the parts to a list, and make {construct.name} of it once, at the end: "
            + ("parts.append(...) instead" if held.type in ("list", "tuple") else joined),
        )
    return None


def _summed_lists(spot: CodeSpot, name: str, held: Variable) -> Insight:
    """Find lists that are joined by `sum(lists, [])`, which copies the result so far for each of them."""
    return say(
        spot,
        "growing-copy",
        f"sum(...) copies the list for each of the {count_text(held.length or 0)} lists that it joins",
        calls_text(spot),
        change=f"list(itertools.chain.from_iterable({name})), or [x for part in {name} for x in part]",
    )


def element_wise(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Find elements of an array, a tensor or a frame, one by one from a loop of Python."""
    code = spot.code
    if code is None or code.loop is None or spot.kind not in ("python", "library"):
        return None
    for construct in code.find("element"):
        held = spot.variables.get(construct.name)
        kind = held.type if held is not None else ""
        # `[...]` of a frame is a column, or all rows that an array chooses; of an array a part, where an array chooses.
        by = (
            [spot.variables.get(name) for name in construct.how.removeprefix("cell").strip("[]").split(",")]
            if "[" in construct.how
            else []
        )
        cell = construct.how.startswith("cell")  # of a column, but for an array of rows
        chosen = (kind.endswith("DataFrame") and not cell) or any(
            x and x.type.startswith(_ARRAYS) for x in by
        )
        several = construct.how.startswith(("[", "cell")) and chosen
        known = (
            kind.startswith(_ARRAYS) and not several and (construct.how != "['']" or kind == "pandas.Series")
        )
        item = construct.how == "item" and not construct.name
        arrays = (n for n, v in spot.variables.items() if item and v.type.startswith(_ARRAYS))
        name = construct.name if known else next(arrays, "")
        if not name or _is_in_a_library(spot, spot.variables[name].type.partition(".")[0]):
            continue
        kind = spot.variables[name].type
        each = spot.seconds / spot.executions if spot.executions and construct.how != "apply" else 0.0
        if each > _AN_ELEMENT.get(kind.partition(".")[0], each):
            continue
        carried = next((each.name for each in code.find("carried") if not each.how), "")
        if carried and construct.how == "item":
            continue  # one number of a result that the next iteration needs
        if carried and construct.how != "apply":
            return _one_after_the_other(spot, name, carried, kind)
        return say(
            spot,
            "element-wise",
            f"Work on all of {name} at once, not on one element at a time",
            f"{name} is a {kind}, and a Python loop reads its elements one at a time; each access costs about a "
            "hundred times what an operation on the whole does for it",
            change=words(f"element-wise.{kind.partition('.')[0]}", "host"),
        )
    return None


def _one_after_the_other(spot: CodeSpot, name: str, carried: str, kind: str) -> Insight:
    """Return elements that a loop has to take one after the other, since each iteration needs the one before it."""
    return say(
        spot,
        "element-wise",
        f"Do not run this loop on elements of a {kind}: each iteration needs the one before, by way of {carried}",
        f"each {name}[...] makes an object, or takes one apart, which costs about as much as the arithmetic",
        change=words("element-wise.carried", "host").format(name=name),
    )


def _is_in_a_library(spot: CodeSpot, arrays: str) -> bool:
    """Return whether a line spends its time in a call of a library, and not in the elements that it reads or sets.

    `arrays`: the library of the array. Elements of NumPy's are read in C, so what is known below them is a call.
    """
    under = spot.under
    if under is None or not under.name or under.library in (None, "", "built-in", "standard library"):
        return False
    return under.library != arrays or (
        arrays == "numpy" and (under.calls or 0) > 0 and spot.kind == "library"
    )


def repeated_work(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a pure recursion that gets the same arguments again, or a text that is parsed again and again."""
    code = spot.code
    if code is None:
        return None
    few = spot.arguments is not None and spot.looks >= LOOKS and spot.arguments <= REPEATED * spot.looks
    if code.find("pure-recursion") and spot.arguments is not None and few:
        recursion = code.find("pure-recursion")[0]
        of_itself = count_text(spot.calls, "call") if spot.calls else "many calls"
        return say(
            spot,
            "repeated-work",
            f"{place_name(spot.where)} is called with the same arguments again and again",
            f"{of_itself} of itself; {count_text(spot.arguments, 'different argument')} in "
            f"{spot.looks} observed calls, and "
            "its result depends on nothing else",
            where=replace(spot.where, line=int(recursion.how)),
            change=f"@functools.cache above def {place_name(spot.where)}, or a loop that keeps the results that the "
            "next step needs",
        )
    each = spot.seconds / spot.calls if spot.calls else 0.0
    long = (
        (10 if spot.partial else 1) * WORTH_KEEPING <= each <= A_SAMPLE
    )  # many samples may be of one longer call
    if code.find("pure") and spot.arguments is not None and few and (spot.calls or 0) >= MIN_CALLS and long:
        return say(
            spot,
            "repeated-work",
            f"{place_name(spot.where)} gets the same arguments again and again",
            f"{calls_text(spot)}; {count_text(spot.arguments, 'different argument')} in "
            f"{count_text(spot.looks)} observed calls, and its result depends on nothing else",
            spot.share * (1 - spot.arguments / spot.looks),
            change=words("repeated-work.pure", "host").format(name=last_name(spot.where.function or "")),
        )
    for construct in code.find("call"):
        calls = spot.calls or (spot.under.calls if spot.under is not None else None) or 0
        kept = (
            construct.how == "constant"
            and _KEEPABLE.fullmatch(construct.name)
            and not _may_change(spot, construct.name)
        )
        if kept and calls >= SEVERAL:
            return say(
                spot,
                "repeated-work",
                f"{construct.name} does the same work {count_text(calls)} times",
                f"it gets the same arguments each time; {calls_text(spot)}",
                spot.share * (1 - 1 / calls),
                change=f"call {construct.name} once, outside of {place_name(spot.where)}, and keep its result",
            )
    return None


_OF_OBJECTS = re.compile(r".*\b(dumps|deepcopy)")
_FIXED = ("str", "bytes", "tuple", "int", "float", "re.Pattern")


def _may_change(spot: CodeSpot, function: str) -> bool:
    """Return whether an argument that a line passes may have another value each time, under the same name."""
    text = spot.code.text if spot.code is not None else ""
    named = [
        held for name, held in spot.variables.items() if re.search(rf"(?<![\w.]){re.escape(name)}\b", text)
    ]
    changes = any(held.type not in _FIXED or held.first is not None for held in named)
    return changes or (not named and _OF_OBJECTS.fullmatch(function) is not None)


def backtracking(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a regular expression of which one match takes as long as thousands of others, or that trims a text."""
    for construct in spot.code.find("pattern") if spot.code is not None else ():
        if construct.how in ("sub", "subn") and _TRIMS.fullmatch(construct.name):
            return say(
                spot,
                "backtracking",
                "Trim the text without a regular expression",
                f"{construct.name} is tried at each character, and reads each run within the text again from each of "
                f"its characters; {calls_text(spot)}",
                change="text.strip(CHARACTERS), or rstrip or lstrip for one side",
            )
        if (spot.longest or 0.0) < max(ONE_CALL, OF_ALL * spot.seconds):
            continue
        nested = _NESTED.search(construct.name)
        part = (
            f"{nested[0]} repeats a part that is itself repeated"
            if nested
            else "it can match the same text in many ways"
        )
        return say(
            spot,
            "backtracking",
            "One match of this pattern takes nearly all the time",
            f"a single call took {format_quantity(spot.longest or 0.0, 's')}; {construct.name or 'the pattern'}: "
            f"{part}",
        )
    return None


def calls_collector(line: LineSamples) -> bool:
    """Return whether the line itself asks for a collection, which no threshold of the collector prevents."""
    return line.code is not None and any(
        construct.name == "gc.collect" for construct in line.code.find("call")
    )


def collecting(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find the garbage collector at work again and again while this place runs."""
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    if sampled is None or sampled.wall <= 0 or spot.kind not in ("python", "library"):
        return None
    place = spot.where
    # The small lines of a function that compute by themselves are one place.
    others = {hot_spot.where for hot_spot in document.hot_spots if hot_spot is not spot}
    here = [
        sample
        for sample in sampled.lines
        if (sample.file, sample.function) == (place.file, place.function)
        and (
            sample.line == place.line
            or (spot.kind == "python" and replace(place, line=sample.line) not in others)
        )
    ]
    share = sum(sample.collecting for sample in here) / sampled.wall
    if share < COLLECTING:
        return None
    line = max(here, key=lambda sample: sample.collecting)
    is_explicit = calls_collector(line)
    # What the collector's thresholds can change, and what a trial of them refutes, is another finding.
    return say(
        spot,
        "forced-collection" if is_explicit else "garbage-collection",
        "gc.collect scans all objects each time it is called"
        if is_explicit
        else "The garbage collector scans all objects again and again",
        f"it took {percent_text(100 * share)} of the run time while this place "
        f"{'called gc.collect' if is_explicit else 'made objects'}",
        min(spot.share, share),
        replace(place, line=line.line),
        words("forced-collection" if is_explicit else "garbage-collection", "host"),
    )


PATTERNS: tuple[Find, ...] = (
    own_warning,
    collecting,
    exceptions,
    linear_search,
    made_for_search,
    growing_copy,
    object_array,
    repeated_sort,
    known_text,
    mask_for_each,
    element_wise,
    backtracking,
    repeated_work,
    unused_import,
)

"""Insights on the hot spots of a run: what pattern a place is, where that is proved there; else the place itself.

A pattern needs its proof at the place: the source says what a line does, samples say what its variables are and how
long one call takes, cProfile says how often. Without proof the place alone is said, which is never wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TypeAlias

from profkit.analysis.function_names import called_name, place_name
from profkit.analysis.hot_spots import DOES, RUNS_CODE
from profkit.analysis.hot_spots.python import is_below, outer_spots
from profkit.analysis.judge.rules.counted import last_name, profile_of
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Construct, Gain, Insight, Place, RunDocument, Variable

FIRST = 0.1  # of the wall time: a place with less is no first answer
OTHER = 0.1  # a pattern at another place is worth saying from here on
IMPORTS = 0.2  # of the wall time
LONG = 100  # elements of a list that is searched
MIN_CALLS, SEVERAL = 100, 10  # calls
LOOKS = 20  # at arguments, until their number says something
LONG_TEXT = 10_000  # characters of a text that is searched
EACH_ELEMENT = 2e-6  # seconds, at most, to compare an element: what took more was compared more often
WORTH_KEEPING, A_SAMPLE = (
    2e-6,
    2.5e-3,
)  # seconds of a call: a dict takes a tenth of it; two samples see two calls
REPEATED = 0.5  # of the looks: fewer different arguments than that are the same again
ONE_CALL, OF_ALL = 0.2, 0.15  # seconds, and share of a place's time, that one call of a pattern takes
COPIED = 1000  # elements of what is copied to add one
RAISING = 0.05  # of a place's time
EACH_RAISE = 0.4e-6  # seconds, to raise and to catch: 0.3 to 1 of CPython 3.11 on servers
COLLECTING = 0.15  # of the wall time
EXPLAINED = 0.5  # of a place without a finding, by a line that leads there
_ARRAYS = ("numpy.", "torch.", "pandas.", "polars.")
_GONE_THROUGH = ("list", "tuple", "dict", "set", "frozenset", "collections.deque", "collections.OrderedDict")
_TREES = ("xml.", "lxml.", "bs4.")
# A pattern that only trims: one class of characters at the end of the text, or at its beginning and its end.
_TRIMS = re.compile(r"(?:\^(?:X)[+*]\|)?(?:X)[+*](?:\$|\\Z)".replace("X", r"\[(?:[^]\\]|\\.)+\]|\\[sS]| "))
# Seconds that taking one element may cost: what takes longer for each execution of a line is something else.
_AN_ELEMENT = {"numpy": 5e-6, "torch": 50e-6, "pandas": 500e-6, "polars": 500e-6}
_NESTED = re.compile(r"\((?:[^()\\]|\\.)*[*+](?:[^()\\]|\\.)*\)[*+{]")
# Functions that give the same for the same text, and their cost is worth keeping what they gave.
_KEEPABLE = re.compile(
    r"json\.(loads|dumps)|re\.compile|yaml\.\w*load\w*|pickle\.loads|ast\.parse|tomllib\.loads|zlib\.\w+|hashlib\.\w+"
    r"|xml\.\w+\.\w+\.(fromstring|parse)|datetime\.datetime\.strptime|copy\.deepcopy"
)
_TEXTS = (
    (
        re.compile(r"\bsum\(\w[\w.]*\[[^][]*:[^][]*\]\)"),
        "running-sum",
        "A slice is made and summed in each call",
    ),
    (re.compile(r"\{\*\*[\w.]+, \w"), "copied-dict", "A whole dict is copied to change a part of it"),
)
_COPIED_BY_SLICES = ("bytes", "str", "bytearray", "list", "tuple")
OBJECTS = "numpy.ndarray of objects"  # as the look at variables calls it

Find: TypeAlias = Callable[[RunDocument, CodeSpot], "Insight | None"]


def count_text(number: int, word: str = "") -> str:
    """Return `1,346,269 calls`."""
    return f"{number:,}" + (f" {word}{'' if number == 1 else 's'}" if word else "")


def say(
    spot: CodeSpot,
    rule: str,
    title: str,
    evidence: str,
    share: float | None = None,
    where: Place | None = None,
    change: str = "",
) -> Insight:
    """Return an insight on a spot: its share and its source line come first in the evidence. Without a `change`
    the rule's.
    """
    text = f"{percent_text(100 * spot.share)} of the time"
    if spot.code is not None and where is None:
        text += f" is in `{spot.code.text}`"
    won = spot.share if share is None else share
    return Insight(
        rule,
        title,
        f"{text}: {evidence}" if evidence else text,
        change or words(rule, "host"),
        where or spot.where,
        Gain(min(1.0, won), "the run time", ""),
    )


def called_names(spot: CodeSpot) -> list[str]:
    """Return what the source line of a spot calls."""
    return [one.name for one in spot.code.find("call")] if spot.code is not None else []


_CHEAP = frozenset({"append", "add", "len", "float", "int", "abs", "round", "range", "get", "print"})


def takes_the_time(spot: CodeSpot, function: str) -> bool:
    """Return whether a function that is written in C is what a line spends its time in: nothing else there is a
    long call.
    """
    under = spot.under
    if under is not None and under.name and last_name(under.name) not in ("<genexpr>", "<lambda>"):
        return last_name(under.name) == function
    return {last_name(name) for name in called_names(spot)} <= _CHEAP | {function}


def calls_text(spot: CodeSpot) -> str:
    """Return `2,000 calls of Connection.execute of libsqlite3, 0.37 ms each`, as far as it is known."""
    under, least = spot.under, "at least " if spot.partial else ""
    if under is None or not under.name:
        library = f"the work is in {under.library}" if under is not None and under.library else ""
        own = f"called {least}{count_text(spot.calls, 'time')}" if spot.calls and spot.calls > 1 else ""
        return "; ".join(part for part in (own, library) if part)
    name = called_name(under)
    named = (
        under.library
        and not under.library.startswith("<")
        and under.library not in ("built-in", "standard library", name.partition(".")[0])
    )
    of = f" of {under.library}" if named else ""
    if under.calls is None:
        return f"it calls {name}{of}"
    each = (
        f", {format_quantity(under.seconds_per_call, 's')} each"
        if under.seconds_per_call and under.calls > 1
        else ""
    )
    return f"{least}{count_text(under.calls, 'call')} of {name}{of}{each}"


# ------------------------------------------------------------ what the line works on


_COSTS = re.compile(
    r"slow|performance|inefficien|fragmented|cartesian product|recompil|overhead|expensive", re.IGNORECASE
)


def own_warning(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return what a library itself says of the line, in its own words: of what costs time alone."""
    for one in document.warnings:
        same_file = PurePath(document.workload.folder, one.file) == PurePath(
            document.workload.folder, spot.where.file or ""
        )
        if not same_file or one.line != spot.where.line or spot.kind not in ("python", "library"):
            continue
        if not _COSTS.search(f"{one.category}: {one.text}"):
            continue
        first, _, rest = one.text.partition(". ")
        return say(
            spot,
            "own-warning",
            f"This line gets a {one.category}: {first.rstrip('.')}",
            calls_text(spot),
            change=rest.strip() or words("own-warning", "host"),
        )
    return None


def linear_search(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a collection that is searched or shifted element by element."""
    constructs = spot.code.constructs if spot.code is not None else ()
    for one in constructs:
        held = spot.variables.get(one.name)
        if held is None or one.kind not in ("contains", "shift", "search"):
            continue
        if one.how.startswith("rest "):
            if held.type in _COPIED_BY_SLICES and (held.length or 0) >= COPIED:
                return _copied_rest(spot, one, held)
        elif _is_gone_through(spot, one, held):
            return _searched(spot, one, held)
    return None


def _is_gone_through(spot: CodeSpot, one: Construct, held: Variable) -> bool:
    """Return whether a search looks at one element after the other, at many of them, and does so often."""
    length = held.length or 0
    if one.kind == "contains" and held.type.startswith(("numpy.ndarray", "pandas.")):
        # `in` of a series itself asks its index, which is a hash table
        array = held.type.startswith("numpy.ndarray") and length >= LONG
        looped = spot.code is not None and spot.code.loop is not None and spot.looks >= LOOKS
        return (array or one.how == "array") and (looped or is_often(spot, held))
    if one.kind != "search":
        by_value = held.type == "dict" and one.how == "values"
        return length >= LONG and (held.type in ("list", "tuple", "collections.deque") or by_value)
    if not _stays_in_calls(spot, one.name):
        return False
    often = is_often(spot, held)
    if not one.how.startswith("."):
        return often and length >= LONG and held.type in _GONE_THROUGH
    if held.type in ("str", "bytes"):
        return often and length >= LONG_TEXT
    return often and held.type.startswith(_TREES)


def _stays_in_calls(spot: CodeSpot, name: str) -> bool:
    """Return whether a name is no parameter, or the loop that calls the function gives the same each time."""
    places = (
        [one.how for one in spot.code.find("parameter") if one.name == name] if spot.code is not None else []
    )
    given = spot.caller_code.find("gives") if spot.caller_code is not None else ()
    function = (spot.where.function or "").rpartition(".")[2]
    return all(any(one.name == function and at in one.how.split() for one in given) for at in places)


def _searched(spot: CodeSpot, one: Construct, held: Variable) -> Insight:
    """Return what is searched element by element, and what finds it at once."""
    size = f" of {count_text(held.length)}" if held.length and held.length > 0 else ""
    front = one.how in ("pop", "insert")
    what = "moves all elements behind it" if front else "lookup scans the list from the start"
    often = f"; {calls_text(spot)}" if calls_text(spot) else ""
    if one.kind == "search":
        tree = held.type.startswith(_TREES)
        what = f"{one.name}{one.how}(...)" if one.how.startswith(".") else f"`{one.how}`"
        what += " goes through it" if one.how.startswith(".") else " scans it from the start"
        what += " from its start each time" if one.how.startswith(".") else ""
        key = "tree" if tree else "text" if held.type in ("str", "bytes") else "key"
        change = words(f"linear-search.{key}", "host").format(name=one.name)
    elif front:
        what = f"each {what}"
        change = f"{one.name} = collections.deque({one.name}), with popleft and appendleft"
    elif held.type.startswith(("numpy.ndarray", "pandas.")):
        what = "each lookup compares all elements"
        change = words("linear-search.array", "host")
    else:
        what = f"each {what}"
        change = words(f"linear-search.{'remove' if one.how == 'remove' else 'value'}", "host").format(
            name=one.name
        )
    if one.how == "array":
        title = f"Do not search the values of {one.name} each time"
        return say(spot, "linear-search", title, f"{what}{often}", change=change)
    return say(
        spot,
        "linear-search",
        f"{one.name} is {'an' if held.type[0] in 'aeiox' else 'a'} {held.type}{size}: "
        + ("do not take from its front" if front else "do not search it each time"),
        f"{what}{often}",
        change=change,
    )


def _copied_rest(spot: CodeSpot, cut: Construct, held: Variable) -> Insight:
    """Return what is read from its front and made anew of its rest each time."""
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
    """Return a list that stays, and is sorted again with each change."""
    for one in spot.code.find("sorts") if spot.code is not None else ():
        held = spot.variables.get(one.name)
        known = held is not None and held.type in ("list", "dict", "set", "collections.deque")
        if held is None or not known or (held.length or 0) < LONG or not _stays_in_calls(spot, one.name):
            continue
        if not is_often(spot, held):
            continue
        heap = one.how == "heapify"
        times = max(spot.calls or 0, spot.executions or 0)
        return say(
            spot,
            "repeated-sort",
            f"{one.name} is {'made a heap' if heap else 'sorted'} again each time"
            + (f", {count_text(times, 'time')}" if times >= MIN_CALLS else ""),
            f"it has {count_text(held.length or 0)} elements; {calls_text(spot)}",
            change=words(f"repeated-sort{'.heap' if heap else ''}", "host"),
        )
    return None


def is_often(spot: CodeSpot, held: Variable) -> bool:
    """Return whether a place goes through what it holds many times, by counts or by the most time of one."""
    counted = max(spot.calls or 0, spot.executions or 0) >= MIN_CALLS
    return counted or (held.length is not None and spot.seconds >= MIN_CALLS * held.length * EACH_ELEMENT)


def object_array(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Arithmetic on an array of NumPy that holds objects of Python."""
    text = spot.code.text if spot.code is not None else ""
    name = next((name for name, one in spot.variables.items() if one.type == OBJECTS and name in text), None)
    if name is None:
        return None
    return say(
        spot,
        "object-array",
        f"{name} holds Python objects, so NumPy calls their methods one by one",
        calls_text(spot),
    )


def known_text(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a line that does with each call what its text says: to all rows, to a whole slice, to a whole dict."""
    if spot.code is None or (spot.calls or 0) < MIN_CALLS:
        return None
    found = next((one for one in _TEXTS if one[0].search(spot.code.text)), None)
    return say(spot, found[1], found[2], calls_text(spot)) if found is not None else None


def mask_for_each(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a table whose rows are all compared again for each group that a loop takes from it."""
    for one in spot.code.find("mask") if spot.code is not None else ():
        held = spot.variables.get(one.name)
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
            f"All rows of {one.name} are compared again for each {one.how}",
            f"{one.name} is a {held.type}, and a loop selects its rows by comparing all of them each time"
            + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
            change=words(f"mask-for-each{'.pandas' if held.type.startswith('pandas.') else ''}", "host"),
        )
    return None


def growing_copy(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a text or an array that is copied to add to it."""
    for one in spot.code.find("grow") if spot.code is not None else ():
        held = spot.variables.get(one.name)
        if one.how == "sum":
            if held is not None and held.type in ("list", "tuple") and (held.length or 0) >= LONG:
                return _summed_lists(spot, one.name, held)
            continue
        # a literal in the sum proves its type, the share what it costs
        if held is None and one.how in ("text", "texts"):
            held = Variable("str", COPIED)
        if held is None or (held.type == "str" and "." not in one.name and one.how != "texts"):
            continue  # CPython adds to a text in place where a local name alone holds it
        array = held.type.startswith(_ARRAYS) and one.how not in ("+", "+=")
        copied = ("str", "bytes", "tuple") if one.how == "+=" else ("str", "bytes", "tuple", "list")
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
            f"{one.name} is copied each time something is added to it",
            f"it is a {held.type}{size}, and all of it is copied to add to it",
            change=f"append the parts to a list, and make {one.name} of it once, at the end: "
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
    for one in code.find("element"):
        held = spot.variables.get(one.name)
        kind = held.type if held is not None else ""
        # `[...]` of a frame is a column, or all rows that an array chooses; of an array a part, where an array chooses.
        by = [spot.variables.get(name) for name in one.how.strip("[]").split(",")] if "[" in one.how else []
        chosen = kind.endswith("DataFrame") or any(x and x.type.startswith(_ARRAYS) for x in by)
        several = one.how.startswith("[") and chosen
        known = kind.startswith(_ARRAYS) and not several and (one.how != "['']" or kind == "pandas.Series")
        item = one.how == "item" and not one.name
        arrays = (n for n, v in spot.variables.items() if item and v.type.startswith(_ARRAYS))
        name = one.name if known else next(arrays, "")
        if not name:
            continue
        kind = spot.variables[name].type
        each = spot.seconds / spot.executions if spot.executions and one.how != "apply" else 0.0
        if each > _AN_ELEMENT.get(kind.partition(".")[0], each):
            continue
        return say(
            spot,
            "element-wise",
            f"Work on all of {name} at once, not on one element at a time",
            f"{name} is a {kind}, and a Python loop reads its elements one at a time; each access costs about a "
            "hundred times what an operation on the whole does for it",
            change=words(f"element-wise.{kind.partition('.')[0]}", "host"),
        )
    return None


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
    )  # of a longer call many looks would be one
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
    for one in code.find("call"):
        calls = spot.calls or (spot.under.calls if spot.under is not None else None) or 0
        if one.how == "constant" and _KEEPABLE.fullmatch(one.name) and calls >= SEVERAL:
            return say(
                spot,
                "repeated-work",
                f"{one.name} does the same work {count_text(calls)} times",
                f"it gets the same arguments each time; {calls_text(spot)}",
                spot.share * (1 - 1 / calls),
                change=f"call {one.name} once, outside of {place_name(spot.where)}, and keep its result",
            )
    return None


def backtracking(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a regular expression of which one match takes as long as thousands of others, or that trims a text."""
    for one in spot.code.find("pattern") if spot.code is not None else ():
        if one.how in ("sub", "subn") and _TRIMS.fullmatch(one.name):
            return say(
                spot,
                "backtracking",
                "Trim the text without a regular expression",
                f"{one.name} is tried at each character, and reads each run within the text again from each of its "
                f"characters; {calls_text(spot)}",
                change="text.strip(CHARACTERS), or rstrip or lstrip for one side",
            )
        if (spot.longest or 0.0) < max(ONE_CALL, OF_ALL * spot.seconds):
            continue
        nested = _NESTED.search(one.name)
        part = (
            f"{nested[0]} repeats a part that is itself repeated"
            if nested
            else "it can match the same text in many ways"
        )
        return say(
            spot,
            "backtracking",
            "One match of this pattern takes nearly all the time",
            f"a single call took {format_quantity(spot.longest or 0.0, 's')}; {one.name or 'the pattern'}: {part}",
        )
    return None


def unused_import(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the import that takes most of the time, where nothing that ran uses it."""
    if spot.under is None:
        return None
    unused = _is_unused(spot)
    needing = [] if unused else _functions_that_need(document, spot)
    if not unused and not needing:
        return None
    seconds = (
        format_quantity(spot.under.seconds_per_call, "s") if spot.under.seconds_per_call else "most of it"
    )
    used = (
        "nothing else in the file names it"
        if unused
        else f"{', '.join(needing[:3])} is the only user of it, and was not called"
    )
    return say(
        spot,
        "heavy-imports",
        f"Importing {spot.under.name} takes {percent_text(100 * spot.share)} of the time",
        f"{seconds} in {spot.under.name}; {used}",
    )


def _functions_that_need(document: RunDocument, spot: CodeSpot) -> list[str]:
    """Return the functions that alone use what is imported, where cProfile saw the whole run and none of them in it."""
    how = next((one.how for one in spot.code.find("import")), "") if spot.code is not None else ""
    counted = profile_of(document, "own-time")
    if not how.startswith("in ") or counted is None or counted.partial:
        return []
    names = how.split()[1:]
    ran = {one.function for one in counted.hotspots if one.file == spot.where.file}
    return [] if ran & set(names) else names


def _is_unused(spot: CodeSpot) -> bool:
    return spot.code is not None and any(one.how == "unused" for one in spot.code.find("import"))


def collecting(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the garbage collector looks through all objects again and again, each time while this place runs."""
    sampled = next((one for one in document.sampled if not one.native), None)
    if sampled is None or sampled.wall <= 0 or spot.kind not in ("python", "library"):
        return None
    place = spot.where
    # The small lines of a function that compute by themselves are one place.
    others = {one.where for one in document.hot_spots if one is not spot}
    here = [
        one
        for one in sampled.lines
        if (one.file, one.function) == (place.file, place.function)
        and (
            one.line == place.line or (spot.kind == "python" and replace(place, line=one.line) not in others)
        )
    ]
    share = sum(one.collecting for one in here) / sampled.wall
    if share < COLLECTING:
        return None
    line = max(here, key=lambda one: one.collecting)
    asked = line.code is not None and any(one.name == "gc.collect" for one in line.code.find("call"))
    return say(
        spot,
        "garbage-collection",
        "The garbage collector scans all objects again and again",
        f"it took {percent_text(100 * share)} of the run time while this place "
        f"{'called gc.collect' if asked else 'made objects'}",
        min(spot.share, share),
        replace(place, line=line.line),
        words(f"garbage-collection{'.asked' if asked else ''}", "host"),
    )


def place_alone(spot: CodeSpot) -> Insight:
    """Return the spot as the answer: where, how much, what is under it."""
    name = place_name(spot.where)
    name = "the top level" if name in ("", "top level") else name
    does = DOES.get(spot.kind, "waits")
    left = max(0.0, 1 - spot.share)
    called = f"; called from {spot.caller}" if spot.caller else ""
    return say(
        spot,
        "hot-spot",
        f"{name} takes the most time" if spot.kind in RUNS_CODE else f"{name} {does}",
        f"{calls_text(spot)}{called}".lstrip("; "),
        change=f"start here: all other places together take {percent_text(100 * left)} of the time"
        if spot.share >= 0.5
        else "no other line of the program takes more",
    )


def exceptions(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a function that raises and catches so often that this is what takes its time."""
    raised = profile_of(document, "raises")
    place = spot.where.function, spot.where.file
    raises = raised.hotspots if raised is not None else ()
    here = [one for one in raises if (one.function, one.file) == place and one.calls and one.callee]
    if not here or spot.kind not in ("python", "library"):
        return None
    rate = sum(one.own for one in here) / (here[0].calls or 1)
    count = rate * (spot.calls or here[0].calls or 0)
    # A program that waits for a free processor takes longer, and its exceptions do not.
    split = document.time_split
    running = split.cpu / split.wall if split is not None and split.cpu and split.wall > 0 else 1.0
    share = spot.share * min(1.0, count * EACH_RAISE / max(spot.seconds * min(1.0, running), 1e-9))
    if share < RAISING * spot.share:
        return None
    first = here[0]
    kind = first.callee.function if first.callee is not None else "exceptions"
    return say(
        spot,
        "exceptions",
        f"{place_name(spot.where)} raises {kind} about {count_text(int(count))} times",
        f"{100 * rate:.0f} exceptions in 100 calls, of the first {count_text(first.calls or 0, 'call')}; to raise "
        "one and to catch it costs about as much as ten tests",
        share,
        replace(spot.where, line=first.line),
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


def pattern_of(document: RunDocument, spot: CodeSpot, patterns: tuple[Find, ...]) -> Insight | None:
    """Return the pattern that is proved at a spot and explains most of its time; of equals the first."""
    proved = [found for find in patterns if (found := find(document, spot)) is not None]
    return max(proved, key=lambda one: one.gain.at_most if one.gain is not None else 0.0, default=None)


def spot_insights(
    document: RunDocument, patterns: tuple[Find, ...], calls: tuple[Find, ...] = ()
) -> Iterator[Insight]:
    """Yield the largest place with what it is, then patterns at others; imports are first only where nothing else is.

    `calls` are patterns of lines that call functions of the program: what explains more than the places below takes
    their place.
    """
    spots = [spot for spot in document.hot_spots if spot.kind != "rest" and spot.where.file is not None]
    first = next((spot for spot in spots if spot.kind != "import" and spot.share >= FIRST), None)
    needless = _needless_imports(document, spots)
    imports = next((spot for spot in spots if spot.kind == "import"), None)
    if first is None and imports is not None and imports.share >= FIRST and not needless:
        yield place_alone(imports)
    found = [
        (spot, one)
        for spot in spots
        if spot.kind != "import"
        for one in (pattern_of(document, spot, patterns) or (place_alone(spot) if spot is first else None),)
        # A place that takes little itself may keep others waiting.
        if one is not None and max(spot.share, _at_most(one)) >= OTHER
    ]
    found = [*needless, *_joined(found)]
    for outer in outer_spots(document) if calls else ():
        one = pattern_of(document, outer, calls) if outer.share >= OTHER else None
        if one is not None:
            found = [*_without_smaller(document, found, one), (outer, one)]
    yield from (one for _, one in sorted(found, key=lambda each: -_at_most(each[1])))


def _needless_imports(document: RunDocument, spots: Sequence[CodeSpot]) -> list[tuple[CodeSpot, Insight]]:
    """Return the imports that can be left out, where importing takes long enough."""
    imports = [spot for spot in spots if spot.kind == "import"]
    if sum(spot.share for spot in imports) < IMPORTS:
        return []
    found = ((spot, unused_import(document, spot)) for spot in imports if spot.share >= OTHER)
    return [(spot, insight) for spot, insight in found if insight is not None]


def _joined(found: list[tuple[CodeSpot, Insight]]) -> list[tuple[CodeSpot, Insight]]:
    """Return the findings without those that say the same of one line because of several places: what they win
    adds up.
    """
    kept: dict[tuple[str, Place], tuple[CodeSpot, Insight]] = {}
    for spot, one in found:
        before = kept.get((one.rule, one.where))
        if before is not None and before[1].gain is not None:
            gain = replace(before[1].gain, at_most=min(1.0, _at_most(before[1]) + _at_most(one)))
            kept[one.rule, one.where] = before[0], replace(before[1], gain=gain)
        else:
            kept[one.rule, one.where] = spot, one
    return list(kept.values())


def _at_most(one: Insight) -> float:
    return one.gain.at_most if one.gain is not None else 0.0


def _without_smaller(
    document: RunDocument, found: list[tuple[CodeSpot, Insight]], outer: Insight
) -> list[tuple[CodeSpot, Insight]]:
    """Return the findings without those below a line whose own finding explains as much, or says the same.

    A place alone, which says no change, goes where the line explains most of it.
    """
    return [
        (spot, one)
        for spot, one in found
        if (
            _at_most(one) * (EXPLAINED if one.rule == "hot-spot" else 1.0) > _at_most(outer)
            or not is_below(document, spot, outer.where)
        )
        and (one.rule, one.where.file, one.where.line) != (outer.rule, outer.where.file, outer.where.line)
    ]

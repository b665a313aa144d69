"""Insights on more work than the result needs: the source shows it, and the samples tell how much it costs.

Each needs what the line does, what its names hold, and either a count or the time that so many elements take.
"""

from __future__ import annotations

from profkit.analysis.judge.rules.counted import last_name
from profkit.analysis.judge.rules.spots import MIN_CALLS, Find, calls_text, count_text, say, takes_the_time
from profkit.analysis.judge.words import words
from profkit.core.types import CodeSpot, Insight, RunDocument

# Words that are replaced, and those in whose time one pass by a pattern goes through the text: of 100,000 words it took
# 46 ms, each `replace` 0.6 ms (CPython 3.11).
MIN_REPLACED_WORDS, WORDS_OF_A_PASS = 150, 75
LONG_SORT = 1000  # sorted elements
SMALL_SET = 8  # elements: making it again costs little
LARGE_MATRIX = 16  # rows


def few_of_sorted(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a sort of many elements of which only the first or last few are used."""
    for construct in spot.code.find("few-of-sorted") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        method = last_name(construct.how)
        if held is None or (held.length or 0) < LONG_SORT or not takes_the_time(spot, method):
            continue
        arrays = construct.how != "sorted"
        return say(
            spot,
            "partial-sort",
            f"All {count_text(held.length or 0)} elements of {construct.name} are sorted, and a few are kept",
            calls_text(spot),
            change=words(f"partial-sort.{'array' if arrays else 'list'}", "host"),
        )
    return None


def set_again(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a set that an inner loop makes again and again from the same elements."""
    for construct in spot.code.find("set-again") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        times = max(spot.executions or 0, (spot.under.calls or 0) if spot.under is not None else 0)
        size = held.length or 0 if held is not None else 0
        if held is None or held.type not in ("list", "tuple", "str") or size < SMALL_SET:
            continue
        if times < MIN_CALLS and spot.seconds < MIN_CALLS * size * 1e-6:
            continue
        return say(
            spot,
            "repeated-work",
            f"{construct.how}({construct.name}) is made again in each pass of the inner loop, of the same elements",
            f"{construct.name} is a {held.type} of up to {count_text(size)} elements, and stays the same in that loop"
            + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
            change=words("repeated-work.sets", "host").format(name=construct.name),
        )
    return None


def replaced_one_by_one(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a text that is searched and copied once for each word that may be in it."""
    for construct in spot.code.find("replaces") if spot.code is not None else ():
        held = spot.variables.get(construct.how)
        if held is None or (held.length or 0) < MIN_REPLACED_WORDS or not takes_the_time(spot, "replace"):
            continue
        return say(
            spot,
            "replaced-one-by-one",
            f"All of {construct.name} is searched once for each of the {count_text(held.length or 0)} elements of "
            f"{construct.how}",
            calls_text(spot),
            spot.share * (1 - WORDS_OF_A_PASS / (held.length or WORDS_OF_A_PASS)),
            change=words("replaced-one-by-one", "host").format(name=construct.name, words=construct.how),
        )
    return None


def product_of_lists(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a product of matrices that are lists of lists, computed by three nested loops of Python."""
    for construct in spot.code.find("list-product") if spot.code is not None else ():
        held = [spot.variables.get(name) for name in (construct.name, construct.how)]
        if any(each is None or each.type != "list" or (each.length or 0) < LARGE_MATRIX for each in held):
            continue
        return say(
            spot,
            "product-of-lists",
            f"Multiply {construct.name} and {construct.how} as arrays of NumPy: this is a product of matrices",
            f"three loops over lists of {count_text(held[0].length or 0)} rows"
            if held[0] is not None
            else "",
            change=words("product-of-lists", "host").format(left=construct.name, right=construct.how),
        )
    return None


def diagonal_product(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a product with a matrix that has only a diagonal."""
    for construct in spot.code.find("diagonal") if spot.code is not None else ():
        if spot.under is not None and last_name(spot.under.name) not in ("", "diag", "dot", "matmul"):
            continue
        change = (
            f"(matrix * {construct.name})" if construct.how == "right" else f"(matrix.T * {construct.name}).T"
        )
        return say(
            spot,
            "diagonal-product",
            f"Multiply by {construct.name} itself: a matrix of its diagonal is zeros else",
            calls_text(spot),
            change=f"{change} multiplies each {'column' if construct.how == 'right' else 'row'}, n times less work",
        )
    return None


def asks_and_sleeps(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a coroutine that sleeps and checks again and again whether something has arrived."""
    found = spot.code.find("asks-and-sleeps") if spot.code is not None else ()
    if not found or spot.kind not in ("input", "await", "sleep"):
        return None
    return say(
        spot,
        "polling",
        f"{last_name(spot.where.function or '')} polls: it sleeps and looks again, while {found[0].name}",
        calls_text(spot),
        change=words("polling.await", "host"),
    )


PATTERNS: tuple[Find, ...] = (
    few_of_sorted,
    set_again,
    replaced_one_by_one,
    product_of_lists,
    diagonal_product,
    asks_and_sleeps,
)

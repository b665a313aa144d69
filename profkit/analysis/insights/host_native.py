"""Patterns at places of machine code: what their samples are in below the program's own line."""

from __future__ import annotations

import re
from dataclasses import replace

from profkit.analysis.insights.spots import Find, Said, say
from profkit.core.types import HotSpot, Insight, RunDocument

COMPARED = 0.25  # of the samples
ALLOCATING = 0.3  # of a line's time
_ALLOCATES = re.compile(
    r"(_int_|__libc_|je_|tc_|mi_)?(malloc|free|calloc|realloc|memalign)(_consolidate|_printerr)?(\.\w+)*"
    r"|operator (new|delete).*|unlink_chunk.*|sysmalloc|cfree.*|tcache_\w+|_?_?(sbrk|brk)"
)
_TREE = re.compile(r".*(_Rb_tree|BTreeMap|btree::).*")
_COMPARES = re.compile(r"(__)?(mem|str|strn|strcase|wmem|b)cmp.*|.*basic_string.*compare.*")
_COPIES = re.compile(r"(__)?(mem(cpy|move)|wmemcpy)\w*")
_SIZES = re.compile(r"(__)?(strlen|wcslen)\w*")


def allocation(document: RunDocument, spot: HotSpot) -> Insight | None:
    """Small pieces of memory that are taken and given back one by one."""
    lines = [one for sampled in document.sampled if sampled.native for one in sampled.lines]
    line = next((one for one in lines if (one.file, one.line) == (spot.where.file, spot.where.line)), None)
    if spot.kind != "native" or line is None:
        return None
    called = [one for one in line.callees if _ALLOCATES.fullmatch(one.function)]
    if sum(one.value for one in called) < ALLOCATING * line.main_cpu:
        return None
    said = Said(
        "allocation",
        "Memory is taken or given back here piece by piece",
        f"a good part of its time is in {called[0].function}",
        "values side by side in one array (a vector of values, with reserve), an arena, or use the pieces again",
    )
    return say(spot, said)


def tree_compare(document: RunDocument, spot: HotSpot) -> Insight | None:
    """A tree whose keys are compared one after the other on the way down."""
    functions = next((one for one in document.profiles if one.kind == "functions" and one.total > 0), None)
    if functions is None or spot.kind != "native":
        return None
    trees = [one for one in functions.hotspots if _TREE.fullmatch(one.function)]
    comparing = [one for one in functions.hotspots if _COMPARES.fullmatch(one.function) or one in trees]
    share = sum(one.own for one in comparing) / functions.total
    if not trees or share < COMPARED:
        return None
    first = max(comparing, key=lambda one: one.own)
    said = Said(
        "tree-compare",
        "Keys are looked up in a tree, and compared at each step down",
        f"{100 * share:.0f} % of the samples are in the tree and in {first.function[:60]}",
        "a hash table (std::unordered_map, HashMap) finds a key in about one comparison; small numbers as keys instead "
        "of texts; a sorted array where nothing is added any more",
    )
    return say(spot, said)


# What is called below a line, and what that says of the line.
_CALLED = (
    (
        _COPIES,
        Said(
            "copies",
            "Memory is copied here",
            "most of its time is in {name}",
            "pass a reference or a pointer instead of a value, move instead of copy, reserve before growing",
        ),
    ),
    (
        _SIZES,
        Said(
            "costly-helper",
            "The length of a text is counted here again and again",
            "most of its time is in {name}, which looks at each sign",
            "take the length once, before the loop",
        ),
    ),
)


def known_callee(document: RunDocument, spot: HotSpot) -> Insight | None:  # noqa: ARG001
    """A line that calls what copies memory, or what counts the signs of a text."""
    name = spot.under.name if spot.under is not None else ""
    said = next((said for pattern, said in _CALLED if pattern.fullmatch(name)), None)
    return say(spot, replace(said, evidence=said.evidence.format(name=name))) if said is not None else None


PATTERNS: tuple[Find, ...] = (allocation, tree_compare, known_callee)

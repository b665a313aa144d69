"""Machine code: what samples of its registers prove about a place.

Samples tell where the time goes, and registers what the code worked on there: each rule states how many of the samples
of a function showed it.
"""

from __future__ import annotations

import re

from profkit.analysis.function_names import plain_symbol
from profkit.analysis.judge.rules.counted import profile_of
from profkit.analysis.judge.rules.spots import Find, say_together
from profkit.analysis.judge.words import words
from profkit.analysis.summaries.host import EACH_MISSES
from profkit.core.formatting import percent_text
from profkit.core.types import RUN, CodeSpot, Insight, RegisterFact, RunDocument

MIN_SECONDS = 0.1
LINE_BYTES = 64  # of a cache line
WORKS = 40.0  # instructions for each line that is not in the second cache: with more, the work hides it
LOCKING = 0.3  # of a place's samples
_LOCKS = re.compile(r"\b(Mutex|RwLock|mutex|SpinLock|lock)(::\w+)*$", re.IGNORECASE)
AT_MOST = {"divisor": 0.75, "contended": 0.9, "beside": 0.9}  # of the time: the rest is the work itself
_SMALLEST = {32: "1.2e-38", 64: "2.2e-308"}
_TITLES = {
    "denormal": (
        "denormal-numbers",
        "The numbers here are denormal, and each operation takes a hundred times as long",
    ),
    "divisor": ("same-divisor", "Whole numbers are divided here, each time by {number}"),
    "contended": (
        "contended-memory",
        "{threads} threads change the same place in memory, one after the other",
    ),
    "beside": ("false-sharing", "{threads} threads write into one cache line, each to its own part of it"),
    "record": (
        "cold-fields",
        "{number} of each {size} bytes are used: the loop goes through large records for few fields",
    ),
}


def facts_at(document: RunDocument, function: str | None, file: str | None) -> list[RegisterFact]:
    """Return what registers showed of a function of the program."""
    return [
        fact
        for sampled in document.sampled
        for fact in sampled.registers
        if fact.file == file and plain_symbol(fact.function) == plain_symbol(function or "")
    ]


def in_registers(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return what most of the looks at the function of a place showed, told at its largest place."""
    if spot.kind != "native" or spot.seconds < MIN_SECONDS:
        return None
    facts = [
        fact
        for fact in facts_at(document, spot.where.function, spot.where.file)
        if fact.kind in _TITLES and (fact.kind != "record" or is_of_large_records(document, fact))
    ]
    alike = [
        hot_spot
        for hot_spot in document.hot_spots
        if hot_spot.kind == "native"
        and (hot_spot.where.function, hot_spot.where.file) == (spot.where.function, spot.where.file)
    ]
    if not facts or spot is not max(alike, key=lambda hot_spot: hot_spot.share):
        return None
    fact = max(facts, key=lambda candidate: candidate.looks)
    rule, title = _TITLES[fact.kind]
    locks = max((frame.value for frame in spot.below if _LOCKS.search(frame.function)), default=0.0)
    if fact.kind == "contended" and locks >= LOCKING:
        title = "{threads} threads take one lock, again and again"
    share = sum(hot_spot.share for hot_spot in alike) * fact.looks / fact.of
    share *= 1 - fact.number / fact.size if fact.kind == "record" else AT_MOST.get(fact.kind, 1.0)
    at = f" (line {fact.line})" if fact.line is not None and fact.line != spot.where.line else ""
    return say_together(
        alike,
        rule,
        title.format(number=fact.number, size=fact.size, threads=fact.threads),
        f"{_shows(fact)}{at}, in {percent_text(100 * fact.looks / fact.of)} of {fact.of} looks at its registers",
        share,
        change=words(f"{rule}.native" if fact.kind == "denormal" else rule, "host"),
    )


def _shows(fact: RegisterFact) -> str:
    """Return what the looks showed."""
    if fact.kind == "denormal":
        return f"numbers below {_SMALLEST[fact.number]} are multiplied, which the processor does in microcode"
    if fact.kind == "divisor":
        return f"the processor divides by {fact.number}, which the compiler did not know"
    if fact.kind == "contended":
        return "it waits for a line of the cache that another thread changed just before, by an atomic instruction"
    if fact.kind == "beside":
        return "it reads or writes a line of the cache in which another thread writes to other bytes"
    return f"the loop moves by {fact.size} bytes, and reads or writes {fact.number} of them"


def is_of_large_records(document: RunDocument, fact: RegisterFact) -> bool:
    """Return whether the records of a loop were simulated to come from beyond the second cache, with little work for
    each.
    """
    counted = profile_of(document, "counted-functions")
    here = [
        row.counters
        for row in (counted.hotspots if counted is not None else ())
        if plain_symbol(row.function) == plain_symbol(fact.function)
        or (fact.file is not None and row.file == fact.file)
    ]
    loads, misses, executed = (
        sum(counts.get(event, 0.0) for counts in here) for event in ("Dr", "D1mr", "Ir")
    )
    counters = {counter.name: counter.value or 0.0 for counter in document.counters if counter.scope == RUN}
    beyond = counters.get("D2mr", 0.0)
    return misses >= EACH_MISSES * loads > 0 and beyond >= EACH_MISSES * misses and executed <= WORKS * misses


PATTERNS: tuple[Find, ...] = (in_registers,)

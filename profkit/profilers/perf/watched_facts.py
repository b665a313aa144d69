"""Says what watched calls of the mathematics library show of the code that makes them: the same arguments again, or an
exponent that stays the same; and of system calls, the same names of files again.
"""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.types import RegisterFact
from profkit.profilers.perf.registers import CodePlace
from profkit.profilers.perf.watch import WatchedCall, WatchReport

AGAIN = 0.25  # of the calls: fewer different arguments are the same again
_TWO = ("pow", "atan2", "fmod", "hypot")
_ONE = (
    *(
        "exp",
        "exp2",
        "exp10",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "sincos",
        "asin",
        "acos",
    ),
    *("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "tgamma", "cbrt"),
)
SMALL_POWERS = (-3.0, -2.0, -1.0, -0.5, 0.5, 2.0, 3.0, 4.0)  # which products, a quotient or a root give
MIN_NAMES, SEEN_AGAIN = 16, 3  # looks at names of files, and at such that another look had seen


def watched_facts(
    watched: WatchReport, places: Mapping[int, CodePlace], names: Mapping[int, str]
) -> tuple[RegisterFact, ...]:
    """Return what watched calls show. `places` has their source, and `names` the functions that they call."""
    by_address: dict[int, list[WatchedCall]] = {}
    for call in watched.calls:
        by_address.setdefault(call.address, []).append(call)
    facts = [
        fact
        for address, calls in by_address.items()
        if address in places and address in names
        for fact in _facts_of(calls, places[address], names[address])
    ]
    if watched.names >= MIN_NAMES and watched.names - watched.different >= SEEN_AGAIN:
        looks = watched.names
        facts.append(RegisterFact("names", "", None, None, looks, looks, number=watched.different))
    return tuple(facts)


def _facts_of(calls: list[WatchedCall], place: CodePlace, name: str) -> list[RegisterFact]:
    """Return what all watched calls of one place show of it."""
    plain, single = (name, False) if name in (*_ONE, *_TWO) else (name.removesuffix("f"), True)
    if plain not in (*_ONE, *_TWO):
        return []
    facts = []
    number = sum(call.calls for call in calls)
    different = max(
        (call.pairs_float if single else call.pairs)
        if plain in _TWO
        else (call.first_float if single else call.first)
        for call in calls
    )
    here = (place.function, place.file, place.line)
    if all(different <= AGAIN * call.calls for call in calls):
        facts.append(RegisterFact("argument", *here, number, number, number=different, name=name))
    exponents = {call.second_float if single else call.second for call in calls}
    exponent = next(iter(exponents)) if len(exponents) == 1 else None
    if plain == "pow" and exponent in SMALL_POWERS:
        facts.append(RegisterFact("exponent", *here, number, number, number=round(2 * exponent), name=name))
    return facts

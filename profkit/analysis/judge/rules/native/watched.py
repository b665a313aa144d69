"""Machine code: what watched calls prove of a place, by the arguments of a thousand of them one after the other."""

from __future__ import annotations

import re

from profkit.analysis.function_names import plain_symbol
from profkit.analysis.judge.rules.spots import Find, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import percent_text
from profkit.core.types import CodeSpot, Insight, RegisterFact, RunDocument

MIN_SECONDS = 0.1
MIN_PART = 0.2  # of a place's samples, in what is called
MAX_CALL_SECONDS, MIN_LOOKUPS = 5e-5, 10.0  # processor seconds of a call; calls for each file
NEAR = 3  # lines between an expression's parts
_FILES = re.compile(
    r"(__GI_)?_*(libc_)?(fstatat|l?stat|statx|newfstatat|x?stat|f?access(at)?|open(at)?)(64)?(_nocancel|_time64)?"
    r"|std::filesystem::(symlink_)?(exists|status|is_\w+|file_size|last_write_time)"
    r"|_IO_(new_)?(file_)?f?open\w*|__fopen\w*|std::(basic_)?([io]?f(ile)?stream|filebuf|__basic_file)::.*|std::basic_[io]?fstream::.*"
    r"|std::fs::(File::(open|create)\w*|OpenOptions::.*|metadata|symlink_metadata|exists)|std::path::Path::(exists|is_\w+|metadata)"
    r"|std::sys::.*fs::.*(stat|open|exists).*"
)


def _facts(document: RunDocument, spot: CodeSpot, kind: str) -> list[RegisterFact]:
    """Return what watched calls of a kind showed at a place."""
    if spot.kind != "native" or spot.seconds < MIN_SECONDS:
        return []
    where = spot.where
    return [
        fact
        for sampled in document.sampled
        for fact in sampled.registers
        if fact.kind == kind
        and fact.file == where.file
        and plain_symbol(fact.function) == plain_symbol(where.function or "")
        and (fact.line is None or where.line is None or abs(fact.line - where.line) <= NEAR)
    ]


def _part(spot: CodeSpot, name: str) -> float:
    """Return the share (0..1) of a place in a function of the mathematics library."""
    pattern = rf"_*(ieee754_)?{re.escape(name)}f?(_fma\w*|_sse\d\w*|_avx\w*|_finite)?"
    return max((frame.value for frame in spot.below if re.fullmatch(pattern, frame.function)), default=0.0)


def same_argument(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a function of the mathematics library whose watched calls had few different arguments."""
    facts = {fact.name: fact for fact in _facts(document, spot, "argument")}
    if not facts:
        return None
    part = sum(
        _part(spot, name)
        for name in {
            name.removesuffix("f") if name.endswith("f") and name != "erf" else name for name in facts
        }
    )
    fact = max(facts.values(), key=lambda fact: _part(spot, fact.name))
    if part < MIN_PART:
        return None
    names = " and ".join(sorted(facts))
    return say(
        spot,
        "same-argument",
        f"{names} {'is' if len(facts) == 1 else 'are'} computed again and again for the same numbers",
        f"of {fact.of:,} calls of {fact.name} that were watched, one after the other, {fact.number:,} had different "
        f"arguments; {percent_text(100 * min(1.0, part))} of this time is in {fact.name}",
        spot.share * min(1.0, part),
        change=words("same-argument", "host"),
    )


def same_exponent(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a call of `pow` whose exponent was the same small number in all watched calls."""
    fact = next(iter(_facts(document, spot, "exponent")), None)
    part = _part(spot, "pow")
    if fact is None or part < MIN_PART:
        return None
    exponent = f"{fact.number / 2:g}"
    return say(
        spot,
        "general-power",
        f"pow computes the power of {exponent} by way of the logarithm",
        f"the exponent was {exponent} in each of {fact.of:,} calls that were watched; {percent_text(100 * part)} of "
        "this is in pow",
        spot.share * part,
        change=words("general-power.native", "host"),
    )


def same_files(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a place that looks files up by their names, and was seen to look up the same names again."""
    names = next(
        (fact for sampled in document.sampled for fact in sampled.registers if fact.kind == "names"), None
    )
    if names is None or spot.kind != "native" or spot.seconds < MIN_SECONDS:
        return None
    part = _in_files(spot)
    natives = [place for place in document.hot_spots if place.kind == "native"]
    if part < MIN_PART or spot is not max(natives, key=lambda place: place.share * _in_files(place)):
        return None
    # If there are many names, few samples see the same name twice: about samples² / (2 · names) times.
    again = names.of - names.number
    files = max(names.number, names.of**2 / (2 * again)) if again else float("inf")
    if spot.seconds * part < MAX_CALL_SECONDS * MIN_LOOKUPS * files:
        return None
    # What is opened each time is closed each time, and what was written to it goes to the system then.
    closing = sum(
        place.share * _closing(place)
        for place in natives
        if place is not spot
        and (place.where.file, place.where.function) == (spot.where.file, spot.where.function)
    )
    return say(
        spot,
        "same-files",
        "The same files are looked up or opened again and again",
        f"{percent_text(100 * part)} of this is in system calls that look up a name; {names.of:,} looks at such calls "
        f"saw {names.number:,} different {'name' if names.number == 1 else 'names'}"
        + (f"; closing them takes {percent_text(100 * closing)} of the time" if closing else ""),
        spot.share * part + closing,
        change=words("same-files", "host"),
    )


_CLOSES = re.compile(
    r"_*(IO_)?(new_)?f?close\w*|_IO_(new_)?file_close_it\w*|std::(__cxx11::)?(basic_)?([io]?f(ile)?stream|filebuf)::(close|~\w+)"
)


def _closing(spot: CodeSpot) -> float:
    under = spot.under.public or spot.under.name if spot.under is not None else ""
    if under and _CLOSES.fullmatch(under):
        return 1.0
    return max((frame.value for frame in spot.below if _CLOSES.fullmatch(frame.function)), default=0.0)


def _in_files(spot: CodeSpot) -> float:
    return max((frame.value for frame in spot.below if _FILES.fullmatch(frame.function)), default=0.0)


PATTERNS: tuple[Find, ...] = (same_argument, same_exponent, same_files)

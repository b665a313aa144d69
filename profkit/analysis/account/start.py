"""What comes before the part that an account is of: the largest places of a program's start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from profkit.analysis.account.step_places import dispatching_lines, leads_from_step
from profkit.analysis.evidence import evidence_of
from profkit.analysis.hot_spots.rows import MIN_SHARE
from profkit.core.types import Account, AccountRow, Place, RunDocument, SpotKind

MAX_PARTS = 3
PART = 0.05  # of the start
_IMPORTS, _OUTSIDE = "sampled-imports", "sampled-outside"


def start_parts(document: RunDocument, account: Account) -> tuple[AccountRow, ...]:
    """Return the largest places before the part that counts, the largest first; none where the account is of the
    whole run.

    Together they take no longer than all of it. Imports are of the start; of another place it is not known when it ran,
    and what would not fit beside the imports ran later, too.
    """
    if account.unit == "iteration":
        return _that_fit(_outside(document, account), account.outside)
    split = document.time_split
    if split is None or not split.startup or account.unit == "run":
        return ()
    if account.unit in ("step", "trace"):
        parts = _before_steps(document, account)
    else:
        parts = chain(_imports(document), _lines(document))
    return _that_fit((part for part in parts if part.seconds >= PART * split.startup), split.startup)


def _that_fit(parts: Iterable[AccountRow], whole: float) -> tuple[AccountRow, ...]:
    kept: list[AccountRow] = []
    late: set[tuple[str | None, str | None]] = set()  # functions that ran later
    for part in sorted(parts, key=lambda row: (row.does != "import", -row.seconds)):
        function, left = (part.where.file, part.where.function), whole - sum(row.seconds for row in kept)
        if part.seconds <= left and function not in late:
            kept.append(part)
        elif part.does != "import":
            late.add(function)
    return tuple(sorted(kept, key=lambda row: -row.seconds)[:MAX_PARTS])


def _before_steps(document: RunDocument, account: Account) -> Iterator[AccountRow]:
    """Yield the places of a traced program that lead to no step, and its imports."""
    run = evidence_of(document)
    launching = {(place.file, place.line) for place, _ in dispatching_lines(document)}
    for spot in document.hot_spots:
        if (spot.where.file, spot.where.line) in launching:
            continue
        host = account.unit == "step" and spot.kind not in ("rest", "gpu")
        outside = spot.kind == "import" or (host and leads_from_step(run, spot) is None)
        if outside and spot.share >= MIN_SHARE:
            name = spot.under.name if spot.under is not None and spot.kind == "import" else ""
            what = "" if name.startswith("[") else name
            yield AccountRow("host", spot.seconds, spot.where, what, estimated=True, does=spot.kind)


def _outside(document: RunDocument, account: Account) -> Iterator[AccountRow]:
    """Yield the places outside of the loop that the account is of, with what of them is no part of it."""
    kept: dict[tuple[Place, SpotKind | None], float] = defaultdict(float)
    for row in account.rows:  # a line that calls torch has a row for each operation
        if row.kind == "host":
            kept[row.where, row.does] += row.seconds * account.repeats
    for spot in document.hot_spots:
        inside = kept.get((spot.where, spot.kind), 0.0)
        if (
            spot.kind != "rest"
            and spot.seconds - inside >= PART * account.outside
            and inside < PART * spot.seconds
        ):
            what = spot.under.name if spot.under is not None and spot.kind == "import" else ""
            yield AccountRow("host", spot.seconds - inside, spot.where, what, estimated=True, does=spot.kind)


def _imports(document: RunDocument) -> Iterator[AccountRow]:
    """Yield the imported packages as a whole: the places are those of the region only."""
    profile = next((profile for profile in document.profiles if profile.kind == _IMPORTS), None)
    for package in profile.hotspots if profile is not None else ():
        if "." not in package.function and not package.function.startswith("["):
            yield AccountRow(
                "host", package.total or 0.0, what=package.function, estimated=True, does="import"
            )


def _lines(document: RunDocument) -> Iterator[AccountRow]:
    """Yield the program's own lines that ran outside of its regions."""
    profile = next((profile for profile in document.profiles if profile.kind == _OUTSIDE), None)
    for line in profile.hotspots if profile is not None else ():
        where = Place(function=line.function, file=line.file, line=line.line)
        yield AccountRow("host", line.total or 0.0, where, estimated=True, does="python")

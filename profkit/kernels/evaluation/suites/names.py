"""Names of operations as a user gives them: `add.Tensor`, `add` for all its overloads, or a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.sources.names import encode_name, name_meaning, without_prefix

MOST_NEAR = 5
SHOWN = 12


def matches(wanted: Iterable[str], operation: str) -> bool:
    """Whether the overload `operation` is one of those wanted; nothing wanted: all are."""
    wanted = tuple(wanted)
    return not wanted or any(_matches_one(name, operation) for name in wanted)


def names_it(wanted: str, operation: str) -> bool:
    """Whether it is a name of the overload, and no pattern: `add.Tensor`, `add__Tensor`, `add`, `aten::add.Tensor`."""
    return without_prefix(wanted) in (operation, encode_name(operation), operation.partition(".")[0])


def _matches_one(wanted: str, operation: str) -> bool:
    return names_it(wanted, operation) or fnmatchcase(operation, without_prefix(wanted))


def check_names(wanted: Iterable[str], operations: Iterable[str], suite: str) -> None:
    """Raises UsageError for a name that no operation of the suite has, with those that are like it."""
    known, wanted = sorted(set(operations)), tuple(wanted)
    for name in wanted:
        if any(_matches_one(name, operation) for operation in known):
            continue
        if suite == "smoke" and _is_known(name):
            raise UsageError(
                f"the suite {suite} has no operation {name!r}", f"--suite opinfo --ops {','.join(wanted)}"
            )
        short = [*known, *sorted({operation.partition(".")[0] for operation in known})]
        near = get_close_matches(name, short, MOST_NEAR, 0.6)
        contained = [operation for operation in known if name and name.strip("*_") in operation]
        proposals = list(dict.fromkeys((*near, *contained)))[:MOST_NEAR]
        raise UsageError(
            f"the suite {suite} has no operation {name!r}",
            f"--ops {','.join(proposals)}"
            if proposals
            else f"it has {len(known)}: {', '.join(known[:SHOWN])}{', ...' if len(known) > SHOWN else ''}",
        )


def _is_known(name: str) -> bool:
    try:
        return bool(name_meaning(name).operation)
    except UsageError:
        return False


def check_dtype(dtype: str, known: Iterable[str], suite: str) -> None:
    """Raises UsageError for a dtype that the suite cannot have."""
    if dtype not in (known := tuple(known)):
        raise UsageError(f"the suite {suite} has no tests of {dtype}", f"--dtype {'|'.join(known)}")

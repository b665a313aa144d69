"""The interface of a suite, a source of tests that can make the arguments of each; `find` has the list of suites.

Names of operations are as a user gives them: `add.Tensor`, `add` for all its overloads, or a pattern.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Protocol

from profkit.core.errors import UsageError
from profkit.core.types import EvaluationTest
from profkit.core.types.readings import Json
from profkit.kernels.evaluation.sources.names import encode_name, without_prefix
from profkit.kernels.operations.definitions import FactError


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call: torch tensors on the CPU, and plain Python values."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """The tests that are wanted, by names (`add.Tensor`, `add`) or patterns (`add*`); no `operations`: all."""

    operations: tuple[str, ...] = ()
    dtype: str = ""  # float32, bfloat16, ...; empty: the suite's own


class Suite(Protocol):
    """A set of tests that can make the arguments of each."""

    @property
    def name(self) -> str:
        """Return the name, as it stands in the results."""

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Yield the tests in a fixed order, operation by operation."""

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Return arguments of the test, with values by the seed, and strides and storage offsets as the suite says.

        Raises Skip where they cannot be made here.
        """


class Skip(FactError):
    """Nothing can be decided of this test."""


ID_DIGITS = 12


def make_test(
    suite: str,
    operation: str,
    dtype: str,
    arguments: str,
    source: Json,
    *,
    calls: int = 0,
    timed: bool = True,
) -> EvaluationTest:
    """Make a test, with an id that follows from all that distinguishes it from other tests."""
    what = json.dumps([suite, operation, dtype, arguments, source], sort_keys=True)
    digits = hashlib.sha256(what.encode()).hexdigest()[:ID_DIGITS]
    return EvaluationTest(digits, suite, operation, dtype, arguments, source, calls, timed)


SHOWN = 12  # names in a message


def matches(wanted: Iterable[str], operation: str) -> bool:
    """Return whether the overload `operation` is wanted; without any name all are."""
    wanted = tuple(wanted)
    return not wanted or any(_matches_name(name, operation) for name in wanted)


def names_it(wanted: str, operation: str) -> bool:
    """Return whether `wanted` names the overload, not as a pattern.

    Names are `add.Tensor`, `add__Tensor`, `aten::add.Tensor`, and the operation's bare `add`.
    """
    return without_prefix(wanted) in (operation, encode_name(operation), operation.partition(".")[0])


def _matches_name(wanted: str, operation: str) -> bool:
    """Return whether a name or a pattern fits the overload."""
    return names_it(wanted, operation) or fnmatchcase(operation, without_prefix(wanted))


def check_names(wanted: Iterable[str], operations: Iterable[str], suite: str) -> None:
    """Raise UsageError, with similar names, for a name that no operation of the suite has."""
    known = sorted(set(operations))
    for name in wanted:
        if not any(_matches_name(name, operation) for operation in known):
            short = dict.fromkeys(operation.partition(".")[0] for operation in known)
            near = get_close_matches(name, [*known, *short], n=5)
            shown = near or [*known[:SHOWN], *(["..."] if len(known) > SHOWN else [])]
            more = "; --suite opinfo has more operations" if suite == "smoke" else ""
            raise UsageError(
                f"the suite {suite} has no operation {name!r}", f"--ops with one of {', '.join(shown)}{more}"
            )


def check_dtype(dtype: str, known: Iterable[str], suite: str) -> None:
    """Raise UsageError for a dtype that the suite cannot have."""
    if dtype not in (known := tuple(known)):
        raise UsageError(f"the suite {suite} has no tests of {dtype}", f"--dtype {'|'.join(known)}")


def is_file(name: str) -> bool:
    """Return whether a suite of that name is the user's own Python file, which is run."""
    return name.endswith(".py")

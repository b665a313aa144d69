"""What a suite is: an iterable of tests that can make the arguments of each.

Torch is loaded here: only the judge's process imports a suite.

What makes two tests the same test.

Names of operations as a user gives them: `add.Tensor`, `add` for all its overloads, or a pattern.

Which suites there are: by name, a user's file of tests, or a trace.
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
from profkit.kernels.evaluation.sources.names import encode_name, name_meaning, without_prefix


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call: torch tensors on the CPU, and plain Python values."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """Which tests are wanted. Empty `operations`: all. Names are exact (`add.Tensor`, `add`) or patterns (`add*`)."""

    operations: tuple[str, ...] = ()
    dtype: str = ""  # float32, bfloat16, ...; empty: the suite's own
    device: str = "cpu"


class Suite(Protocol):
    """Tests, and the arguments of each."""

    @property
    def name(self) -> str:
        """As it stands in the results."""

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """The tests in a fixed order, those of one operation after the other."""

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Arguments of the test, with values by the seed: strides and storage offsets as the suite says.

        Raises Skip where they cannot be made here.
        """


class Skip(Exception):
    """Nothing can be decided of this test; the text says why."""


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
    """The test, with an id that follows from all that tells it apart from other tests."""
    what = json.dumps([suite, operation, dtype, arguments, source], sort_keys=True)
    digits = hashlib.sha256(what.encode()).hexdigest()[:ID_DIGITS]
    return EvaluationTest(digits, suite, operation, dtype, arguments, source, calls, timed)


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

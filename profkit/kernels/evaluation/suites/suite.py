"""What a suite is: an iterable of tests that can make the arguments of each.

Torch is loaded here: only the judge's process imports a suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from profkit.core.types import EvaluationTest


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

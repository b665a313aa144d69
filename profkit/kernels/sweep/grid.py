"""Which cases a sweep has, and in which order.

All implementations of a point follow each other: they share the inputs and the float64 reference, and what drifts (a
clock, a temperature) drifts for all of them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from profkit.core.errors import UsageError
from profkit.core.types import GridPoint, SweepDirection
from profkit.kernels.operations.operation import DTYPES
from profkit.kernels.operations.registry import (
    OPERATIONS,
    canonical_implementation,
    canonical_operation,
    does,
    implementations,
)

BATCHES = (16, 32, 64, 128)
SEQUENCES = (256, 512, 1024, 2048)
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
DIRECTIONS: tuple[SweepDirection, ...] = ("forward", "backward")
LARGEST = 1 << 40  # elements: more is a slip of the finger, whatever the machine


@dataclass(frozen=True)
class Grid:
    """The axes. Sizes of x are batch x sequence x dimension."""

    operations: tuple[str, ...] = tuple(OPERATIONS)
    implementations: tuple[str, ...] = ()  # none: all there are
    batches: tuple[int, ...] = BATCHES
    sequences: tuple[int, ...] = SEQUENCES
    dimensions: tuple[int, ...] = DIMENSIONS
    dtypes: tuple[str, ...] = ("float32",)
    directions: tuple[SweepDirection, ...] = ("forward",)

    def points(self) -> tuple[GridPoint, ...]:
        """Every place of the grid, an operation after the other, small shapes first: what is wrong shows early."""
        sizes = sorted(
            ((b, s, d) for b in self.batches for s in self.sequences for d in self.dimensions),
            key=lambda size: (size[2], size[0] * size[1], size[0]),
        )
        return tuple(
            GridPoint(operation, batch, sequence, dimension, dtype, direction)
            for operation in self.operations
            for direction in self.directions
            for dtype in self.dtypes
            for batch, sequence, dimension in sizes
        )

    def who(self, operation: str) -> tuple[str, ...]:
        """The implementations that do the operation: a user's is registered for some."""
        return tuple(name for name in self.implementations if does(name, operation))

    def words(self) -> tuple[str, ...]:
        """The grid as options of the command line: the same grid has the same words."""
        axes = {
            "operations": self.operations,
            "implementations": self.implementations,
            "batch": self.batches,
            "sequence": self.sequences,
            "dimension": self.dimensions,
            "dtype": self.dtypes,
            "direction": self.directions,
        }
        return tuple(
            word for name, values in axes.items() for word in (f"--{name}", ",".join(map(str, values)))
        )

    @property
    def cases(self) -> int:
        """How many measurements that is."""
        shapes = len(self.batches) * len(self.sequences) * len(self.dimensions)
        each = shapes * len(self.dtypes) * len(self.directions)
        return each * sum(len(self.who(operation)) for operation in self.operations)


def checked(
    *,
    operations: Sequence[str] = (),
    implementations_: Sequence[str] = (),
    batches: Sequence[int] = BATCHES,
    sequences: Sequence[int] = SEQUENCES,
    dimensions: Sequence[int] = DIMENSIONS,
    dtypes: Sequence[str] = ("float32",),
    directions: Sequence[str] = ("forward",),
) -> Grid:
    """The grid of what somebody asked for, each value once. Raises UsageError for what makes none."""
    names = [name for asked in operations or tuple(OPERATIONS) for name in canonical_operation(asked)]
    who = [canonical_implementation(asked) for asked in implementations_ or implementations()]
    for axis, sizes in (("batch", batches), ("sequence", sequences), ("dimension", dimensions)):
        if not sizes:
            raise UsageError(f"the sweep has no {axis}", f"--{axis} 64")
        if wrong := [size for size in sizes if size < 1]:
            raise UsageError(f"a {axis} of {wrong[0]} is no size", f"--{axis} 64")
    if max(batches) * max(sequences) * max(dimensions) > LARGEST:
        raise UsageError(
            "the largest case has more than 2^40 elements", "smaller --batch, --sequence or --dimension"
        )
    if not dtypes:
        raise UsageError("the sweep has no dtype", "--dtype float32")
    if wrong_dtype := [dtype for dtype in dtypes if dtype not in DTYPES]:
        raise UsageError(f"there is no dtype called {wrong_dtype[0]!r} here", f"--dtype {','.join(DTYPES)}")
    chosen: list[SweepDirection] = [known for known in DIRECTIONS if known in directions]
    if not chosen or (others := set(directions) - set(DIRECTIONS)):
        raise UsageError(
            f"there is no direction called {min(others) if chosen else (directions or ('',))[0]!r}",
            "--direction forward,backward",
        )
    found = Grid(
        tuple(names),
        tuple(who),
        tuple(batches),
        tuple(sequences),
        tuple(dimensions),
        tuple(dtypes),
        tuple(chosen),
    )
    return Grid(**{each.name: tuple(dict.fromkeys(getattr(found, each.name))) for each in fields(found)})

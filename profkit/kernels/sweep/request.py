"""What a sweep is asked to do: from the options of a command line, or the header of a journal, to a grid of cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import UsageError
from profkit.core.run_folder import create_run_folder
from profkit.core.types import GridPoint, SweepDirection
from profkit.kernels.devices import choose_device, choose_device_elsewhere
from profkit.kernels.operations.operation import DTYPES
from profkit.kernels.operations.registry import (
    OPERATIONS,
    canonical_implementation,
    canonical_operation,
    has_implementation,
    implementations,
    registrations,
)
from profkit.kernels.sweep.files import inspect_files

_T = TypeVar("_T")
BATCHES = (16, 32, 64, 128)
SEQUENCES = (256, 512, 1024, 2048)
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
DIRECTIONS: tuple[SweepDirection, ...] = ("forward", "backward")
LARGEST = 1 << 40  # elements: more is a slip of the finger, whatever the machine
ON_GPU = ("PyTorch", "torch.compile", "Triton", "CUDA")
ON_CPU = ("PyTorch",)
LONGEST = 1e7  # seconds, 116 days: clocks of the system take no infinite ones
MOST_THREADS = 4096  # with some ten thousand torch dies while it makes them


@dataclass(frozen=True)
class TimingOptions:
    """`precision`: half-width of the median's 95 % interval as a share; `budget`: most seconds of timing per case.

    `cold`: on a device each call finds a flushed L2. `threads` are torch's on the CPU; 0: as many as it takes itself.
    """

    precision: float = 0.01
    budget: float = 1.0
    cold: bool = True
    threads: int = 0


@dataclass(frozen=True)
class SweepOptions:
    """The options of a new sweep, as they were typed: values between commas, empty for the default.

    `timeout` is seconds per case. The sweep's own folder is made below `output`.
    """

    operations: str = ""
    implementations: str = ""
    batch: str = ",".join(map(str, BATCHES))
    sequence: str = ",".join(map(str, SEQUENCES))
    dimension: str = ",".join(map(str, DIMENSIONS))
    dtype: str = "float32"
    direction: str = "forward"
    device: str = "auto"
    gpus: str = ""
    files: tuple[Path, ...] = ()
    timing: TimingOptions = field(default_factory=TimingOptions)
    timeout: float = 300.0
    output: Path = Path("reports")
    name: str = "sweep"
    serial: bool = False


@dataclass(frozen=True)
class SweepGrid:
    """The axes. Sizes of x are batch x sequence x dimension.

    All implementations of a point follow each other: they share the inputs and the float64 reference, and what drifts
    (a clock, a temperature) drifts for all of them alike.
    """

    operations: tuple[str, ...] = tuple(OPERATIONS)
    implementations: tuple[str, ...] = ()  # none: all there are
    batches: tuple[int, ...] = BATCHES
    sequences: tuple[int, ...] = SEQUENCES
    dimensions: tuple[int, ...] = DIMENSIONS
    dtypes: tuple[str, ...] = ("float32",)
    directions: tuple[SweepDirection, ...] = ("forward",)

    def points(self) -> tuple[GridPoint, ...]:
        """Every point of the grid, an operation after the other, small shapes first: what is wrong shows early."""
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

    def implementations_of(self, operation: str) -> tuple[str, ...]:
        """The implementations that do the operation: a user's is registered for some."""
        return tuple(name for name in self.implementations if has_implementation(name, operation))

    def arguments(self) -> tuple[str, ...]:
        """The grid as options of the command line: the same grid has the same arguments."""
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
        return each * sum(len(self.implementations_of(operation)) for operation in self.operations)


@dataclass(frozen=True)
class SweepRequest:
    """A sweep that can be run. `gpus` are the devices that share it, a worker each.

    `again`: cases that were settled without a time before are tried once more. `serial`: on each host one point at a
    time is measured, and nothing is compiled meanwhile.
    """

    grid: SweepGrid
    folder: Path
    device: str  # "cuda", "mps" or "cpu"
    gpus: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    timing: TimingOptions = field(default_factory=TimingOptions)
    timeout: float = 300.0
    name: str = "sweep"
    again: bool = False
    serial: bool = False


def make_grid(
    *,
    operations: Sequence[str] = (),
    implementations_: Sequence[str] = (),
    batches: Sequence[int] = BATCHES,
    sequences: Sequence[int] = SEQUENCES,
    dimensions: Sequence[int] = DIMENSIONS,
    dtypes: Sequence[str] = ("float32",),
    directions: Sequence[str] = ("forward",),
) -> SweepGrid:
    """The grid of these values, each once. Raises UsageError for what makes none."""
    names = [name for word in operations or tuple(OPERATIONS) for name in canonical_operation(word)]
    builders = [canonical_implementation(word) for word in implementations_ or implementations()]
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
    if not chosen or (unknown := set(directions) - set(DIRECTIONS)):
        raise UsageError(
            f"there is no direction called {min(unknown) if chosen else (directions or ('',))[0]!r}",
            "--direction forward,backward",
        )
    return SweepGrid(
        operations=_unique(names),
        implementations=_unique(builders),
        batches=_unique(batches),
        sequences=_unique(sequences),
        dimensions=_unique(dimensions),
        dtypes=_unique(dtypes),
        directions=_unique(chosen),
    )


def _unique(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))


def make_request(options: SweepOptions, *, make_folder: bool = True, elsewhere: bool = False) -> SweepRequest:
    """A new sweep, in a folder of its own below `output` (made where `make_folder`).

    The devices of a sweep `elsewhere` are not looked at here.

    Raises UsageError for what makes no sense, MachineError where there is no such device or no such folder can be.
    """
    _check_timing(options)
    files = tuple({file.resolve(): file for file in options.files}.values())
    own = inspect_files(files, options.timeout)
    if elsewhere:
        device, numbers = choose_device_elsewhere(options.device, split_list(options.gpus))
    else:
        device, numbers = choose_device(options.device, split_list(options.gpus), "this sweep")
    operations = split_list(options.operations)
    if own and not operations:
        operations = tuple(dict.fromkeys(operation for operation, _ in registrations()))
    grid = make_grid(
        operations=operations,
        implementations_=split_list(options.implementations)
        or (*(ON_GPU if device == "cuda" else ON_CPU), *own),
        batches=_parse_sizes("batch", options.batch),
        sequences=_parse_sizes("sequence", options.sequence),
        dimensions=_parse_sizes("dimension", options.dimension),
        dtypes=split_list(options.dtype),
        directions=split_list(options.direction),
    )
    paths = tuple(str(file.resolve()) for file in files)
    request = SweepRequest(
        grid,
        options.output / "SWEEP",
        device,
        numbers,
        paths,
        options.timing,
        options.timeout,
        options.name,
        serial=options.serial,
    )
    return with_new_folder(request) if make_folder else request


def with_options(files: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """How files of users are named on the command line."""
    return tuple(("--with", file) for file in files)


def with_new_folder(request: SweepRequest) -> SweepRequest:
    """The request with a folder of its own beside `request.folder`, which is made."""
    folder = create_run_folder(request.folder.parent, request.name, request.device, datetime.now())
    return replace(request, folder=folder)


def split_list(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _check_timing(options: SweepOptions) -> None:
    timing = options.timing
    if not 0.0001 <= timing.precision <= 0.5:
        raise UsageError(
            f"a precision of {timing.precision} is not between 0.0001 and 0.5", "--precision 0.01"
        )
    for option, value, example in (("--budget", timing.budget, "1"), ("--timeout", options.timeout, "300")):
        if not 0 < value <= LONGEST:
            raise UsageError(f"{option} {value:g} is not a time in seconds", f"{option} {example}")
    if not 0 <= timing.threads <= MOST_THREADS:
        raise UsageError(f"--threads {timing.threads} is no number of threads", "--threads 1")


def _parse_sizes(axis: str, text: str) -> tuple[int, ...]:
    with suppress(ValueError):
        return tuple(int(word) for word in split_list(text))
    raise UsageError(f"--{axis} {text} is no list of numbers", f"--{axis} 64,128")

"""The request for a sweep: from options to a grid of cases; and what its journal stores of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from profkit.core import codec
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.run_folder import create_run_folder
from profkit.core.types import CaseResult, GridPoint, MeasuredCeilings, SweepDirection, SweepDocument
from profkit.execution import journal as journals
from profkit.execution.journal import JournalContents, JournalFormat, plain_request
from profkit.kernels.campaign import require_named
from profkit.kernels.devices import LONGEST, choose_device, choose_device_elsewhere, split_list
from profkit.kernels.operations.definitions import DTYPES
from profkit.kernels.operations.registry import (
    OPERATIONS,
    canonical_implementation,
    canonical_operation,
    has_implementation,
    register_files,
    registrations,
)

_T = TypeVar("_T")
BATCHES = (16, 32, 64, 128)
SEQUENCES = (256, 512, 1024, 2048)
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
DIRECTIONS: tuple[SweepDirection, ...] = ("forward", "backward")
LARGEST = 1 << 40  # elements: more is a slip of the finger, whatever the machine
ON_GPU = ("PyTorch", "torch.compile", "Triton", "CUDA")
ON_CPU = ("PyTorch",)
FILE, LOG = "cases.jsonl", "worker.log"
FORMAT = JournalFormat("profkit.sweep-journal/4", "sweep", "profkit sweep", FILE, "case", CaseResult)
MAX_THREADS = 4096  # with some ten thousand torch dies while it makes them


@dataclass(frozen=True)
class TimingOptions:
    """The precision and cost of timing.

    `precision`: half-width of the median's 95 % interval as a share; `budget`: most seconds of timing per case.
    `threads` are torch's on the CPU; 0 is torch's default.
    """

    precision: float = 0.01
    budget: float = 1.0
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


@dataclass(frozen=True)
class SweepGrid:
    """The axes. Sizes of x are batch x sequence x dimension.

    All implementations of a point follow each other: they share the inputs and the float64 reference, and a drift
    (of a clock, a temperature) affects all of them alike.
    """

    operations: tuple[str, ...] = tuple(OPERATIONS)
    implementations: tuple[str, ...] = ()  # none: all there are
    batches: tuple[int, ...] = BATCHES
    sequences: tuple[int, ...] = SEQUENCES
    dimensions: tuple[int, ...] = DIMENSIONS
    dtypes: tuple[str, ...] = ("float32",)
    directions: tuple[SweepDirection, ...] = ("forward",)

    def points(self) -> tuple[GridPoint, ...]:
        """Return every point of the grid by operation, small shapes first, so that faults show early."""
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
        """Return the implementations of the operation: a user's is registered for some operations only."""
        return tuple(name for name in self.implementations if has_implementation(name, operation))

    def arguments(self) -> tuple[str, ...]:
        """Return the grid as options of the command line: the same grid has the same arguments."""
        axes: dict[str, tuple[object, ...]] = {
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
        """Return the number of measurements."""
        shapes = len(self.batches) * len(self.sequences) * len(self.dimensions)
        each = shapes * len(self.dtypes) * len(self.directions)
        return each * sum(len(self.implementations_of(operation)) for operation in self.operations)


@dataclass(frozen=True)
class SweepRequest:
    """A sweep that can be run. `gpus` are the devices that share it, a worker each."""

    grid: SweepGrid
    folder: Path
    device: str  # "cuda" or "cpu"
    gpus: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    timing: TimingOptions = field(default_factory=TimingOptions)
    timeout: float = 300.0
    name: str = "sweep"


def make_grid(options: SweepOptions, usual: Iterable[str] = ()) -> SweepGrid:
    """Make the grid of these options, each value once; `usual` are the implementations where none is named.

    Raises UsageError for options that make no grid.
    """
    operations = split_list(options.operations) or OPERATIONS
    batches, sequences = _parse_sizes("batch", options.batch), _parse_sizes("sequence", options.sequence)
    dimensions = _parse_sizes("dimension", options.dimension)
    if max(batches) * max(sequences) * max(dimensions) > LARGEST:
        raise UsageError(
            "the largest case has more than 2^40 elements", "smaller --batch, --sequence or --dimension"
        )
    dtypes, directions = split_list(options.dtype), split_list(options.direction)
    for axis, values, known in (("dtype", dtypes, tuple(DTYPES)), ("direction", directions, DIRECTIONS)):
        if unknown := [value for value in values or ("",) if value not in known]:
            raise UsageError(f"there is no {axis} called {unknown[0]!r}", f"--{axis} {','.join(known)}")
    return SweepGrid(
        _unique(name for word in operations for name in canonical_operation(word)),
        _unique(canonical_implementation(word) for word in split_list(options.implementations) or usual),
        batches,
        sequences,
        dimensions,
        _unique(dtypes),
        tuple(known for known in DIRECTIONS if known in directions),
    )


def _unique(values: Iterable[_T]) -> tuple[_T, ...]:
    """Return the values in order, each once."""
    return tuple(dict.fromkeys(values))


def make_request(options: SweepOptions, *, elsewhere: bool = False) -> SweepRequest:
    """Make a new sweep, in a folder of its own below `output`.

    For a sweep `elsewhere` the devices are not checked here. Raises UsageError for options that make no sense,
    MachineError where there is no such device or the folder cannot be made.
    """
    _check_timing(options)
    files = tuple({file.resolve(): file for file in options.files}.values())
    own, gpus = register_files(files), split_list(options.gpus)
    if elsewhere:
        device, numbers = choose_device_elsewhere(options.device, gpus)
    else:
        device, numbers = choose_device(options.device, gpus, "this sweep")
    if own and not options.operations:
        registered = dict.fromkeys(operation for operation, _ in registrations())
        options = replace(options, operations=",".join(registered))
    grid = make_grid(options, (*(ON_GPU if device == "cuda" else ON_CPU), *own))
    folder = create_run_folder(options.output, options.name, device, datetime.now())
    paths = tuple(str(file.resolve()) for file in files)
    return SweepRequest(grid, folder, device, numbers, paths, options.timing, options.timeout, options.name)


def with_options(files: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return how users' files are named on the command line."""
    return tuple(("--with", file) for file in files)


def _check_timing(options: SweepOptions) -> None:
    """Raise UsageError for a precision, a time or a number of threads out of range."""
    timing = options.timing
    if not 0.0001 <= timing.precision <= 0.5:
        raise UsageError(
            f"a precision of {timing.precision} is not between 0.0001 and 0.5", "--precision 0.01"
        )
    for option, value, example in (("--budget", timing.budget, "1"), ("--timeout", options.timeout, "300")):
        if not 0 < value <= LONGEST:
            raise UsageError(f"{option} {value:g} is not a time in seconds", f"{option} {example}")
    if not 0 <= timing.threads <= MAX_THREADS:
        raise UsageError(f"--threads {timing.threads} is not a number of threads", "--threads 1")


def _parse_sizes(axis: str, text: str) -> tuple[int, ...]:
    """Parse the sizes of an axis. Raises UsageError where the text is no list of sizes."""
    with suppress(ValueError):
        sizes = _unique(int(word) for word in split_list(text))
        if sizes and min(sizes) > 0:
            return sizes
    raise UsageError(f"--{axis} {text} is not a list of sizes", f"--{axis} 64,128")


# ---------------------------------------------------------------- what is stored


def case_id(point: GridPoint, implementation: str) -> str:
    """Return the name of a case in the journal."""
    return f"{point.name}: {implementation}"


def header_of(request: SweepRequest, started: str) -> dict[str, Any]:
    """Return the journal's header, with the number of cases: a reader without the user's file cannot know it."""
    return {"started": started, "planned": request.grid.cases, "request": plain_request(request)}


def read_sweep(folder: Path) -> SweepDocument:
    """Read what the sweep in `folder` knows so far, even while it runs. Raises UnreadableReport without one."""
    contents = journals.read_journal(folder, FORMAT)
    try:
        request = journals.read_request(folder, FORMAT, SweepRequest, contents)
        return sweep_document(request, contents, contents.seconds)
    except UnreadableReport as error:
        raise UnreadableReport(f"cannot read {folder / FILE}: {error.message}", error.fix) from error


def read_request(folder: Path, named: Sequence[Path] = ()) -> SweepRequest:
    """Read the request of the sweep in `folder`.

    For the cases that are left, users' files run where the caller has `named` them. Raises UnreadableReport where
    it holds none, UsageError where a file is not named, or cannot be run.
    """
    contents = journals.read_journal(folder, FORMAT)
    request = journals.read_request(folder, FORMAT, SweepRequest, contents)
    is_whole = len(contents.outcomes) >= _planned(
        request, contents
    )  # then it is shown wherever it was copied to
    line = f"profkit sweep --resume {shlex.quote(str(folder))}"
    require_named(with_options(request.files), with_options(map(str, named)), line, needed=not is_whole)
    if not is_whole:
        register_files([Path(file) for file in request.files])
    return request


def _planned(request: SweepRequest, contents: JournalContents[CaseResult]) -> int:
    """Return the number of cases by the journal's header, else by the grid."""
    planned = contents.header.get("planned")
    return planned if isinstance(planned, int) else request.grid.cases


def sweep_document(
    request: SweepRequest, contents: JournalContents[CaseResult], seconds: float
) -> SweepDocument:
    """Build the document of all that a journal knows, in the order of its grid.

    Raises UnreadableReport for what no sweep notes.
    """
    about = contents.about
    order = {point: number for number, point in enumerate(request.grid.points())}
    names = {name: number for number, name in enumerate(request.grid.implementations)}
    known = sorted(
        contents.outcomes.values(),
        key=lambda r: (order.get(r.point, len(order)), names.get(r.implementation, len(names))),
    )
    planned = _planned(request, contents)
    roofs = about.get("roofs")
    return SweepDocument(
        started=str(contents.header.get("started", "")),
        device=str(about.get("device", "unknown")),
        results=tuple(known),
        roofs=codec.from_plain_data(MeasuredCeilings, roofs, "roofs") if roofs else MeasuredCeilings(),
        versions=codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        planned=planned,
        complete=len(known) >= planned,
        seconds=seconds,
    )

"""From the words of a command line, or of a journal, to what a sweep is asked to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from glob import escape
from pathlib import Path

from profkit.core import codec
from profkit.core.errors import MachineError, ProfkitError, UsageError
from profkit.core.run_folder import clean_name, create_run_folder
from profkit.kernels.operations.registry import registered
from profkit.kernels.sweep import journal as journals
from profkit.kernels.sweep.files import look_into
from profkit.kernels.sweep.grid import Grid, checked
from profkit.kernels.sweep.story import SweepRequest
from profkit.kernels.sweep.wish import Wish

ON_GPU = ("PyTorch", "torch.compile", "Triton", "CUDA")
ON_CPU = ("PyTorch",)
LONGEST = 1e7  # seconds, 116 days: clocks of the system take no infinite ones
MOST_THREADS = 4096  # with some ten thousand torch dies while it makes them


def wanted(
    *,
    operations: str,
    implementations: str,
    batch: str,
    sequence: str,
    dimension: str,
    dtype: str,
    direction: str,
    device: str,
    gpus: str,
    files: Sequence[Path],
    wish: Wish,
    timeout: float,
    output: Path,
    name: str = "sweep",
    make: bool = True,
    unfinished: bool = False,
) -> SweepRequest:
    """A new sweep, in a folder of its own below `output`, which is made where it shall begin (`make`).

    `unfinished`: where the last one of the same request below `output` was interrupted, that one is gone on with.
    Raises UsageError for what makes no sense, MachineError where there is no such device or no such folder can be.
    """
    if not 0.0001 <= wish.precision <= 0.5:
        raise UsageError(f"a precision of {wish.precision} is not between 0.0001 and 0.5", "--precision 0.01")
    for option, value, example in (("--budget", wish.budget, "1"), ("--timeout", timeout, "300")):
        if not 0 < value <= LONGEST:
            raise UsageError(f"{option} {value:g} is not a time in seconds", f"{option} {example}")
    if not 0 <= wish.threads <= MOST_THREADS:
        raise UsageError(f"--threads {wish.threads} is no number of threads", "--threads 1")
    files = tuple({file.resolve(): file for file in files}.values())
    own = look_into(files, timeout)
    place, numbers = _device(device, words(gpus))
    usual = (*(ON_GPU if place == "cuda" else ON_CPU), *own)
    grid = checked(
        operations=words(operations) or tuple(dict.fromkeys(op for op, _ in registered()))
        if own and not operations
        else words(operations),
        implementations_=words(implementations) or usual,
        batches=numbers_of("batch", batch),
        sequences=numbers_of("sequence", sequence),
        dimensions=numbers_of("dimension", dimension),
        dtypes=words(dtype),
        directions=words(direction),
    )
    paths = tuple(str(file.resolve()) for file in files)
    request = SweepRequest(grid, output / "SWEEP", place, numbers, paths, wish, timeout, sys.executable, name)
    before = _unfinished(output, request) if unfinished else None
    if before is not None:
        return replace(request, folder=before)
    if not make:
        return request
    return replace(request, folder=create_run_folder(output, name, place, datetime.now()))


def _unfinished(output: Path, request: SweepRequest) -> Path | None:
    """The folder of the last sweep of this request below `output`, where that one was not finished."""
    found = sorted(
        output.glob(f"*-{escape(clean_name(request.name))}-{request.device}*/{journals.FILE}"), reverse=True
    )
    for path in found:
        with suppress(ProfkitError):
            journal = journals.read(path)
            if all(journal.header.get(word) == value for word, value in request.header.items()):
                return path.parent if len(journal.results) < request.grid.cases else None
    return None


def resumed(folder: Path, *, again: bool = False) -> SweepRequest:
    """The sweep that `folder` holds, as it was asked for; `again`: what has no time is tried once more.

    Raises UnreadableReport where it holds none, UsageError where a file of the user's cannot be run any more.
    """
    found = journals.read(folder / journals.FILE)
    header = found.header
    grid = codec.build(Grid, header.get("grid"), "grid")
    files = tuple(str(file) for file in header.get("files", ()))
    settled = sum(result.state == "measured" or not again for result in found.results)
    planned, timeout = header.get("planned"), codec.build(float, header.get("timeout", 300.0), "timeout")
    if not isinstance(planned, int) or settled < planned:  # what is whole is shown wherever it was copied to
        look_into([Path(file) for file in files], timeout)
    rules = header.get("rules", {})
    return SweepRequest(
        grid,
        folder,
        str(rules.get("device", "cpu")),
        tuple(str(gpu) for gpu in header.get("gpus", ())),
        files,
        codec.build(Wish, rules.get("wish"), "rules.wish"),
        timeout,
        sys.executable,
        str(header.get("name", "sweep")),
        again,
    )


def words(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def numbers_of(axis: str, text: str) -> tuple[int, ...]:
    """Sizes between commas. Raises UsageError for what is no number."""
    try:
        return tuple(int(word) for word in words(text))
    except ValueError as error:
        raise UsageError(f"--{axis} {text} is no list of numbers", f"--{axis} 64,128") from error


def _device(asked: str, gpus: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """cuda or cpu, and the numbers of the devices that share it."""
    if asked not in ("auto", "cuda", "cpu"):
        raise UsageError(f"there is no device called {asked!r} here", "--device cuda, with --gpus 0 for one")
    if asked == "cpu":
        if gpus:
            raise UsageError("--gpus are devices of cuda, and this sweep is on the CPU", "--device cuda")
        return "cpu", ()
    from profkit.hardware.gpu import driver_fault, read_gpus

    found = read_gpus()
    if not found:
        if asked == "auto" and not gpus:
            return "cpu", ()
        fault = driver_fault()
        raise MachineError(
            f"no GPU can be used: {fault.reason if fault is not None else 'none is visible'}",
            _fix(fault.fix if fault is not None else None),
        )
    if unknown := [number for number in gpus if not number.isdecimal() or int(number) >= len(found)]:
        raise UsageError(f"there is no GPU {unknown[0]}; there are {len(found)}", "--gpus 0")
    return "cuda", gpus


def _fix(said: str | None) -> str:
    """What brings a GPU; where nothing does, the CPU, by the name that it has here."""
    return said if said and not said.startswith("--backend") else "--device cpu"

"""The sweep as one call, as the comprehensive benchmarking guide writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from profkit.analysis.ranking.ranking import FILE, guide_records
from profkit.core.errors import ProfkitError
from profkit.core.progress import Progress
from profkit.kernels.operations.registry import OPERATIONS
from profkit.kernels.sweep import journal as journals
from profkit.kernels.sweep.grid import BATCHES, DIMENSIONS, SEQUENCES
from profkit.kernels.sweep.outputs import ask_place, write_records
from profkit.kernels.sweep.request import wanted
from profkit.kernels.sweep.story import SweepRequest, run_sweep
from profkit.kernels.sweep.wish import Wish

LINE_SECONDS = 10.0  # between two lines of progress


def run_comprehensive_benchmark(
    batch_sizes: Sequence[int] = BATCHES,
    sequence_lengths: Sequence[int] = SEQUENCES,
    tensor_dimensions: Sequence[int] = DIMENSIONS,
    operations: Sequence[str] = tuple(OPERATIONS),
    output_file: str | Path = FILE,
    *,
    implementations: Sequence[str] = (),
    dtypes: Sequence[str] = ("float32",),
    directions: Sequence[str] = ("forward",),
    device: str = "auto",
    gpus: Sequence[int | str] = (),
    files: Sequence[str | Path] = (),
    precision: float = 0.01,
    budget: float = 1.0,
    cold: bool = True,
    threads: int = 0,
    timeout: float = 300.0,
    folder: str | Path = "reports",
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Check and time every operation at every shape in every implementation: the guide's records.

    They are in `output_file`, too: one per case, with the units that its keys name (`time_ms`, `memory_mb`,
    `throughput_gbps`; docs/sweep.md). A case without a time has null there, and its `state` and `reason`. `files`
    register implementations of your own; what was registered in this process alone is not known to the processes that
    measure. `precision` is a share, `budget` and `timeout` are seconds per case.

    The sweep has a folder of its own below `folder`. One of the same request that was interrupted there is gone on
    with: nothing is measured twice. Progress goes to standard error, unless `progress` is given.

    Raises UsageError for what makes no sense, MachineError where nothing can be measured or written, and Interrupted
    after a Ctrl-C; what was measured until then is in `output_file`, too.
    """
    target = Path(output_file)
    ask_place(target)
    request = wanted(
        operations=_words(operations),
        implementations=_words(implementations),
        batch=_words(batch_sizes),
        sequence=_words(sequence_lengths),
        dimension=_words(tensor_dimensions),
        dtype=_words(dtypes),
        direction=_words(directions),
        device=device,
        gpus=_words(gpus),
        files=[Path(files)] if isinstance(files, (str, Path)) else [Path(file) for file in files],
        wish=Wish(precision, budget, cold, threads),
        timeout=timeout,
        output=Path(folder),
        unfinished=True,
    )
    told = progress if progress is not None else _Lines()
    try:
        document = run_sweep(request, told)
    except BaseException:
        with suppress(ProfkitError):  # why it ended says more
            _keep(request, target)
        raise
    _keep(request, target)
    return guide_records(document)


def _words(values: object) -> str:
    """As on the command line: one value, or several."""
    return (
        ",".join(map(str, values))
        if isinstance(values, Iterable) and not isinstance(values, str)
        else str(values)
    )


def _keep(request: SweepRequest, target: Path) -> None:
    """Whatever is known by now as records in `target`."""
    from profkit.kernels.sweep.story import read_sweep

    if (request.folder / journals.FILE).is_file():
        write_records(target, read_sweep(request.folder))


class _Lines:
    """A line on standard error now and then."""

    def __init__(self) -> None:
        self._spoken = 0.0

    def begin(self, title: str, detail: str = "") -> None:
        self._say(f"{title}: {detail}" if detail else title)

    def tick(self, seconds: float) -> None:
        """A line needs no clock."""

    def move(self, detail: str) -> None:
        if monotonic() - self._spoken >= LINE_SECONDS:
            self._say(f"  {detail}")

    def end(self, result: str) -> None:
        self._say(f"  {result}")

    def note(self, text: str) -> None:
        self._say(f"  {text}")

    def _say(self, line: str) -> None:
        self._spoken = monotonic()
        print(line, file=sys.stderr, flush=True)

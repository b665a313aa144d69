"""The sweep as one call, in the form of the comprehensive benchmarking guide."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from profkit.analysis.ranking import FILE, guide_records
from profkit.core.errors import ProfkitError, Progress, Silent
from profkit.kernels.operations.registry import OPERATIONS
from profkit.kernels.sweep.outputs import check_writable, write_records
from profkit.kernels.sweep.request import (
    BATCHES,
    DIMENSIONS,
    SEQUENCES,
    SweepOptions,
    SweepRequest,
    TimingOptions,
    make_request,
    read_sweep,
)
from profkit.kernels.sweep.request import FILE as JOURNAL
from profkit.kernels.sweep.run import run_sweep
from profkit.reporting.plain_text import disarm_commands
from profkit.reporting.terminal import render
from profkit.reporting.views.kernels.sweep import view


def run_comprehensive_benchmark(
    batch_sizes: Sequence[int] = BATCHES,
    sequence_lengths: Sequence[int] = SEQUENCES,
    tensor_dimensions: Sequence[int] = DIMENSIONS,
    operations: Sequence[str] = tuple(OPERATIONS),
    output_file: str | Path = FILE,
    *,
    files: Sequence[str | Path] = (),
    folder: str | Path = "reports",
    progress: Progress | None = None,
    quiet: bool = False,
    **options: Any,
) -> list[dict[str, Any]]:
    """Check and time every operation at every shape in every implementation; return the guide's records.

    They are in `output_file`, too: one per case, with the units that its keys name (`time_ms`, `memory_mb`,
    `throughput_gbps`; docs/sweep.md). A case without a time has null there, and its `state` and `reason`. `files`
    register implementations of your own; what was registered in this process alone is not known to the processes
    that measure. `options` are those of `profkit sweep` by their names, one value or several: `device`, `gpus`,
    `dtype`, `direction`, `implementations`; `precision` (a share), `budget` and `timeout` (seconds per case),
    `threads`.

    The sweep has a folder of its own below `folder`; `profkit sweep --resume` continues it. Progress goes to
    standard error, unless `progress` is given; then the tables of `profkit sweep` are printed, unless it is
    `quiet`.

    Raises UsageError for what makes no sense, MachineError if nothing can be measured or written, and Interrupted
    after a Ctrl-C; what was measured until then is in `output_file`, too.
    """
    target = Path(output_file)
    check_writable(target)
    timing = {name: options.pop(name) for name in ("precision", "budget", "threads") if name in options}
    chosen = SweepOptions(
        operations=_join(operations),
        batch=_join(batch_sizes),
        sequence=_join(sequence_lengths),
        dimension=_join(tensor_dimensions),
        files=tuple(map(Path, [files] if isinstance(files, (str, Path)) else files)),
        timing=TimingOptions(**timing),
        output=Path(folder),
        timeout=options.pop("timeout", 300.0),
        **{name: _join(value) for name, value in options.items()},
    )
    request = make_request(chosen)
    try:
        document = run_sweep(request, progress if progress is not None else _Lines())
    except BaseException:
        with suppress(ProfkitError):  # why it ended says more
            _write(request, target)
        raise
    _write(request, target)
    if not quiet:
        print(disarm_commands(render(view(document, request.folder), details=False)), flush=True)
    return guide_records(document)


def _join(values: object) -> str:
    """Join values as the command line takes them: one value, or several with commas."""
    return (
        ",".join(map(str, values))
        if isinstance(values, Iterable) and not isinstance(values, str)
        else str(values)
    )


def _write(request: SweepRequest, target: Path) -> None:
    """Write whatever is known by now as records to `target`."""
    if (request.folder / JOURNAL).is_file():
        write_records(target, read_sweep(request.folder))


class _Lines(Silent):
    """Progress on standard error: a line where a piece of work begins, and one where it ends."""

    def begin(self, title: str, detail: str = "") -> None:
        self.note(f"{title}: {detail}")

    def end(self, result: str) -> None:
        self.note(f"  {result}")

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

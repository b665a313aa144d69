"""Which operations a program of the user calls: the program is run, and its processes count their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from profkit.core.errors import UsageError, WorkloadError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.process import run
from profkit.core.whole_files import write_whole
from profkit.kernels.evaluation.suites.notation import read_traces, write_trace
from profkit.runtime.passes.command import counting_environment


def record_operations(
    command: Sequence[str],
    out: Path,
    *,
    cwd: Path | None = None,
    log: Path | None = None,
    timeout: float | None = None,
    tick: Callable[[float], None] | None = None,
) -> int:
    """Run the command, and write the trace of all of its Python processes to `out`; how many calls are in it.

    `log` takes what it prints. Raises UsageError where the command starts no Python that can be followed, or calls no
    operation; WorkloadError where it fails or runs past `timeout` seconds.
    """
    with TemporaryFolder("calls") as folder:
        environment, reason = counting_environment(command, Path(folder))
        if environment is None:
            raise UsageError(f"the program's operations cannot be seen: {reason}", "-- python train.py")
        outcome = run(command, env=environment, cwd=cwd, log=log, timeout=timeout, tick=tick)
        if not outcome.ok:
            last = next(reversed(outcome.output_tail.strip().splitlines()), "")
            raise WorkloadError(
                f"the program {outcome.ending()}{f': {last[:200]}' if last else ''}",
                "--timeout SECONDS" if outcome.timed_out else None,
            )
        if not any(Path(folder).iterdir()):
            raise UsageError("the program called no operation of PyTorch", "-- python train.py")
        calls = read_traces(Path(folder))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, [write_trace(calls)])
        return sum(call.calls for call in calls)

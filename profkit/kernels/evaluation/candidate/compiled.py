"""The kernel against torch.compile of the same operation, in the way that it is timed against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from profkit.core.types import Speedup
from profkit.execution.child import WorkerEnded
from profkit.kernels.evaluation.candidate.answers import KernelError
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.judging.correctness import Incorrect
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.timing.batches import ReferenceFailed
from profkit.kernels.evaluation.timing.pairs import PairedTimes

SOURCE = SourceRequest("compiled")
NOTABLE_SECONDS = 0.1  # below that the same shapes had been compiled before
COMPILE_SECONDS = 300.0  # that a first call may take at least: the first one of all also compiles headers
NO_COMPILER = ("InvalidCxxCompiler", "No working C++ compiler")
FIX = "apt-get install g++"


class CompilableTest(Protocol):
    """What is asked of a test."""

    def first_call(self, process: KernelProcess) -> float:
        """Seconds of a first call, of which the result is checked. Raises Incorrect, KernelError, WorkerEnded."""


class CompiledRival:
    """The process that has torch.compile's kernels. Nothing that goes wrong in it costs more than its column."""

    def __init__(self, process: KernelProcess) -> None:
        self._process = process
        self._absent = ""  # why there is nothing to be had from it, once that is known

    def compare(
        self, operation: str, test: CompilableTest, time: Callable[[KernelProcess], PairedTimes]
    ) -> tuple[Speedup | None, str]:
        """The kernel's speed-up over it, and what is to be said of that. `time`: time the kernel against a process.

        Raises what `time` raises of the candidate.
        """
        if self._absent:
            return None, self._absent
        try:
            self._process.load(operation)
            first = test.first_call(self._process)
        except Incorrect as wrong:
            return None, f"not timed against torch.compile, whose own result is wrong: {wrong}"
        except (KernelError, WorkerEnded) as error:
            self._process.kill()
            return None, self._explain(error)
        try:
            times = time(self._process)
        except ReferenceFailed as failed:
            return None, f"not timed against torch.compile: {failed}"
        compiling = f"torch.compile took {first:.1f} s for its first call" if first >= NOTABLE_SECONDS else ""
        return times.speedup, compiling

    def close(self) -> None:
        """End its process."""
        self._process.close()

    def _explain(self, error: KernelError | WorkerEnded) -> str:
        text = f"{error} {getattr(error, 'traceback', '')}"
        if any(word in text for word in NO_COMPILER):
            self._absent = f"not timed against torch.compile: it finds no C++ compiler; {FIX}"
            return self._absent
        return f"not timed against torch.compile: {error}"

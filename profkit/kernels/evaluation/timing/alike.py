"""Two processes whose launches take the device equally long, chosen before anybody's kernel has run in them.

What every launch of a process takes on a GPU is drawn when it starts, and lasts as long as it lives: up to 0.2 µs more
than in another one, which would be in every speed-up. Launches of next to nothing show it. The slower process is
replaced until both are alike: nothing is taken off a time, and no kernel can have a part in what is measured here.
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter

from profkit.core.statistics import median
from profkit.execution.child import WorkerEnded
from profkit.kernels.evaluation.candidate.answers import KernelError
from profkit.kernels.evaluation.candidate.arguments import Encoder
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.process import LEAST
from profkit.kernels.evaluation.timing.batches import Unlaunched

ALIKE = 0.03e-6  # seconds a launch: 0.5 % of a kernel of 6 µs
LAUNCHES = 512  # at a time: a device takes some 1,000 ahead
BATCHES = 48  # of each
MOST_SECONDS = 60.0  # after which a machine that is not steady gets what it has


def start_alike(candidate: KernelProcess, reference: KernelProcess) -> None:
    """Start both where either does not run; where they can wait at a gate, until they are alike.

    Who fails here fails again where somebody is asked to say whose fault it is.
    """
    if candidate.memory.gate is None or (candidate.running and reference.running):
        return
    begin = perf_counter()
    candidate.kill()  # what ran in it may change what a launch takes
    with suppress(KernelError, WorkerEnded, Unlaunched):
        while abs(difference := _difference(candidate, reference)) > ALIKE:
            if perf_counter() - begin > MOST_SECONDS:
                return
            (candidate if difference > 0 else reference).kill()


def _difference(candidate: KernelProcess, reference: KernelProcess) -> float:
    """Seconds that a launch of the candidate's process takes longer."""
    both = (candidate, reference)
    for process in both:
        process.load(LEAST)
        process.place(Encoder().encode((), {}), LAUNCHES)
    differences = []
    for number in range(BATCHES + 2):
        took = {process: _launch(process) for process in both[:: 1 if number % 2 else -1]}
        differences.append((took[candidate] - took[reference]) / LAUNCHES)
    return median(differences[2:])  # the first ones load what is launched


def _launch(process: KernelProcess) -> float:
    if process.launch_slots(0) is None:
        raise Unlaunched
    return process.run_launched()

"""Two processes whose launches take the device equally long, chosen before anybody's kernel has run in them.

What every launch of a process takes on a GPU is drawn when it starts, and lasts as long as it lives: up to 0.2 µs more
than in another one, which would be in every speed-up. A small kernel of PyTorch's own, timed in both as a candidate is
timed, shows it; launches that only set memory draw a time of their own. The process that is further from what most
have drawn is replaced until both are alike: nothing is taken off a time, and no kernel can have a part in it.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from time import perf_counter

import torch

from profkit.core.statistics import median
from profkit.execution.child import WorkerEnded
from profkit.kernels.evaluation.candidate.answers import KernelError
from profkit.kernels.evaluation.candidate.arguments import Encoder
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.process import LEAST
from profkit.kernels.evaluation.judging.fresh_values import FreshValues
from profkit.kernels.evaluation.timing.batches import PairedBatches, ReferenceFailed, Unlaunched

ALIKE = 0.03e-6  # seconds a launch: 0.5 % of a kernel of 6 µs
LAUNCHES = 400  # at a time: a device takes some 1,000 ahead
ELEMENTS = 1 << 16  # of the array, 256 kB: a kernel of 3 µs
ROUNDS, PAIRS = 6, 5  # 60 pairs in a second: their median is known to 0.02 µs
MOST_SECONDS = 60.0  # after which a machine that is not steady gets what it has


def start_alike(candidate: KernelProcess, reference: KernelProcess) -> None:
    """Start both where either does not run; where they can wait at a gate, until they are alike.

    Who fails here fails again where somebody is asked to say whose fault it is.
    """
    if candidate.memory.gate is None or (candidate.running and reference.running):
        return
    begin = perf_counter()
    candidate.kill()  # what ran in it may change what a launch takes
    drawn: dict[int, float] = {}  # seconds of a launch, by the number of the process
    with suppress(KernelError, WorkerEnded, ReferenceFailed, Unlaunched):
        while True:
            difference, usual = _time_launches(candidate, reference)
            if abs(difference) <= ALIKE or perf_counter() - begin > MOST_SECONDS:
                return
            drawn[reference.pid], drawn[candidate.pid] = usual, usual + difference
            most = median(list(drawn.values()))
            (candidate if abs(usual + difference - most) > abs(usual - most) else reference).kill()


def _time_launches(candidate: KernelProcess, reference: KernelProcess) -> tuple[float, float]:
    """Seconds that a launch of the candidate's process takes longer, and those of the reference's.

    Raises KernelError, WorkerEnded, ReferenceFailed and Unlaunched.
    """
    encoder = Encoder(torch.device("cuda"))
    recipe = encoder.encode((torch.ones(ELEMENTS),), {})
    for process in (candidate, reference):
        process.load(LEAST)
        process.place(recipe, 1)
        process.run_slots(1)  # what is loaded at a first call would wait behind the gate
    pairs = []
    with ExitStack() as cleanup:
        fresh = FreshValues(encoder, recipe)
        batches = PairedBatches(
            candidate, reference, fresh, recipe, 1, LAUNCHES, cleanup, together=True, gated=True
        )
        for number in range(ROUNDS):
            batches.renew(pinned=True)
            batches.run_pairs(number)
            pairs += [pair for _ in range(PAIRS) for pair in batches.run_pairs(number)]
    return median([pair.candidate - pair.reference for pair in pairs]), median(
        [pair.reference for pair in pairs]
    )

"""`srun:ARGS`: one task of Slurm, which waits in the queue until it is given its node."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from profkit.execution.places.place import ExecutionPlace

QUEUE_SECONDS = 7 * 86400.0  # a queue is as long as it is; Ctrl-C ends the wait


def shell_in_task(words: Sequence[str]) -> ExecutionPlace:
    """A shell in one task. Slurm hands the environment on, so it inherits."""
    return ExecutionPlace(
        "srun",
        f"srun:{' '.join(words)}",
        ("srun", "--ntasks=1", "--unbuffered", *words, "sh"),
        QUEUE_SECONDS,
        inherits=True,
        try_it=f"srun {shlex.join(words)} python3 -V",
    )

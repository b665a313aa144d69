"""`srun:ARGS`: one task of Slurm, which waits in the queue until it is given its node."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from profkit.execution.places.place import ExecutionPlace

QUEUE_SECONDS = 7 * 86400.0  # a queue is as long as it is; Ctrl-C ends the wait
# srun takes its job out of the queue where it is asked to end, and leaves it there where it is killed. It reads nothing
# while it waits, so that it would outlive a profkit that was killed: the kernel asks it then (PR_SET_PDEATHSIG).
_ASKED_AT_THE_END = (
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux': ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit('profkit has ended')\n"
    "try: os.execvp(sys.argv[2], sys.argv[2:])\n"
    "except OSError as error: sys.exit(f'{sys.argv[2]} cannot be started: {error.strerror}')\n"
)


def shell_in_task(words: Sequence[str]) -> ExecutionPlace:
    """A shell in one task. Slurm hands the environment on, so it inherits."""
    ended_with_us = (sys.executable, "-ISc", _ASKED_AT_THE_END, str(os.getpid()))
    return ExecutionPlace(
        "srun",
        f"srun:{' '.join(words)}",
        (*ended_with_us, "srun", "--job-name=profkit", "--ntasks=1", "--unbuffered", *words, "sh"),
        QUEUE_SECONDS,
        inherits=True,
        try_it=f"srun {shlex.join(words)} python3 -V",
        gives_devices=True,
        queues=True,
        reason_mark=" CANCELLED AT ",
    )

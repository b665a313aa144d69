"""Jobs that know nothing of sweeps: what a worker process runs in these tests, and the pool that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from profkit.core.types import Json
from profkit.execution.child import WorkerClient
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from profkit.execution.worker import DeviceError, limit_memory

HERE = {"PYTHONPATH": str(Path(__file__).parent)}
PLAIN = partial(WorkerClient, "made_up_jobs:plain", env=HERE)
SLOW = partial(WorkerClient, "made_up_jobs:Slow", arguments=("first",), env=HERE)


class plain:  # noqa: N801 - called as the factory that it is
    """The handler of a plain function."""

    def open(self, settings: dict[str, Any]) -> Json:
        return settings

    def run(self, data: dict[str, Any]) -> Json:
        return work(data)


def work(data: dict[str, Any]) -> Json:
    """Does what its data says."""
    match data["do"]:
        case "sleep":
            time.sleep(data["seconds"])
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "kill its supervisor":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(10)
        case "leave":
            print("what it printed last", file=sys.stderr, flush=True)
            os._exit(3)
        case "exceed memory":
            limit_memory(1 << 26)
            bytearray(1 << 30)
        case "be killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ValueError("not this one")
        case "break the device":
            raise DeviceError("it fell off the bus")
        case "print":
            for _ in range(100):
                print('{"event": "done"}' * 1000, flush=True)
        case "start a grandchild":
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            Path(data["file"]).write_text(str(child.pid))
            time.sleep(1000)
    return {"did": data["do"], "pid": os.getpid()}


class Slow:
    """A handler that keeps something from one job to the next."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, settings: dict[str, Any]) -> Json:
        return {"name": self.name, "pid": os.getpid(), **settings}

    def run(self, data: Any) -> Json:
        if data == "raise":
            raise ValueError("not this one")
        if data == "crash":
            os._exit(7)
        return {"pid": os.getpid()}


def singles(jobs: Mapping[str, Any]) -> list[list[Job]]:
    """A group for each job."""
    return [[Job(key, data)] for key, data in jobs.items()]


def outcomes(
    groups: Iterable[Sequence[Job]],
    *clients: Callable[[], WorkerClient],
    timeout: float = 60.0,
) -> tuple[dict[str, JobOutcome], WorkerPool]:
    """The outcome of each job, which it gets once, and the pool."""
    settled: dict[str, JobOutcome] = {}

    def settle(outcome: JobOutcome) -> None:
        assert outcome.job.key not in settled
        settled[outcome.job.key] = outcome

    pool = WorkerPool([client() for client in clients or (PLAIN,)], settle, timeout=timeout)
    pool.open()
    pool.run(groups)
    return settled, pool

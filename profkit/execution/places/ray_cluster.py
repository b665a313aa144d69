"""`ray:ADDRESS`: an actor of a Ray cluster, with the GPUs that Ray gives it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from profkit.core.errors import UsageError
from profkit.execution.places.place import ExecutionPlace

SHELL = Path(__file__).with_name("ray_shell.py")
PYTHON = "PROFKIT_RAY_PYTHON"  # one that has Ray, where this one has not
START_SECONDS = 120.0  # to connect, and for a worker process to start
WAIT_SECONDS = 60.0  # as `ray_shell` has it
HINT = "--on ray:auto, or with options before the address: --on 'ray:--gpus 1 --accelerator H100 HOST:6379'"


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"ray: {message}", HINT)


def shell_in_actor(words: Sequence[str]) -> ExecutionPlace:
    """A shell in an actor. Raises UsageError for options that are none, and for what is no address of a cluster."""
    parser = _Options(prog="ray:", add_help=False, allow_abbrev=False)
    parser.add_argument("--gpus", type=_count)
    parser.add_argument("--accelerator")
    parser.add_argument("--cpus", type=_count, default=0)
    parser.add_argument("--resource", type=_resource, action="append", default=[])
    parser.add_argument("--wait", type=_count)
    parser.add_argument("address")
    request = vars(parser.parse_args(list(words)))
    address = request["address"]
    if address != "auto" and not address.removeprefix("ray://").rpartition(":")[2].isdigit():
        raise UsageError(
            f"ray: {address!r} is no address of a cluster: auto, HOST:PORT or ray://HOST:PORT", HINT
        )
    if request["gpus"] is None:
        request["gpus"] = 1 if request["accelerator"] else 0
    request["resources"] = dict(request.pop("resource"))
    python = os.environ.get(PYTHON) or sys.executable
    return ExecutionPlace(
        "ray",
        f"ray:{' '.join(words)}",
        (python, str(SHELL), json.dumps(request), "sh"),
        START_SECONDS + (request["wait"] or WAIT_SECONDS),
        has_own_client=True,
        gives_devices=True,
        try_it=f"{shlex.quote(python)} -c \"import ray; ray.init('{address}')\"",
    )


def _count(text: str) -> float:
    """Ray counts whole ones, and parts of one."""
    number = float(text)
    if not 0 <= number < 1e9:
        raise ValueError
    return int(number) if number.is_integer() else number


def _resource(text: str) -> tuple[str, float]:
    name, _, count = text.partition("=")
    return name, _count(count or "1")

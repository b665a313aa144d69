"""A process beside the workers that compiles what they will need, and neither calls nor times anything.

It speaks as a worker does (`worker.py`): what it is asked are points, what it gives is that they are done.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from time import perf_counter
from typing import TextIO

from profkit.core import codec
from profkit.core.types import GridPoint
from profkit.kernels.sweep.worker import be_a_child, say, with_answers

NICE = 10  # whoever measures has the processors first


def start(arguments: list[str]) -> None:
    """Be a helper until stdin ends. `arguments`: the sweep's process, and the device."""
    be_a_child(int(arguments[0]))
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    sys.exit(with_answers(lambda answers: _serve(arguments[1], answers)))


def _serve(name: str, answers: TextIO) -> None:
    """The device's context is made first, while the workers make theirs, too, and nothing is timed yet."""
    import torch

    device = torch.device(name)
    if device.type == "cuda":
        torch.empty(1, device=device)
    from profkit.kernels.operations.compile_ahead import compile_ahead
    from profkit.kernels.operations.compiled import NAME, load
    from profkit.kernels.operations.kernels_ahead import kernels_ahead

    for line in sys.stdin:
        request = json.loads(line)
        if request["ask"] == "about":
            if request["compiles"]:
                load()
            if request["threads"]:  # for a CPU they are in what is compiled
                torch.set_num_threads(request["threads"])
            say(answers, {"event": "about"})
            continue
        begin, point = perf_counter(), codec.build(GridPoint, request["point"])
        for name in request["implementations"]:
            with suppress(Exception):  # the worker that needs it will say what is wrong
                if name == NAME:
                    compile_ahead(point, device)
                else:
                    kernels_ahead(name, point, device)
        say(answers, {"event": "done", "seconds": perf_counter() - begin})

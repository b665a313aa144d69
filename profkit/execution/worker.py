"""The inside of a worker process: requests come as lines on stdin, answers go to its first standard output.

A worker runs one *handler*. It is made by a factory, which is named `package.module:function` and gets the
arguments of the `WorkerClient`. What other code prints goes to the worker's log. A handler has

- `open(settings)`, which prepares it and its device for jobs, and returns what the pool's caller wants to know of it,
- `run(data)`, which does the job that the data describe, and returns its value. An exception is the outcome `error`
  (`out_of_memory` for a MemoryError); it raises DeviceError if the device no longer answers.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO


class DeviceError(Exception):
    """The device no longer answers. Its job ends as a crash, and the pool starts a new worker."""


def start(arguments: Sequence[str]) -> None:
    """Be a worker until stdin ends. `arguments`: the process that started it, the factory, its arguments as JSON."""
    end_with(int(arguments[0]))
    prefer_as_oom_victim()
    search_own_modules_last()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of others
    try:
        module, _, name = arguments[1].partition(":")
        handler: Any = getattr(import_module(module), name)(*json.loads(arguments[2]))
        for line in sys.stdin:
            _answer(handler, json.loads(line), answers)
    except (Exception, SystemExit) as error:
        _send(answers, {"event": "fatal", "reason": f"{type(error).__name__}: {error}"[:2000]})
        sys.exit(1)
    sys.exit(0)


def search_own_modules_last() -> None:
    """Move the working directory to the end of sys.path: a file torch.py in it is not torch."""
    with suppress(OSError):  # a directory that is gone
        here = str(Path.cwd())
        sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]


def _answer(handler: Any, request: dict[str, Any], answers: TextIO) -> None:
    if request["ask"] == "open":
        _send(answers, {"event": "opened", "about": handler.open(request["settings"])})
    else:
        try:
            _send(answers, {"event": "result", "value": handler.run(request["data"])})
        except DeviceError as error:
            _send(answers, {"event": "fatal", "reason": str(error)})
            os._exit(1)  # an orderly end would wait for the device
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:2000]
            memory = isinstance(error, MemoryError)
            _send(answers, {"event": "error", "reason": reason, "memory": memory})


def _send(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


# ---------------------------------------------------------------- limits
#
# A worker ends with its parent, is killed first where memory runs out, and has a memory limit: features of Linux. On
# other systems it ends when its input does.

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
MARGIN = 0.9  # of the free memory that a worker may take


def end_with(parent: int) -> None:
    """End this process, however busy it is, when the process `parent` that started it is gone (Linux)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it went before this was asked
        os._exit(1)


def prefer_as_oom_victim() -> None:
    """Let the kernel kill this process before any other where memory runs out (proc(5): oom_score_adj)."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_memory(free: int | None) -> None:
    """Let this process have nine tenths of `free` bytes beyond what it has: more is refused (setrlimit(2)).

    Without it Linux promises memory that it does not have, and kills some process when it is used.
    """
    used = _number_in("/proc/self/status", "VmData:")  # KiB of what RLIMIT_DATA counts
    if free is None or used is None:
        return
    import resource

    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = used * 1024 + int(MARGIN * free)
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most)
        )


def kills_for_memory() -> int | None:
    """Return how many processes the kernel has killed here because memory ran out; None if that is not known."""
    return _number_in("/proc/vmstat", "oom_kill ")


def _number_in(path: str, name: str) -> int | None:
    """Return the number after a name in a file of Linux."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return None

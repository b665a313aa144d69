"""The program behind `modal:GPU`: it rents a container of Modal, and relays its pipes to a shell in there.

    python -m profkit.execution.places.modal_shell REQUEST sh

It uses the `modal` package and the token of whoever calls it; neither gets into the container. Nothing may go
on costing money, so the container ends in each of these ways:

- standard input ends, or a signal comes: this program ends it;
- this program or its connection dies: the container's own command gets no more heartbeats, and ends;
- its time is over: Modal ends it, and limits idle time by itself, too.

If there is no shell, the last line of its output says why.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

BEAT_SECONDS, SILENCE_SECONDS = 15.0, 60
WATCH = f"while IFS= read -r -t {SILENCE_SECONDS} _; do :; done"  # the container's own command
MAX_AT_ONCE = 4 << 20  # bytes
CORES, MEMORY = 4, 32 << 10  # MiB
GRACE_SECONDS = 5.0  # for the shell there to end by itself
# The counters' tool of this CUDA is 2025.2.1: others have found that later ones return NaN for many of them at Modal.
BASE, PYTHON = "nvidia/cuda:12.9.1-devel-ubuntu24.04", "3.12"
PROGRAMS = ("cuda-nsight-compute-12-9", "cuda-nsight-systems-12-9")
DRIVER = {"NVIDIA_DRIVER_CAPABILITIES": "all"}  # the library by which counters are read is part of it
LIBRARIES = ("torch==2.13.0", "numpy", "psutil", "pyyaml", "capstone")
INTERRUPTED = 130
# What Modal is asked for so that no other kind comes: it may give an H200 for an H100, and 80 GB for an A100.
EXACT = {"A100": "A100-40GB", "H100": "H100!"}


def main(words: Sequence[str]) -> int:
    """Rent the container that the first word describes, run the others in it, and return the shell's exit code."""
    request, command = json.loads(words[0]), words[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    here = os.getcwd()
    sys.path[:] = [*(path for path in sys.path if path not in ("", here)), here]  # a modal.py may lie here
    try:
        return _rent(importlib.import_module("modal"), request, command)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "modal"
        reason = "the package modal is not installed" if absent else f"modal cannot be loaded: {error}"
        reason += f" ({sys.executable} -m pip install 'modal>=1.6,<2')"
    except Exception as error:  # who has no token is told what makes one
        reason = f"Modal says {type(error).__name__}: {' '.join(str(error).split())}"
    print(reason, file=sys.stderr, flush=True)
    return 3


def _rent(modal: Any, request: dict[str, Any], command: Sequence[str]) -> int:
    app, code = modal.App("profkit"), INTERRUPTED  # Modal's block keeps a KeyboardInterrupt to itself
    gpu, _, count = request["gpu"].partition(":")
    over = threading.Event()
    with app.run():  # Modal ends what is in it when its client falls silent
        container = modal.Sandbox.create(
            "bash",
            "-c",
            WATCH,
            app=app,
            image=_image(modal, request["image"]),
            gpu=EXACT.get(gpu, gpu) + (f":{count}" if count else ""),
            cpu=(CORES,) * 2,  # asked for, and the most
            memory=(MEMORY,) * 2,
            timeout=request["timeout"],
            idle_timeout=2 * SILENCE_SECONDS,
        )
        try:
            threading.Thread(target=_beat, args=(container, over), name="beat", daemon=True).start()
            code = _relay(container, command, over)
        finally:
            over.set()
            with contextlib.suppress(Exception):
                container.terminate()
    return code


def _image(modal: Any, name: str | None) -> Any:
    """Return the named image, or one with CUDA, its profilers and torch, which Modal builds once for an account."""
    if name is not None:
        return modal.Image.from_registry(name).entrypoint([])
    base = modal.Image.from_registry(BASE, add_python=PYTHON).entrypoint([])
    return base.apt_install(*PROGRAMS).pip_install(*LIBRARIES).env(DRIVER)


def _relay(container: Any, command: Sequence[str], over: threading.Event) -> int:
    shell = container.exec(*command, text=False)
    for work, words in ((_send, (shell.stdin, over)), (_copy, (shell.stderr, 2))):
        threading.Thread(target=work, args=words, name=work.__name__, daemon=True).start()
    _copy(shell.stdout, 1)
    code: int = shell.wait()
    return code


def _send(stdin: Any, over: threading.Event) -> None:
    """Pass the input on to the shell, all that waits in one call since each is a round trip; end all at its end.

    If that fails, the shell's output ends and says why; the input is still read to its end.
    """
    piece = b"more"
    while piece:
        data = b""
        while piece := os.read(0, 1 << 16):
            data += piece
            if len(data) > MAX_AT_ONCE or not select.select([0], [], [], 0)[0]:
                break
        with contextlib.suppress(Exception):
            stdin.write(data)
            if not piece:
                stdin.write_eof()
            stdin.drain()
    if not over.wait(GRACE_SECONDS):
        os.kill(os.getpid(), signal.SIGINT)


def _copy(stream: Any, target: int) -> None:
    for piece in stream:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(target, rest) :]


def _beat(container: Any, over: threading.Event) -> None:
    while True:
        with contextlib.suppress(Exception):  # where no beat arrives the container ends
            container.stdin.write(b"\n")
            container.stdin.drain()
        if over.wait(BEAT_SECONDS):
            return


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # a thread waits for standard input

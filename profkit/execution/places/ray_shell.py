"""A shell in an actor of a Ray cluster, by the pipes of this program: `python ray_shell.py REQUEST sh`.

It runs under whatever Python has `ray`, so it imports the standard library and that. As the program that is
called it is `__main__`, and Ray ships the actor by value: nodes need no profkit. Bytes go through calls of
the actor, a piece at a time, so a slow reader is not overrun. REQUEST is JSON: address, and the options of
the actor.

If the actor ends, so does the shell's input, and with that all that profkit does there.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

PIECE = 65536  # bytes of a call: a pipe holds no more, and Ray keeps what is small out of its object store
POLL_SECONDS = 5.0  # the longest answer of `read`
ANSWER_SECONDS = 45.0  # until an actor that does not answer is lost
WAIT_SECONDS = 60.0  # for what others use
END_SECONDS = 30.0  # for a shell to end when its input has


class Shell:
    """The actor that holds the shell."""

    def __init__(self) -> None:
        # Ray sets the number of threads to that of the processors that it gives, and lets its workers yield to others.
        env = {n: v for n, v in os.environ.items() if n != "OMP_NUM_THREADS" and not n.startswith("RAY_")}
        env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env.get("PATH", os.defpath)
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        pipe = subprocess.PIPE
        self.shell = subprocess.Popen(
            ["sh"],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=env,
            cwd=os.path.expanduser("~"),
            start_new_session=True,
        )
        self.input, out, err = (
            stream.fileno() for stream in (self.shell.stdin, self.shell.stdout, self.shell.stderr) if stream
        )
        self.outputs = {out: b"o", err: b"e"}

    def begin(self) -> bytes:
        """Return nothing, as soon as there is a shell."""
        return b""

    def write(self, data: bytes) -> None:
        """Write bytes to the shell's input, as fast as it reads them; no bytes end the input."""
        with contextlib.suppress(BrokenPipeError):
            if not data and self.shell.stdin is not None:
                self.shell.stdin.close()
            while data:
                data = data[os.write(self.input, data) :]

    def read(self) -> bytes:
        """Return `o` or `e` with output, nothing after a quiet while, and at the end `x` with the status."""
        if self.outputs:
            for number in select.select(list(self.outputs), [], [], POLL_SECONDS)[0]:
                if data := os.read(number, PIECE):
                    return self.outputs[number] + data
                del self.outputs[number]
            return b""
        return b"x%d" % self.shell.wait()


def main() -> NoReturn:
    """Relay, and end as the shell did; without a shell end with 3 and a line that says why."""
    request = json.loads(sys.argv[1])
    sys.path[:] = sys.path[1:]  # beside this file, or where somebody works, nothing is a library
    answers = os.dup(1)
    os.dup2(2, 1)  # prints of others
    os.chdir("/")
    # All that the code of an actor depends on
    os.environ.setdefault("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "minor")
    ray = _connect(request["address"])
    actor = _start_actor(ray, request)
    ended: list[float] = []

    def send() -> None:
        with contextlib.suppress(Exception):  # the other thread sees it, too
            while data := os.read(0, PIECE):
                ray.get(actor.write.remote(data))
            ended.append(time.monotonic())
            ray.get(actor.write.remote(b""))

    threading.Thread(target=send, daemon=True).start()
    try:
        while (piece := ray.get(actor.read.remote(), timeout=ANSWER_SECONDS))[:1] != b"x":
            kind, data = piece[:1], piece[1:]
            while data:
                data = data[os.write(answers if kind == b"o" else 2, data) :]
            if ended and time.monotonic() - ended[0] > END_SECONDS:
                _give_up("the shell did not end with its input")
    except Exception as error:
        _give_up(f"the actor is gone: {_reason(error)}")
    with contextlib.suppress(Exception):  # at once: a server waits half a minute for one that went away
        ray.kill(actor)
        ray.shutdown()
    os._exit(int(piece[1:]) & 0xFF)


def _connect(address: str) -> Any:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        missing = "Ray is not installed for" if error.name == "ray" else f"no {error.name} for Ray in"
        _give_up(f"{missing} {sys.executable} ({sys.executable} -m pip install 'ray[client]')")
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host:  # Ray itself would try for long
            socket.create_connection((host.strip("[]"), int(port)), 15).close()
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except Exception as error:
        _give_up(_reason(error))
    return ray


def _start_actor(ray: Any, request: dict[str, Any]) -> Any:
    once = {"max_restarts": 0, "max_task_retries": 0, "max_concurrency": 3}
    try:
        actor = ray.remote(Shell).options(**request["options"], **once).remote()
        ray.get(actor.begin.remote(), timeout=WAIT_SECONDS)
    except ray.exceptions.GetTimeoutError:
        _give_up(f"no node had what was asked for to give for {WAIT_SECONDS:g} s (`ray status`)")
    except Exception as error:
        _give_up(_reason(error))
    return actor


def _reason(error: BaseException) -> str:
    """Return the first of Ray's many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:5]) or type(error).__name__


def _give_up(message: str) -> NoReturn:
    """End with 3; the reason is the last line that is printed."""
    sys.stdout.flush()
    os.write(2, f"\n{message[:300]}\n".encode())
    os._exit(3)


if __name__ == "__main__":
    main()

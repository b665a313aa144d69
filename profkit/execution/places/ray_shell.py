"""A shell in an actor of a Ray cluster, by the pipes of this program: `python ray_shell.py REQUEST sh`.

It runs under whatever Python has `ray`, so it imports the standard library and that. As the program that is called
it is `__main__`, and Ray ships the actor by value: nodes need no profkit. Bytes go through calls of the actor, a piece
at a time: who does not read is not written to. REQUEST is JSON: address, gpus, cpus, accelerator, resources, wait.

The shell is the child of a guard, which is no child of the actor: Ray kills those, and what they started would go on.
Where the shell or the actor ends, the guard ends all that is left.
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
SILENCE_SECONDS = 60.0  # until an actor that nobody asks ends
CONNECT_SECONDS = 60.0
END_SECONDS = 30.0  # for a shell to end when its input has

GUARD = """
import contextlib, ctypes, os, signal, socket, subprocess, sys, threading, time
if os.fork():
    os._exit(0)
os.setsid()
actor = socket.socket(fileno=int(sys.argv[1]))
with contextlib.suppress(OSError, AttributeError):
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopt orphans
with contextlib.suppress(OSError):
    os.setpriority(os.PRIO_PROCESS, 0, 0)  # Ray's workers yield to all others
shell = subprocess.Popen(["sh"], start_new_session=True)
null = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(null, number)

def children():
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError), open("/proc/" + name + "/stat") as stat:
            if int(stat.read().rpartition(")")[2].split()[1]) == os.getpid():
                yield int(name)

def end():
    with contextlib.suppress(OSError):
        os.killpg(shell.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        while pids := list(children()):
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.waitpid(pid, 0)

def watch():
    with contextlib.suppress(OSError):
        actor.recv(1)
    time.sleep(25)  # its input has ended: it may end by itself
    end()
    os._exit(1)

threading.Thread(target=watch, daemon=True).start()
status = shell.wait()
end()
with contextlib.suppress(OSError):
    actor.sendall(str(status).encode())
os._exit(0)
"""


class Shell:
    """The actor. `own_threads`: whether the number of threads that Ray sets is what was asked for."""

    def __init__(self, guard: str, own_threads: str) -> None:
        with open("/proc/self/environ", "rb") as file:  # as the process began; Ray has changed it since
            named = {pair.partition(b"=")[0].decode("utf-8", "replace") for pair in file.read().split(b"\0")}
        added = {"PYTHONBREAKPOINT", *(() if own_threads else ("OMP_NUM_THREADS",))} - named
        env = {n: v for n, v in os.environ.items() if n not in added and not n.startswith("RAY_")}
        env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env.get("PATH", os.defpath)
        (inside, self.input), (out, out_inside), (err, err_inside) = os.pipe(), os.pipe(), os.pipe()
        self.guard, guarded = socket.socketpair()
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", guard, str(guarded.fileno())],
            stdin=inside,
            stdout=out_inside,
            stderr=err_inside,
            pass_fds=[guarded.fileno()],
            env=env,
            cwd=os.path.expanduser("~"),
            check=True,
        )
        for number in (inside, out_inside, err_inside):
            os.close(number)
        guarded.close()
        self.outputs, self.asked = {out: b"o", err: b"e"}, time.monotonic()
        threading.Thread(target=self.watch, daemon=True).start()

    def begin(self) -> bytes:
        """Nothing, as soon as there is a shell."""
        return b""

    def watch(self) -> None:
        """Where nobody asks any more, there is no actor any more."""
        while time.monotonic() - self.asked < SILENCE_SECONDS:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    def write(self, data: bytes) -> None:
        """Bytes for the shell's input; none: it ends. It takes as long as the shell does to read them."""
        with contextlib.suppress(BrokenPipeError):
            if not data:
                os.close(self.input)
            while data:
                data = data[os.write(self.input, data) :]

    def read(self) -> bytes:
        """`o` or `e` with what the shell wrote, nothing after a while without, and at the end `x` with its status."""
        self.asked = time.monotonic()
        if self.outputs:
            for number in select.select(list(self.outputs), [], [], POLL_SECONDS)[0]:
                if data := os.read(number, PIECE):
                    return self.outputs[number] + data
                del self.outputs[number]
            return b""
        return b"x" + (self.guard.recv(16) or b"-9")


def main() -> NoReturn:
    """Relay, and end as the shell did; with 3 and a line that says why where there is none."""
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
    with contextlib.suppress(
        Exception
    ):  # at once: a server for clients waits half a minute for one that went away
        ray.kill(actor)
        ray.shutdown()
    os._exit(int(piece[1:]) & 0xFF)


def _connect(address: str) -> Any:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        missing = "Ray is not installed for" if error.name == "ray" else f"no {error.name} for Ray in"
        _give_up(f"{missing} {sys.executable} ({sys.executable} -m pip install 'ray[client]')")
    late = threading.Timer(CONNECT_SECONDS, _give_up, [f"{address} did not answer for {CONNECT_SECONDS:g} s"])
    late.daemon = True
    late.start()
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host:  # Ray itself would try for long
            socket.create_connection((host.strip("[]"), int(port)), 15).close()
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except Exception as error:
        _give_up(_reason(error))
    late.cancel()
    return ray


def _start_actor(ray: Any, request: dict[str, Any]) -> Any:
    actor = (
        ray.remote(Shell)
        .options(
            num_gpus=request["gpus"],
            num_cpus=request["cpus"],
            accelerator_type=request["accelerator"],
            resources=request["resources"],
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=3,
        )
        .remote(GUARD, "yes" if request["cpus"] else "")
    )
    try:
        ray.get(actor.begin.remote(), timeout=request["wait"])
    except ray.exceptions.GetTimeoutError:
        wanted = {"GPU": request["gpus"], "CPU": request["cpus"], **request["resources"]}
        names = [f"{count:g} {name}" for name, count in wanted.items() if count]
        shown = " ".join([*names, *filter(None, [request["accelerator"]])]) or "an actor"
        _give_up(f"no node had {shown} to give for {request['wait']:g} s (`ray status`; --wait SECONDS)")
    except Exception as error:
        _give_up(_reason(error))
    return actor


def _reason(error: BaseException) -> str:
    """Of Ray's many lines the first ones."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:5]) or type(error).__name__


def _give_up(message: str) -> NoReturn:
    """The reason is the last line of what is printed."""
    sys.stdout.flush()
    os.write(2, f"\n{message[:300]}\n".encode())
    os._exit(3)


if __name__ == "__main__":
    main()

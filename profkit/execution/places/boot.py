"""The program that runs at a place before profkit is there: it unpacks what is sent, then starts profkit.

Its text is sent and executed by whatever Python 3.10 or newer was found there, so it imports the standard
library only. It says what is there and gets a single request: a line of JSON, followed by the bytes of two
tars. Its folder, which is `~/.cache/profkit/elsewhere` or what `PROFKIT_CACHE` names, has

    code/ID/       profkit, never changed; ID is the SHA-256 of its files
    runs/NAME-1/   the folder of one run: `work` with the workload's files, `out` for results; emptied afterwards
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import IO, Any

NEEDED = ("psutil", "yaml")  # without which profkit does nothing
OLD_SECONDS = 30 * 86400.0  # a profkit that was not used for so long is removed


def serve() -> None:
    """Report this Python, what it lacks and what is there, then start what is requested.

    Does not return after that.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of others
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store = Path()
    try:
        store = open_store()
        hello = {
            "event": "hello",
            "python": sys.executable,
            "version": list(sys.version_info[:3]),
            "missing": [name for name in NEEDED if importlib.util.find_spec(name) is None],
            "code": [path.name for path in (store / "code").iterdir()],
        }
        send(answers, hello)
        if line := requests.readline():
            start(json.loads(line), requests, answers, store)
    except OSError as error:
        fix = f"df -h {store}; ls -ld {store}   (there; PROFKIT_CACHE names another folder)"
        give_up(requests, answers, 3, f"{store} cannot be used: {error}", fix)
    except Exception as error:
        give_up(requests, answers, 70, f"{type(error).__name__}: {error}"[:2000], None)


def send(answers: IO[bytes], answer: dict[str, Any]) -> None:
    """Send one line to the other side."""
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def give_up(requests: IO[bytes], answers: IO[bytes], code: int, message: str, fix: str | None) -> None:
    """Report a fault, and read on until the other side stops sending, which would otherwise miss the message."""
    send(answers, {"event": "fault", "exit": code, "message": message, "fix": fix})
    while requests.read(1 << 16):
        pass


def start(request: dict[str, Any], requests: IO[bytes], answers: IO[bytes], store: Path) -> None:
    """Unpack what was sent, and hand over to profkit."""
    code = store / "code" / request["code"]
    if request["code_bytes"]:
        part = code.with_name(f"{code.name}.{os.getpid()}.part")
        try:
            unpack(requests, request["code_bytes"], part)
            with contextlib.suppress(OSError):  # another run was faster
                os.rename(part, code)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    os.utime(code)
    for former in (store / "code").iterdir():
        with contextlib.suppress(OSError):  # another run was faster
            if time.time() - former.stat().st_mtime > OLD_SECONDS:
                shutil.rmtree(former, ignore_errors=True)
    run, lock = claim_run(store / "runs", request["name"])
    if request["work_bytes"]:
        unpack(requests, request["work_bytes"], run / "work")
    os.environ.update(request["env"])
    if request["python"]:  # `python` is the one that was named
        here = os.path.dirname(os.path.abspath(request["python"]))
        os.environ["PATH"] = here + os.pathsep + os.environ.get("PATH", os.defpath)
    present = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{code}{os.pathsep}{present}" if present else str(code)
    sys.path[:] = [str(code), *filter(None, sys.path)]
    folder = run / "work" / request["folder"]
    folder.mkdir(parents=True, exist_ok=True)  # nothing that was sent may lie in it
    os.chdir(folder)
    module, _, name = request["function"].partition(":")
    getattr(importlib.import_module(module), name)(requests, answers, run, request["data"])
    empty(run)
    os.close(lock)
    answers.flush()
    os._exit(0)  # a reader waits for stdin


def unpack(stream: IO[bytes], size: int, folder: Path) -> None:
    """Unpack a tar of `size` bytes from the stream into the folder, and nothing of it anywhere else."""
    safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tempfile.TemporaryFile(dir=folder.parent) as packed:
        while size and (data := stream.read(min(size, 1 << 20))):
            packed.write(data)
            size -= len(data)
        packed.seek(0)
        with tarfile.open(fileobj=packed, mode="r:gz") as tar:
            tar.extractall(folder, **safely)


def open_store() -> Path:
    """Return the first folder that is writable and belongs to this user alone. Raises OSError."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    usual = os.path.join(cache, "profkit", "elsewhere")
    shared = os.path.join(tempfile.gettempdir(), f"profkit-{os.getuid()}")
    choices = [os.environ.get("PROFKIT_CACHE", ""), usual if os.path.isabs(usual) else "", shared]
    last = OSError(errno.EACCES, "no folder there can be written")
    for choice in filter(None, choices):
        try:
            os.makedirs(choice, 0o700, exist_ok=True)
            for folder in ("code", "runs"):
                os.makedirs(os.path.join(choice, folder), exist_ok=True)
            if os.access(choice, os.W_OK) and os.stat(choice).st_uid == os.getuid():
                return Path(choice).resolve()
        except OSError as error:
            last = error
    raise last


def claim_run(runs: Path, name: str) -> tuple[Path, int]:
    """Lock an empty folder that no other run uses; its name mostly stays the same, since reports contain paths."""
    import fcntl

    number = 0
    while True:
        number += 1
        folder = runs / f"{name}-{number}"
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        empty(folder)
        for part in ("work", "out"):
            (folder / part).mkdir()
        return folder, lock


def empty(folder: Path) -> None:
    """Remove what a run left, except its lock."""
    for part in ("work", "out"):
        shutil.rmtree(folder / part, ignore_errors=True)

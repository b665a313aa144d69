"""Ends what this process has started if it is itself killed and no longer can: `kill -9`, no memory, a crash.

A process beside it sleeps at the end of a pipe. It learns which trees run, and sees the pipe's end however
this process ends: then it asks what is left of them to end, and kills it. It is no parent of anything, so
nothing that is timed runs below it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

GRACE_SECONDS = 2.0  # after SIGTERM
CHASE_SECONDS = 10.0  # how long a tree is killed that forks meanwhile
START_SECONDS = 10.0
_CREATED = 1.0  # seconds by which two readings of the time at which a process was created differ

_lock = threading.RLock()
_watcher: subprocess.Popen[bytes] | None = None
_watched: dict[
    int, list[tuple[int, float]]
] = {}  # leader -> members of its tree, with the time of their creation


def start_watcher() -> None:
    """Start the watcher, before anything that it watches: its own start would disturb that.

    If it cannot be started, profkit goes on without it.
    """
    with _lock:
        if _watcher is None and sys.executable:
            with contextlib.suppress(OSError):
                _start()


def watch(leader: int, members: Iterable[tuple[int, float]] = ()) -> None:
    """Register a process that leads a session, or more members of its tree, by pid and time of creation."""
    with _lock:
        new = list(members)
        _watched.setdefault(leader, []).extend(new)
        _tell(_line(leader, new))


def forget(leader: int) -> None:
    """Unregister a tree that has ended."""
    with _lock:
        if _watched.pop(leader, None) is not None:
            _tell(f"-{leader}\n")


def _line(leader: int, members: Iterable[tuple[int, float]]) -> str:
    return " ".join([f"+{leader}", *(f"{pid}@{created}" for pid, created in members)]) + "\n"


def _start() -> None:
    global _watcher
    import psutil

    packages = str(Path(psutil.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, packages],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # a Ctrl-C on the terminal is not meant for it
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdout:
        ready, _, _ = select.select([child.stdout], [], [], START_SECONDS)
        if not ready or child.stdout.read(1) != b"+":  # at rest
            child.kill()
            child.wait(GRACE_SECONDS)
            return
    os.set_blocking(child.stdin.fileno(), False)  # one that somebody has stopped holds nobody up
    _watcher = child
    for leader, members in _watched.items():
        _tell(_line(leader, members))


def _tell(line: str) -> None:
    if _watcher is None or _watcher.stdin is None:
        return
    try:
        os.write(_watcher.stdin.fileno(), line.encode())
    except OSError:  # somebody has killed it
        _end_watcher()


@atexit.register
def _end_watcher() -> None:
    global _watcher
    with _lock:
        watcher, _watcher = _watcher, None
        if watcher is not None and watcher.stdin is not None:
            watcher.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                watcher.wait(GRACE_SECONDS)


def _leave_to_parent() -> None:
    """Drop the watcher in a forked child: the pipe has to end with the parent."""
    global _watcher, _lock
    _lock = threading.RLock()
    watcher, _watcher = _watcher, None
    _watched.clear()
    if watcher is not None and watcher.stdin is not None:
        watcher.stdin.close()
        watcher.returncode = 0  # it is no child of ours, and nobody is to ask for its end


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


# ------------------------------------------------------------ the watcher itself


def main() -> None:
    """Read which trees run until the pipe ends; then end what is left of them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b"+")
    os.close(1)
    trees: dict[int, dict[int, float]] = {}
    for line in sys.stdin:
        leader, *members = line.split()
        if leader.startswith("-"):
            trees.pop(int(leader[1:]), None)
            continue
        tree = trees.setdefault(int(leader[1:]), {})
        tree.update(
            (int(pid), float(created)) for pid, _, created in (word.partition("@") for word in members)
        )
    if trees:
        sys.path.append(sys.argv[1])
        _end_trees(trees)


def _end_trees(trees: dict[int, dict[int, float]]) -> None:
    seen = {pid: created for tree in trees.values() for pid, created in tree.items()}
    deadline = time.monotonic() + GRACE_SECONDS + CHASE_SECONDS
    kill_from = time.monotonic() + GRACE_SECONDS
    signalled: set[int] = set()
    while time.monotonic() < deadline and (left := _members(trees.keys(), seen)):
        seen.update(left)  # whose parent ends first is found again
        kills = time.monotonic() >= kill_from
        for pid in left.keys() - (set() if kills else signalled):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if kills else signal.SIGTERM)
        signalled |= left.keys()
        time.sleep(0.1)


def _members(leaders: Iterable[int], seen: dict[int, float]) -> dict[int, float]:
    """Return the living processes, by pid with their time of creation, that belong to the watched trees.

    These are the members of the sessions and groups of `leaders`, those in `seen`, and all below them. Other
    watchers are left out: they end by themselves once they have done the same.
    """
    import psutil

    leaders, living, parents = set(leaders), {}, {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            pid, created = process.pid, process.create_time()
            if process.status() == psutil.STATUS_ZOMBIE or pid == os.getpid():
                continue
            parents[pid] = process.ppid(), created
            belongs = os.getsid(pid) in leaders or os.getpgid(pid) in leaders
            if belongs or abs(seen.get(pid, -_CREATED) - created) < _CREATED:
                living[pid] = created
    grown = True
    while grown:
        below = {pid: at for pid, (above, at) in parents.items() if above in living and pid not in living}
        living.update(below)
        grown = bool(below)
    for pid in list(living):
        with contextlib.suppress(psutil.Error):
            if __file__ in psutil.Process(pid).cmdline():
                del living[pid]
    return living


if __name__ == "__main__":
    main()

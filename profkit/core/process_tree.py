"""Find, measure and end the whole process tree below one child, however its members hide.

A member may have left the child's session, or lost its parent (a daemon forks twice). Since profkit adopts
orphans (Linux), it stays below profkit, and what started after the child and belongs to no other child is the
child's.

A tree is ended in one of two ways: `end` asks its members first, so that a profiler can finish its file;
`kill` does not ask.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import psutil

from profkit.core import watcher
from profkit.core.signals import defer_interrupts

GRACE_SECONDS = 3.0  # what a profiler gets to finish its file after SIGINT
KILL_SECONDS = 3.0  # how long a tree that forks faster than it is killed is chased

_running: dict[int, ProcessTree] = {}  # every child under way, since several may run side by side
# Held from the start of a child until its tree is made: else another thread, which ends its own tree just then, would
# take the new child for a member of that.
starting = threading.Lock()


class TreeUse(NamedTuple):
    """What a tree had used when it was last looked at (Linux); elsewhere, a value that stays 0 is not known.

    `read` and `written` are bytes of `calls` of read, write and their like, whatever they led to. What is of the child
    alone, without what it started, is known once it has ended.
    """

    read: int = 0
    written: int = 0
    calls: int = 0
    threads: int = 0  # the most that there were at a time
    faults: int = 0  # of the child alone: pages that it got without reading a file
    kernel: float = 0.0  # seconds that the kernel worked for the child alone


class ProcessTree:
    """The child `pid`, which leads a session of its own, and everything that it started.

    `starts_others`: orphans may be its own. For programs of profkit's, which leave none, it is False.
    """

    def __init__(self, pid: int, *, starts_others: bool = True) -> None:
        self._pid, self._starts_others = pid, starts_others
        self._seen: dict[int, float] = {}  # pid -> creation time, so that a reused pid is never killed
        self._born = 0.0
        with contextlib.suppress(psutil.Error):
            self._born = psutil.Process(pid).create_time()
        self.rss = self.peak_rss = 0  # at the last look, and the most at any
        self.cpu_seconds = 0.0  # of all members, and of the children that they have waited for
        self.use = TreeUse()
        self._queued: dict[int, float] = {}  # pid -> seconds in which its threads waited for a processor
        # seconds in which the child's first thread ran, and waited for a processor
        self.main_thread = (0.0, 0.0)
        # Children of this process that were there before: somebody else's, who lost their parent
        self._before = frozenset(_child_pids(os.getpid())) - {pid}
        _running[pid] = self
        watcher.watch(pid, [(pid, self._born)])

    def look(self) -> None:
        """Record the present members, their memory, their processor time and what they read and wrote."""
        total, seconds, threads = 0, 0.0, 0
        moved = [0, 0, 0]
        count_before = len(self._seen)
        for pid in self._orphans_here():  # what they use is not counted
            with contextlib.suppress(psutil.Error):
                self._seen[pid] = psutil.Process(pid).create_time()
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self._pid)
            for process in [root, *_descendants(root)]:
                with contextlib.suppress(psutil.Error):
                    self._seen[process.pid] = process.create_time()
                    total += process.memory_info().rss
                    seconds += sum(process.cpu_times()[:4])  # user, system, and both of its ended children
                    threads += process.num_threads()
                    self._queued[process.pid] = max(
                        self._queued.get(process.pid, 0.0), seconds_queued(process.pid)
                    )
                    if sys.platform == "linux":
                        io = process.io_counters()
                        calls = io.read_count + io.write_count
                        moved = [moved[0] + io.read_chars, moved[1] + io.write_chars, moved[2] + calls]
        self.rss = total
        self.peak_rss = max(self.peak_rss, total)
        self.cpu_seconds = max(self.cpu_seconds, seconds)
        before = self.use.read, self.use.written, self.use.calls, self.use.threads
        self.use = TreeUse(*map(max, before, (*moved, threads)))
        if new := list(self._seen.items())[count_before:]:
            watcher.watch(self._pid, new)

    def look_at_end(self) -> None:
        """Record what the kernel knows of the child when it has ended and was not reaped yet (Linux).

        That is for how long it waited for a processor, the pages that it got, and for how long the kernel worked.
        """
        with contextlib.suppress(OSError):
            self._queued[self._pid] = max(self._queued.get(self._pid, 0.0), seconds_queued(self._pid))
        self.main_thread = _scheduled(self._pid, self._pid)
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{self._pid}/stat", encoding="ascii", errors="replace") as file:
                # From the state on: the name before it, in brackets, may have blanks (proc(5): fields 3, 10 and 15)
                known = file.read().rpartition(")")[2].split()
            kernel = int(known[12]) / os.sysconf("SC_CLK_TCK")
            self.use = self.use._replace(faults=int(known[7]), kernel=kernel)

    @property
    def queued_seconds(self) -> float:
        """Return the seconds for which ready threads of the tree waited for a processor, as last seen (Linux)."""
        return sum(self._queued.values())

    def end(self, grace: float = GRACE_SECONDS) -> None:
        """Ask every member to end, and kill those that do not.

        A Ctrl-C meanwhile cuts the wait short, and is raised once nothing is left.
        """
        with defer_interrupts() as hurry:
            alive = self._living_members()
            for number, wait in ((signal.SIGINT, grace), (signal.SIGTERM, grace / 3)):
                if alive and not hurry.is_set():
                    _send_signal(alive, number)
                    deadline = time.monotonic() + wait
                    while alive and not hurry.is_set() and (left := deadline - time.monotonic()) > 0:
                        _, alive = psutil.wait_procs(alive, timeout=min(left, 0.2))
                    alive = self._living_members()
            if alive or sys.platform != "linux":  # nobody adopts there what lost its parent
                self.kill()
        if hurry.is_set():
            raise KeyboardInterrupt

    def kill(self) -> None:
        """Kill the child's process group, and what it has started elsewhere, at once."""
        alive = self._living_members()
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)
        deadline = time.monotonic() + KILL_SECONDS
        while alive and time.monotonic() < deadline:
            _send_signal(alive, signal.SIGKILL)
            psutil.wait_procs(alive, timeout=0.1)
            alive = self._living_members()

    def members_elsewhere(self) -> list[int]:
        """List members in other process groups than the child's, without psutil: some 10 us for each thread (Linux)."""
        elsewhere = []
        pids = [self._pid, *self._orphans_here()]
        for pid in pids:  # which grows meanwhile
            pids += _child_pids(pid)
            with contextlib.suppress(OSError):
                if os.getpgid(pid) != self._pid:
                    elsewhere.append(pid)
        return elsewhere

    def _orphans_here(self) -> list[int]:
        """List children of this process that it did not start itself, and reap those that have ended."""
        orphans: list[int] = []
        if not self._starts_others or any(
            tree is not self and tree._starts_others for tree in list(_running.values())
        ):
            return orphans
        with starting:
            for pid in _child_pids(os.getpid()):
                with contextlib.suppress(OSError):
                    ours = pid in _running or pid in self._before or os.getsid(pid) == os.getsid(0)
                    ours = ours or os.getpgid(pid) == self._pid
                    if not ours and os.waitpid(pid, os.WNOHANG) == (0, 0):
                        orphans.append(pid)
        return orphans

    def forget(self) -> None:
        """Stop tracking the tree: the child and all that it started have ended."""
        _running.pop(self._pid, None)
        watcher.forget(self._pid)

    def _living_members(self) -> list[psutil.Process]:
        members = []
        with starting:
            below = {process.pid: process for process in psutil.Process().children(recursive=True)}
            for process in below.values():
                with contextlib.suppress(psutil.Error, OSError):
                    if process.status() != psutil.STATUS_ZOMBIE and self._is_member(process, below):
                        members.append(process)
        return members

    def _is_member(self, process: psutil.Process, below: dict[int, psutil.Process]) -> bool:
        session = os.getsid(process.pid)
        if session in _running:
            return session == self._pid
        if self._seen.get(process.pid) == process.create_time():
            return True
        if session == os.getsid(0):
            return False  # what profkit started itself
        above: psutil.Process | None = process
        while above is not None:
            if above.pid in _running:
                return above.pid == self._pid
            above = below.get(above.ppid())
        alone = self._starts_others and sum(tree._starts_others for tree in _running.values()) == 1
        return alone and process.create_time() >= self._born


def descendants(pid: int) -> list[int]:
    """Return the processes below another one; none where it has ended."""
    with contextlib.suppress(psutil.Error):
        return [process.pid for process in _descendants(psutil.Process(pid))]
    return []


def _descendants(root: psutil.Process) -> Iterator[psutil.Process]:
    """Yield the processes below `root`.

    Linux lists each thread's children; elsewhere all processes are read, which costs ten times as much.
    """
    if not os.path.exists(f"/proc/{root.pid}/task/{root.pid}/children"):
        yield from root.children(recursive=True)
        return
    pids = [root.pid]
    for pid in pids:  # which grows meanwhile
        for child in _child_pids(pid):
            pids.append(child)
            with contextlib.suppress(psutil.Error):
                yield psutil.Process(child)


def _child_pids(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += map(int, file.read().split())
    return children


def seconds_queued(pid: int) -> float:
    """Return the seconds that the threads of a process waited for a processor."""
    with contextlib.suppress(OSError):
        return sum(_scheduled(pid, int(thread))[1] for thread in os.listdir(f"/proc/{pid}/task"))
    return 0.0


def _scheduled(pid: int, thread: int) -> tuple[float, float]:
    """Return the seconds that a thread ran, and those it waited for a processor; zeros where not known.

    They are the first two numbers of its schedstat, in ns.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            ran, waited = (int(number) for number in file.read().split()[:2])
        return ran * 1e-9, waited * 1e-9
    return 0.0, 0.0


def _send_signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)

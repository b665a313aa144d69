"""The switch for valgrind's callgrind: client requests from Python, without a compiler.

A client request is a run of rotations that add up to nothing, followed by an instruction that does nothing.
A real processor runs it as a no-op; valgrind recognises it while translating and reads the request from
memory (valgrind.h, `__SPECIAL_INSTRUCTION_PREAMBLE`). Here it is machine code of x86-64 in an executable page,
called by ctypes. The page is made only inside valgrind, so nothing of this happens in any other run.

The scheme, for callgrind started with `--instr-atstart=no --combine-dumps=yes` (valgrind 3.19, each by
experiment):

- `prepare` starts instrumentation, which is global, then turns collection off for this thread. The order
  matters: starting resets every thread to "collecting". The caches are simulated also while nothing is
  collected, so the warm-up calls after `prepare` leave them warm, and they stay warm between two entries.
- `enter` turns collection on, `exit` turns it off. Entries add up; what lies between them is not counted.
- Collection is a state of the thread: threads that the workload starts collect from their birth. With more
  than one thread, costs are therefore dumped at `exit` and zeroed at the next `enter`, so that the other
  threads' work inside the region counts and their work outside does not.
- Otherwise one dump is written when another region begins or the process ends. Its trigger carries the
  region's name, how often it was entered, and whether the first entry found cold caches.
- A forked child inherits the costs counted so far and would count them again: it starts from zero.

An entry costs some 7,500 instructions itself (CPython 3.11): the way from the switch to the region's body and
back. Put the region around many iterations where the body is short; `profkit.benchmark` does.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import platform
import sys
import threading
from collections.abc import Callable
from functools import partial

_RUNNING_ON_VALGRIND = 0x1001  # valgrind.h
_CALLGRIND = 0x43540000  # 'C', 'T': callgrind.h
_ZERO_STATS = _CALLGRIND + 1
_TOGGLE_COLLECT = _CALLGRIND + 2
_DUMP_STATS_AT = _CALLGRIND + 3
_START_INSTRUMENTATION = _CALLGRIND + 4

# A function (default, address of six words) -> answer, in the platform's C calling convention.
_CODE = bytes.fromhex(
    "4889f0"  # mov rax, rsi      the request block
    "4889fa"  # mov rdx, rdi      the answer of a real processor
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3; 13; 61; 51: 128 bits in all
    "4887db"  # xchg rbx, rbx     rdx = client request(rax)
    "4889d0"  # mov rax, rdx
    "c3"
)

_NAME_BYTES = 300  # callgrind formats the trigger into a buffer of 512 bytes
_MAX_DUMPS = 200  # a region entered a million times must not leave a million dumps


def inside_valgrind() -> bool:
    """Return whether this process runs under a valgrind tool: its preloaded library is mapped."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"/vgpreload_" in maps.read()
    except OSError:
        return False


class ClientRequests:
    """Client requests to the valgrind this process runs in. Harmless no-ops everywhere else."""

    def __init__(self) -> None:
        # the plain form of a fact, since profkit may not be here
        self.reason: dict[str, object] | None = None  # why nothing is switched, None when requests arrive
        self._blocks: list[object] = []  # must outlive every call, as must the page
        if not inside_valgrind():
            self.reason = {"code": "not-under-valgrind"}
        elif platform.machine().lower() not in ("x86_64", "amd64") or sys.maxsize < 2**32:
            self.reason = {"code": "no-request-code", "names": {"name": platform.machine()}}
        else:
            self._load()

    def _load(self) -> None:
        try:
            page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        except (OSError, ValueError) as error:  # a hardened kernel refuses a writable executable page
            self.reason = {"code": "no-executable-memory", "names": {"said": str(error)}}
            return
        page.write(_CODE)
        self._blocks.append(page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        # PYFUNCTYPE keeps the interpreter lock: giving it back and taking it again would be counted too.
        self._call = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)(address)
        if not self.send(_RUNNING_ON_VALGRIND):
            self.reason = {"code": "valgrind-does-not-answer"}

    def send(self, code: int, argument: int = 0) -> int:
        """Send one request and return valgrind's answer, 0 where nobody answers."""
        block = (ctypes.c_size_t * 6)(code, argument)
        return int(self._call(0, ctypes.addressof(block)))

    def prepared(self, code: int) -> Callable[[], object]:
        """Return a request without argument whose sending costs as few simulated instructions as Python allows."""
        block = (ctypes.c_size_t * 6)(code)
        self._blocks.append(block)
        return partial(self._call, 0, ctypes.addressof(block))


class _ThreadState(threading.local):
    """Whether callgrind collects in this thread; true from birth once instrumentation has begun."""

    collecting = True


class ValgrindSwitch:
    """Restricts callgrind to regions. Every method does nothing when `reason` is set."""

    def __init__(self) -> None:
        self._requests = ClientRequests()
        self.reason = self._requests.reason
        self._thread = _ThreadState()
        self._started = False
        self._cold = False
        self._pending: str | None = None  # the region whose costs are counted but not yet dumped
        self._entries = 0
        self._dumps = 0

    def prepare(self) -> None:
        """Begin to simulate the caches without counting: what runs from here warms them."""
        if self.reason is not None or self._started:
            return
        self._started = True
        self._toggle = self._requests.prepared(_TOGGLE_COLLECT)
        self._requests.send(_START_INSTRUMENTATION)
        self._toggle()
        self._thread.collecting = False
        os.register_at_fork(after_in_child=self._begin_child)
        atexit.register(self.end)

    def enter(self, name: str) -> None:
        """Count from here. Without a `prepare` before it, the first entry finds cold caches, and says so."""
        if self.reason is not None:
            return
        if not self._started:
            self.prepare()
            self._cold = True
        if self._pending not in (None, name) and self._dumps < _MAX_DUMPS:
            self._dump()
        if self._pending is None:
            self._requests.send(_ZERO_STATS)  # what other threads did since the last dump
        self._pending = name
        self._entries += 1
        if not self._thread.collecting:
            self._thread.collecting = True
            self._toggle()

    def exit(self, name: str) -> None:  # noqa: ARG002
        """Count no further in this thread."""
        if self.reason is not None or not self._started:
            return
        if self._thread.collecting:
            self._toggle()
            self._thread.collecting = False
        if self._dumps < _MAX_DUMPS and _count_threads() > 1:
            self._dump()

    def _dump(self) -> None:
        """Write what was counted, under the region's name, and count from zero."""
        if self._pending is None:
            return
        name = " ".join(self._pending.split()).encode("utf-8", "replace")[:_NAME_BYTES]
        label = name + b" [entries %d%s]" % (self._entries, b", cold" if self._cold else b"")
        text = ctypes.create_string_buffer(label)
        self._requests.send(_DUMP_STATS_AT, ctypes.addressof(text))
        self._pending = None
        self._entries = 0
        self._cold = False
        self._dumps += 1

    def end(self) -> None:
        """End the process's counts: what other threads did since the last dump belongs to no region."""
        self._dump()
        self._requests.send(_ZERO_STATS)

    def _begin_child(self) -> None:
        """Forget in a forked child what the parent counted."""
        self._requests.send(_ZERO_STATS)
        self._entries = 1 if self._thread.collecting else 0
        if not self._thread.collecting:
            self._pending = None


def _count_threads() -> int:
    """Return how many threads this process has; native ones are no Python threads, so the kernel is asked."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1

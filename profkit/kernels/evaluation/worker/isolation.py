"""All that keeps a kernel from what is not its own. Linux only; elsewhere nothing is done.

This is no sandbox against an attacker (SECURITY.md): it stops a faulty kernel from harming others, and a cheat from
reaching the judge, its files, or processor time that nobody measures.

The judge and the reference let nobody but the system's administrator look into their memory or their
descriptors. The candidate cannot send them signals, trace them, nor write any file of theirs (landlock(7),
from Linux 5.13 on; signals from 6.12 on). System calls by which it would run on while it is stopped, or
compute a result when that is read, are refused (seccomp(2)). No privilege is needed for any of it, and those
of root that would undo it are given up.

Between two requests the process is stopped, with all that it has started, so that nothing computes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import clock_gettime

from profkit.execution.child import ChildProcess

_SET_DUMPABLE, _CAPABILITY_DROP, _NO_NEW_PRIVILEGES = 4, 24, 38  # prctl(2)
_NO_SLOWDOWN = 4  # a filter costs no mitigation of speculative stores beside
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # numbers of the system calls, the same everywhere
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGE_FOLDERS = 0x1FF0  # make or remove anything
_SIGNALS = 1 << 1  # of what is scoped
_KEPT = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 14  # capabilities: files of others, locked memory
_CAPABILITIES = 41
# Where compilers of kernels keep what they made: variables that name a folder, and folders.
_VARIABLES = (
    "XDG_CACHE_HOME", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH",
    "NUMBA_CACHE_DIR", "FLAGGEMS_CACHE_DIR",
)  # fmt: skip
_FOLDERS = ("~/.cache", "~/.triton", "~/.nv", "~/.flaggems", "/tmp", "/var/tmp", "/dev/shm")
_DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "nvidia*", "dri", "kfd", "hugepages",
    "infiniband",
)  # fmt: skip
_MADE = "~/.cache/torch_extensions"  # what a compiler could not make itself: ~/.cache may lack, or have kept folders
# seccomp(2): its number, the number that audit(7) has for the architecture, and the numbers of the calls that are
# refused: ptrace (whoever traces a process keeps it from being stopped), userfaultfd, and by io_uring_setup.
_FILTERS = {"x86_64": (317, 0xC000003E, (101, 323, 425)), "aarch64": (277, 0xC00000B7, (117, 282, 425))}
_X32 = 0x40000000  # the calls of another ABI on x86-64
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_SET_FILTER = 1
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_OFFSET_OF_NUMBER, _OFFSET_OF_ARCHITECTURE = 0, 4  # in struct seccomp_data

# Those that compilers for a GPU make themselves, which they may not in a home that they cannot write to.
GPU_CACHES = ("~/.cache", "~/.triton", "~/.nv", "~/.flaggems")


def make_caches(folders: Sequence[str]) -> None:
    """Make folders of compilers where they do not exist. Call this before `confine`."""
    for folder in folders:
        with suppress(OSError):
            Path(folder).expanduser().mkdir(exist_ok=True)


def shield() -> None:
    """Let no process of this user read or change the memory of this one, or take its descriptors (ptrace(2))."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def confine(kernels: Sequence[str], kept: Sequence[str]) -> None:
    """Let this process, and all that it starts, write only below temporary folders, caches and `kernels`.

    Never below `kept`. To be called while the process has one thread.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        _give_up_capabilities(libc)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
            _restrict_writes(libc, [Path(path) for path in kernels], [Path(path) for path in kept])


def refuse_calls() -> None:
    """Forbid this process, and all that it starts, the system calls that get around being stopped.

    The filter makes every call a little slower, so the baseline has it, too. To be called while the process has
    one thread.
    """
    if os.uname().machine not in _FILTERS or sys.maxsize < 1 << 32:
        return
    seccomp, architecture, refused = _FILTERS[os.uname().machine]
    # A program of the kernel's packet filter, whose jumps are counted from the next instruction on. It allows all
    # calls but those that are refused: a list of the allowed ones would break whatever a compiler needs.
    tests = [_instruction(_JUMP_IF_AT_LEAST, _X32, len(refused) + 1)]
    tests += [
        _instruction(_JUMP_IF_EQUAL, number, len(refused) - place) for place, number in enumerate(refused)
    ]
    parts = [
        _instruction(_LOAD, _OFFSET_OF_ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, architecture, 1),
        _instruction(_RETURN, _REFUSE),  # numbers of another architecture mean other calls
        _instruction(_LOAD, _OFFSET_OF_NUMBER),
        *tests,
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _REFUSE),
    ]
    code = ctypes.create_string_buffer(b"".join(parts))
    program = struct.pack("=H6xQ", len(parts), ctypes.addressof(code))  # struct sock_fprog
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
            libc.syscall(seccomp, _SET_FILTER, ctypes.c_ulong(_NO_SLOWDOWN), program)


def _instruction(code: int, value: int, jump: int = 0, otherwise: int = 0) -> bytes:
    """Return an instruction of the filter (struct sock_filter)."""
    return struct.pack("=HBBI", code, jump, otherwise, value)


def _restrict_writes(libc: ctypes.CDLL, kernels: Sequence[Path], kept: Sequence[Path]) -> None:
    """Restrict writes by landlock(7), if the system has it, to the allowed folders and devices."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:  # the kernel is older, or the container forbids it
        return
    writes = _WRITE_FILE | (_TRUNCATE if version >= 3 else 0)
    rights = writes | _CHANGE_FOLDERS | (_REFER if version >= 2 else 0)
    # struct landlock_ruleset_attr: rights on files, on the network, and what is scoped (from version 6 on).
    wanted = struct.pack("=QQQ", rights, 0, _SIGNALS)[: 24 if version >= 6 else 8]
    rules = libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0)
    if rules < 0:
        return
    folders = [tempfile.gettempdir(), *filter(None, map(os.environ.get, _VARIABLES)), *_FOLDERS]
    places = [Path(folder).expanduser() for folder in folders]
    with suppress(OSError, RuntimeError):
        Path(_MADE).expanduser().mkdir(parents=True, exist_ok=True)
    kept = [path.resolve() for path in kept]
    own = Path(tempfile.gettempdir()).resolve()  # made for this process alone: it may lie below what is kept
    allowed = [own] if not any(path.is_relative_to(own) for path in kept) else []
    for folder in (
        *allowed,
        *(each for place in {*places, *kernels} for each in _without(place.resolve(), kept)),
    ):
        with suppress(OSError):
            _allow(libc, rules, folder, rights)
    for device in (path for name in _DEVICES for path in Path("/dev").glob(name)):
        with suppress(OSError):
            _allow(libc, rules, device, rights if device.is_dir() else writes)
    with suppress(OSError):
        _allow(libc, rules, Path("/proc/self"), rights)
    libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, place: Path, rights: int) -> None:
    """Add a rule that allows `rights` at `place`. Raises OSError where there is nothing."""
    file = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        libc.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, file), 0)
    finally:
        os.close(file)


def _without(folder: Path, kept: Sequence[Path]) -> Iterator[Path]:
    """Yield the folder if nothing kept lies in it; else those of its folders that do not lead to what is kept."""
    if any(folder.is_relative_to(path) for path in kept):
        return
    if not any(path.is_relative_to(folder) for path in kept):
        yield folder
        return
    with suppress(OSError):
        for child in folder.iterdir():
            if child.is_dir() and not child.is_symlink():
                yield from _without(child, kept)


def _give_up_capabilities(libc: ctypes.CDLL) -> None:
    """Drop root's capabilities, with which it could look into every process, the judge's included."""
    for number in range(_CAPABILITIES):
        if not _KEPT >> number & 1:
            libc.prctl(_CAPABILITY_DROP, number, 0, 0, 0)

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    data = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: twice, for 32 capabilities each
    header = Header(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    if libc.capget(ctypes.byref(header), data) == 0:
        for place in range(6):
            data[place] &= _KEPT if place < 3 else 0
        libc.capset(ctypes.byref(header), data)


# ---------------------------------------------------------------- stopping a process

# Of processor time, that all processes elsewhere may take for being woken and stopped: more was work.
WAKING_SECONDS = 1e-4
MAX_LOOKS = 50  # for processes that start others: whoever starts more of them meanwhile does it to escape
_CPU_CLOCK = 2  # of a process: what clock_getcpuclockid(3) makes of its number


class ProcessPause:
    """Stops and wakes a child's process group, and its descendants in other groups and sessions."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child
        self._stopped: set[int] = set()  # members elsewhere
        self.elsewhere: set[int] = set()  # the same, as they were when it was stopped last
        self._others, self._busy = self.elsewhere, 0.0

    def forget(self) -> None:
        """Forget the descendants, since the child was killed."""
        self._stopped, self.elsewhere = set(), set()

    def begin(self) -> None:
        """Start counting what descendants in other groups compute."""
        self._others, self._busy = self.elsewhere, cpu_seconds(self.elsewhere)

    def has_computed_elsewhere(self) -> bool:
        """Return whether a descendant in another group has computed since `begin`."""
        return bool(self._others - self._stopped) or cpu_seconds(self._stopped) - self._busy > WAKING_SECONDS

    def wake(self) -> None:
        """Wake the group and all descendants that were stopped."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGCONT)
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._stopped = set()

    def stop_group(self) -> None:
        """Stop the process itself, and those of its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGSTOP)

    def stop(self) -> bool:
        """Stop all of them; return False where they start processes faster than these can be stopped."""
        self.stop_group()
        for _ in range(MAX_LOOKS):
            running = set(self._child.members_elsewhere()) - self._stopped
            if not running:
                self.elsewhere = self._stopped
                return True
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            self._stopped |= running
        return False


def cpu_seconds(processes: Iterable[int]) -> float:
    """Return the CPU seconds of all threads of the processes; those that have ended count nothing."""
    seconds = 0.0
    for pid in processes:
        with suppress(OSError):
            seconds += clock_gettime(~pid << 3 | _CPU_CLOCK)
    return seconds

"""Kernels that reach for what is not theirs, each for another operation; what they give is right where they fail."""

import ctypes
import fcntl
import os
import signal
import sys
from pathlib import Path

import torch

from profkit.evaluation import kernel

aten = torch.ops.aten
libc = ctypes.CDLL(None, use_errno=True)
done = set()


def once(name):
    return not (name in done or done.add(name))


def give_right_value_where_all_fail(function, attempts, x):
    """Each attempt must raise OSError or give a negative number."""
    for attempt in attempts:
        try:
            worked = (attempt() or 0) >= 0
        except OSError:
            continue
        if worked:
            raise AssertionError(f"attempt {attempts.index(attempt)} worked")
    return function(x)


def processes():
    """The judge, and its other processes."""
    judge = os.getppid()
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = path.read_text().rpartition(")")[2].split()
        if int(fields[1]) == judge and int(path.parent.name) != os.getpid():
            yield int(path.parent.name)
    yield judge


@kernel("abs.default")
def looks_into_other_processes(x):
    attempts = [
        attempt
        for pid in processes()
        for attempt in (
            lambda pid=pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY)),
            lambda pid=pid: len(os.readlink(f"/proc/{pid}/fd/0")),
            lambda pid=pid: libc.ptrace(16, pid, 0, 0),
        )
    ]
    return give_right_value_where_all_fail(aten.abs.default, attempts, x)


@kernel("exp.default")
def sends_signals(x):
    attempts = [lambda pid=pid: os.kill(pid, signal.SIGCONT) for pid in processes()]
    return give_right_value_where_all_fail(aten.exp.default, attempts, x)


@kernel("sin.default")
def writes_files_of_others(x):
    import profkit
    from profkit.core.files.safe_folder import user_cache

    log = Path(f"/proc/{os.getpid()}/fd/2").resolve()
    paths = [log.parent / "new", log.parent.parent / "new", Path(profkit.__file__), Path(torch.__file__)]
    paths += [
        user_cache("kernels") / "new",
        *(path for path in Path("/dev").glob("[sv]d?") if path.is_block_device()),
    ]
    attempts = [lambda path=path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)) for path in paths]
    return give_right_value_where_all_fail(aten.sin.default, attempts, x)


@kernel("cos.default")
def cuts_off_the_shared_memory(x):
    shared = [fd for fd in range(3, 20) if "profkit-arguments" in target_of(fd)]
    assert shared
    attempts = [lambda fd=fd: os.ftruncate(fd, 0) for fd in shared]
    attempts += [lambda fd=fd: fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE) for fd in shared]
    return give_right_value_where_all_fail(aten.cos.default, attempts, x)


@kernel("sqrt.default")
def computes_in_another_session(x):
    compute_elsewhere("sqrt", os.setsid)
    return aten.sqrt.default(x)


@kernel("erf.default")
def computes_in_another_group(x):
    compute_elsewhere("erf", lambda: os.setpgid(0, 0))
    return aten.erf.default(x)


def compute_elsewhere(name, leave):
    """A process that is nobody's child counts for as long as it runs."""
    if once(name):
        reader, writer = os.pipe()  # which is closed when the other program begins
        if os.fork() == 0:
            leave()
            if os.fork():
                os._exit(0)
            os.execv(sys.executable, [sys.executable, "-c", "while True: pass  # computes elsewhere"])
        os.close(writer)
        os.read(reader, 1)


@kernel("cosh.default")
def would_run_while_it_is_stopped(x):
    """By tracing itself, by pages that are made when they are read, or by work that the system does for it."""
    calls = {"x86_64": (101, 323, 425), "aarch64": (117, 282, 425)}[os.uname().machine]
    attempts = [lambda number=number: libc.syscall(number, 0, 0, 0, 0) for number in calls]
    return give_right_value_where_all_fail(aten.cosh.default, attempts, x)


@kernel("log.default")
def answers_before_it_is_asked(x):
    if once("log"):
        answers = next(fd for fd in range(3, 20) if "pipe" in target_of(fd))
        os.write(answers, b'{"value": null}\n')
    return aten.log.default(x)


def target_of(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


@kernel("tanh.default")
def writes_where_it_may(x):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "made").write_text("something")
        Path(folder, "made").rename(Path(folder, "moved"))
    return aten.tanh.default(x)


@kernel("clone.default")
def maps_its_argument_once_more(x, memory_format=None):
    """The same memory at another address: a copy that costs nothing, and is none."""
    libc.mmap.restype = ctypes.c_void_p
    fd = next(fd for fd in range(3, 20) if "profkit-arguments" in target_of(fd))
    line = next(line for line in Path("/proc/self/maps").read_text().splitlines() if "profkit-arg" in line)
    begin, end = (int(word, 16) for word in line.split()[0].split("-"))
    other = libc.mmap(None, ctypes.c_size_t(end - begin), 3, 1, fd, ctypes.c_long(0))
    place = (ctypes.c_char * (4 * x.numel())).from_address(other + x.data_ptr() - begin)
    return torch.frombuffer(place, dtype=x.dtype).view(x.shape)

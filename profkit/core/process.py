"""Run a child process to its end: time limit, its process tree, output to a log, signals, and what it cost.

The workload's own exit status is read from a file, since profilers hide it (perf returns 0 when its child is
killed).

A child gets a session of its own, so a Ctrl-C on the terminal reaches profkit first: it asks the tree to end,
waits a moment so that a profiler can finish its file, and kills what is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import math
import os
import resource
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from profkit.core.errors import Interrupted, UsageError
from profkit.core.files.regular import read_start
from profkit.core.files.safe_folder import opened
from profkit.core.signals import defer_interrupts
from profkit.core.watcher import start_watcher

if TYPE_CHECKING:
    from profkit.core.process_tree import ProcessTree, TreeUse


LOG_LIMIT = 4 * 1024 * 1024  # a log keeps its first 4 MiB; a workload that prints gigabytes fills no disk
PRINTED_LIMIT = 64 * 1024 * 1024  # bytes of standard output where that is a result
LAST_SECONDS = 10.0  # for the files of a tool that ran past its time limit
_SOON = 0.02  # seconds of work that are not worth another look
MAX_LOOKS = 4096  # at one child, that are kept
TAIL_BYTES = 64 * 1024  # and always the last 64 KiB, where the error stands
REAP_SECONDS = 3.0  # for the kernel to take away what was killed: a driver that hangs may hold it for ever
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(frozen=True)
class ProcessOutcome:
    """How a child ended. Times in seconds, memory in bytes.

    `peak_rss` is 0 if a short child ended before it was looked at.
    """

    returncode: int  # as subprocess gives it: negative is the signal that ended it
    timed_out: bool
    seconds: float
    cpu_seconds: float
    peak_rss: int
    output_tail: str  # the last 64 KiB of stdout and stderr together
    # At each look: seconds since its start; until then CPU seconds of its tree, and those that threads of it waited
    usage: tuple[tuple[float, float, float], ...] = ()
    use: TreeUse | None = None  # what else it used
    main_thread: tuple[float, float] = (0.0, 0.0)  # seconds in which the first thread ran, and waited (Linux)
    memory: tuple[
        tuple[float, int], ...
    ] = ()  # at each look: seconds since its start, resident bytes of its tree
    begun: float = 0.0  # when it was started, on the clock of time.monotonic
    rss_counted: bool = False  # by the kernel; else `peak_rss` is the largest of what was seen now and then

    @property
    def ok(self) -> bool:
        """Return whether the child ended by itself with exit code 0."""
        return self.returncode == 0 and not self.timed_out

    def ending(self) -> str:
        """Describe how it ended: `exited with 3`, `was killed by SIGSEGV`, `ran past its time limit ...`."""
        if self.timed_out:
            return f"ran past its time limit and was ended after {self.seconds:.1f} s"
        return describe_status(self.returncode)


def describe_status(returncode: int) -> str:
    """Describe a return code in words: a negative number is a signal, and above 128 is a shell's code for one."""
    number = -returncode if returncode < 0 else returncode - 128
    if returncode < 0 or returncode > 128:
        with contextlib.suppress(ValueError):
            name = signal.Signals(number).name
            return f"was killed by {name}" if returncode < 0 else f"exited with {returncode} ({name})"
    return f"exited with {returncode}"


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    log: Path | None = None,
    timeout: float | None = None,
    tick: Callable[[float], None] | None = None,
    cancel: threading.Event | None = None,
    finish: float = 0.0,
    end_signal: int = signal.SIGINT,
    waits: Callable[[], None] | None = None,
    hidden: Sequence[str] = (),
    printed: Path | None = None,
    given: Path | None = None,
    longest: float | None = None,
) -> ProcessOutcome:
    """Run `argv` to its end and return how it went.

    `env` is set on top of the caller's environment. `log` takes the first 4 MiB of stdout and stderr; with
    `printed`, which takes the first 64 MiB of stdout, of stderr alone. `timeout`: seconds after which its tree is
    ended; None only where it is not known how long it takes, as in the first run of a workload. With `longest`, the
    seconds for which it waited for a processor do not count, but for so many its tree is ended. `tick` is called a
    few times a second with the seconds gone; if it raises, the tree is killed. `cancel`, once set by another
    thread, ends the tree and raises Interrupted. `finish`: seconds that the child has to finish its files after
    `end_signal` to it alone, until another Ctrl-C; `waits` is called when they begin. `given` is the file at its
    standard input, from its start; without it, standard input is empty. `hidden`: secrets that no log and no
    outcome shows. Raises UsageError when `argv[0]` cannot be started; KeyboardInterrupt once the tree ended.
    """
    # Here: psutil costs 20 ms that `profkit --help` need not pay
    from profkit.core.process_tree import ProcessTree, starting

    adopt_orphans()
    start_watcher()
    cpu_before = _children_cpu_seconds()
    # A Ctrl-C between the start of the child and the care for it would leave it alone
    with defer_interrupts() as hurry:
        start = time.monotonic()
        with starting:
            child = _start(argv, env, cwd, subprocess.STDOUT if printed is None else subprocess.PIPE, given)
            tree = ProcessTree(child.pid)
        output = _OutputReader(child.stderr or child.stdout, log, hidden)
        result = _OutputReader(child.stdout, printed, (), PRINTED_LIMIT) if printed is not None else None
    under_way = _UnderWay(child, tree, start, tick)
    timed_out, largest, usage = False, 0, under_way.usage
    try:
        if hurry.is_set():
            raise KeyboardInterrupt
        timed_out = under_way.wait(timeout, cancel, longest)
        if timed_out:
            under_way.end(min(finish, LAST_SECONDS), end_signal)
        seconds = time.monotonic() - start
        tree.look_at_end()
        largest = _reap(child)
        tree.end(grace=0.5)
    except BaseException as problem:
        try:
            if isinstance(problem, (KeyboardInterrupt, Interrupted)):
                under_way.end(finish, end_signal, waits)
            else:  # `tick` will have no more of it
                tree.kill()
        finally:
            _ends_within(child, REAP_SECONDS)
            output.finish()
        raise
    finally:
        tree.forget()
        if result is not None:
            result.finish()
    output.finish()
    cpu = _children_cpu_seconds() - cpu_before
    usage.append((seconds, max(tree.cpu_seconds, cpu), tree.queued_seconds))
    return ProcessOutcome(
        returncode=child.returncode,
        timed_out=timed_out,
        seconds=seconds,
        cpu_seconds=max(0.0, cpu),
        peak_rss=max(tree.peak_rss, largest),
        output_tail=output.tail(),
        usage=tuple(usage),
        use=tree.use,
        memory=tuple(under_way.memory),
        main_thread=tree.main_thread,
        begun=under_way.start,
        rss_counted=largest > 0,
    )


def _start(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    stderr: int,
    given: Path | None,
) -> subprocess.Popen[bytes]:
    try:
        with open(os.devnull if given is None else given, "rb") as source:
            return subprocess.Popen(
                list(argv),
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
    except OSError as error:  # of the folder, too, which may be gone
        fix = f"chmod +x {shlex.quote(argv[0])}" if isinstance(error, PermissionError) else None
        raise UsageError(f"cannot start {argv[0]}: {error.strerror}: {error.filename}", fix) from error
    except ValueError as error:  # an embedded null byte
        raise UsageError(f"cannot start {argv[0]!r}: {error}") from error


@dataclass(frozen=True)
class _UnderWay:
    """A running child; `usage` is what it had used at each look at it."""

    child: subprocess.Popen[bytes]
    tree: ProcessTree
    start: float
    tick: Callable[[float], None] | None
    usage: list[tuple[float, float, float]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)

    def wait(
        self, timeout: float | None, cancel: threading.Event | None, longest: float | None = None
    ) -> bool:
        """Wait for the child's end; return True if its time ran out first. See `run` for the limits."""
        step = 0.02  # short at first, so that a quick child is not measured by our own polling
        with end_of(self.child) as ended:
            while True:
                elapsed = time.monotonic() - self.start
                left = self._left(elapsed, timeout, longest)
                if left <= 0:
                    return not ended(0)  # we may have slept ourselves: a Ctrl-Z, a laptop that was closed
                if ended(min(step, left)):
                    return False
                step = min(step * 1.5, 0.25)
                self.tree.look()
                used = self.tree.cpu_seconds, self.tree.queued_seconds
                now = time.monotonic() - self.start
                self.usage.append((now, *used))
                self.memory.append((now, self.tree.rss))
                if len(self.usage) > MAX_LOOKS:  # of hours half as many looks say the same
                    del self.usage[::2], self.memory[::2]
                if cancel is not None and cancel.is_set():
                    raise Interrupted("interrupted") from None
                self._tick()

    def _left(self, elapsed: float, timeout: float | None, longest: float | None) -> float:
        """Return the seconds that the child has left, as far as was seen at the last look."""
        if timeout is None:
            return math.inf
        if longest is None:
            return timeout - elapsed
        # Threads that take turns wait for each other: what they computed together is work in any case.
        worked = min(elapsed, max(elapsed - self.tree.queued_seconds, self.tree.cpu_seconds))
        left = timeout - worked
        return min(left if left > _SOON else 0.0, longest - elapsed)

    def end(self, finish: float, end_signal: int, waits: Callable[[], None] | None = None) -> None:
        """End the tree; first ask the child alone and give it `finish` seconds, unless a Ctrl-C cuts them short."""
        hurried_on = False
        if finish > 0 and self.child.poll() is None:
            with defer_interrupts() as hurry:
                deadline = time.monotonic() + finish
                with contextlib.suppress(OSError):
                    self.child.send_signal(end_signal)
                if waits is not None:
                    waits()
                while (
                    not _ends_within(self.child, 0.1) and not hurry.is_set() and time.monotonic() < deadline
                ):
                    self._tick()
            hurried_on = hurry.is_set()
        if hurried_on:
            self.tree.end(grace=0.5)
            raise KeyboardInterrupt
        self.tree.end()

    def _tick(self) -> None:
        if self.tick is not None:
            self.tick(time.monotonic() - self.start)


@contextlib.contextmanager
def end_of(child: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Yield a function that waits up to so many seconds for the child's end, and returns whether it has ended.

    Linux reports the end at once, and the child is not reaped before its resource usage is read. Elsewhere
    `subprocess` polls every 50 ms, which is as exact as its times are there.
    """
    try:
        handle = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # a Mac, a kernel before 5.3, or no file handle is left
        yield lambda seconds: _ends_within(child, seconds)
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        yield lambda seconds: bool(poll.poll(math.ceil(1000 * seconds)))
    finally:
        os.close(handle)


def _reap(child: subprocess.Popen[bytes]) -> int:
    """Reap the child, and return the largest resident set in bytes of it and what it waited for; 0 if not known.

    The kernel counts from before the child became another program, when it was as large as this process: a value
    that is not larger than ours says nothing (Linux, `exec_mmap`).
    """
    with end_of(child) as ended:
        if not ended(REAP_SECONDS):
            child.returncode = -signal.SIGKILL
    if child.returncode is None:
        with contextlib.suppress(ChildProcessError):
            _, status, use = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            unit = 1 if sys.platform == "darwin" else 1024
            return int(use.ru_maxrss) * unit if use.ru_maxrss > ours else 0
        child.wait(0)  # somebody else has taken it
    return 0


def _ends_within(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


class _OutputReader(threading.Thread):
    """A thread that reads the child's output, so that the child never blocks.

    It keeps the beginning on disk, `most` bytes of it, and the end in memory; a log of the usual size also has
    the end.
    """

    def __init__(
        self, pipe: IO[bytes] | None, log: Path | None, hidden: Sequence[str] = (), most: int = LOG_LIMIT
    ) -> None:
        super().__init__(daemon=True)
        assert pipe is not None
        self._pipe: IO[bytes] = pipe
        self._log, self._most = log, most
        self._hidden = tuple(secret.encode() for secret in hidden)
        self._file: io.FileIO | None = None
        self._held = b""  # the end of what came: a secret may go on in what comes next
        self._tail = b""
        self.total = 0
        self.start()

    def run(self) -> None:
        if self._log is not None:
            # a full disk must not cost the measurement
            with contextlib.suppress(OSError), opened(self._log.parent) as folder:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.fdopen(os.open(folder / self._log.name, flags, 0o666), "wb", buffering=0)
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._pipe.fileno(), 65536):
                self._keep(self._hide(chunk))
        self._keep(self._hide(b""))
        left_out = self.total - self._most
        if left_out > 0 and self._most == LOG_LIMIT:
            self._write(b"\n[profkit: %d more bytes; the last of them:]\n" % left_out + self._tail)
        if self._file is not None:
            self._file.close()

    def _keep(self, chunk: bytes) -> None:
        self._write(chunk[: max(0, self._most - self.total)])
        self.total += len(chunk)
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]

    def _write(self, data: bytes) -> None:
        try:
            while data and self._file is not None:
                data = data[self._file.write(data) or 0 :]
        except OSError:
            self._file = None

    def _hide(self, chunk: bytes) -> bytes:
        """Return the output so far without secrets, held back where the next chunk may complete one.

        An empty chunk flushes it.
        """
        text = self._held + chunk
        for secret in self._hidden:
            text = text.replace(secret, b"***")
        keep = max(map(len, self._hidden), default=1) - 1 if chunk else 0
        cut = max(0, len(text) - keep)
        self._held = text[cut:]
        return text[:cut]

    def finish(self) -> None:
        """Wait for the end of the output, but not for a descendant that escaped with the pipe."""
        self.join(timeout=2.0)
        if not self.is_alive():
            self._pipe.close()

    def tail(self) -> str:
        return self._tail.decode("utf-8", "replace")


def ask(
    argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a system program and return its whole stdout and stderr; `env` is its complete environment.

    After `timeout` seconds it is killed with its process group (git's ssh is in it). Raises OSError and
    ValueError if it cannot be started, and subprocess.TimeoutExpired.
    """
    child = subprocess.Popen(
        list(argv),
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(given, timeout=timeout)
    except BaseException:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        _ends_within(child, REAP_SECONDS)
        raise
    finally:
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def _children_cpu_seconds() -> float:
    """Return the CPU seconds of all children that were waited for so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@functools.cache  # once is enough
def adopt_orphans() -> None:
    """Make this process the parent of orphaned grandchildren (Linux), so that a daemonised one is found."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# `"$@"` and not `exec`: the shell has to live on to see how the workload ended. The file is written whole
# before it gets its name, so that a reader never sees half of it. The shell's own exit repeats the status for perf.
_SCRIPT = (
    'out=$1; shift; trap : INT TERM; "$@"; status=$?; '
    'printf "%s\\n" "$status" > "$out.part" && mv -f "$out.part" "$out"; exit "$status"'
)


def status_wrapper(argv: Sequence[str], status_file: Path | str) -> tuple[str, ...]:
    """Wrap `argv` in a shell that writes the workload's exit status to `status_file`.

    SIGINT and SIGTERM reach the workload and not only the shell, since they are sent to the whole group.
    """
    return ("sh", "-c", _SCRIPT, "sh", str(status_file), *argv)


def without_wrapper(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the workload's command from a recorded command line, without the shell of `status_wrapper`."""
    words = tuple(argv)
    return words[5:] if words[:4] == ("sh", "-c", _SCRIPT, "sh") else words


def read_status(path: Path | str) -> int | None:
    """Read the workload's status as subprocess gives it: negative is the signal that ended it.

    None if the file is missing or holds no status: the wrapper itself was killed. A shell says 128 + n for a
    child that died by signal n; its own exit with such a number looks the same.
    """
    try:
        text = read_start(path, 32).decode("ascii").strip()
        status = int(text)
    except (OSError, ValueError):
        return None
    if not 0 <= status <= 255:
        return None
    return 128 - status if 128 < status <= 128 + 64 else status


def ipython_shell() -> Any:
    """Return the shell of IPython or of a notebook's kernel in this process; None if it is neither."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()

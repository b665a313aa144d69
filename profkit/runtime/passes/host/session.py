"""One run of a workload under an instrument, whose result is written however the workload ends."""

from __future__ import annotations

import _thread
import builtins
import contextlib
import fcntl
import importlib
import importlib.machinery
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

from .own_library import is_own as is_own
from .shared_file import LOST

KINDS = {
    "cprofile": ("calls", "CallProfiler"),
    "tracemalloc": ("allocations", "AllocationTracer"),
    "torch": ("device_trace", "TorchTracer"),
    "jax": ("device_trace", "JaxTracer"),
    "simulation-window": ("simulation_window", "SimulationWindow"),
}

_PATIENCE = 0.5  # seconds for the main thread to come to where it can be interrupted


class Instrument(Protocol):
    """What a pass of this folder is: also the switch that `profkit.region` calls."""

    any_thread: bool  # it can be stopped by a thread beside that of the program
    goes_on: bool  # after an early `finish` it still looks at what comes

    def start(self) -> None:
        """Measure from here; the workload's imports come next."""

    def finish(self, early: float | None = None) -> None:
        """Stop and write the result. `early`: after so long, which the result notes; the program goes on."""

    def forget(self) -> None:
        """Stop in a forked child, and write nothing."""


def fact(code: str, name: str = "", **numbers: float) -> dict[str, Any]:
    """Return a fact as it is written: profkit's own type is not here."""
    return {"code": code, "numbers": numbers, "names": {"name": name}}


class HostSession:
    """Sees to it that `instrument.finish` runs once, in the first process only, also on SIGTERM.

    `longest`: wall seconds after which the instrument stops while the program goes on; None: at the program's end.
    `stops_program`: the program is ended then, too, unless the instrument still looks at something.
    """

    def __init__(
        self,
        instrument: Instrument,
        words: list[str],
        longest: float | None = None,
        *,
        stops_program: bool = False,
    ) -> None:
        self._instrument, self._words = instrument, words
        self._longest, self._stops_program = longest, stops_program
        self._ctypes: Any = importlib.import_module("ctypes") if longest is not None else None
        self._pid = os.getpid()
        self._state = "running"
        self._finish_lock = _thread.allocate_lock()
        self._ended_by: int | None = None
        os.register_at_fork(after_in_child=self._forget)

    def run(self) -> None:
        """Run the program; however it ends passes through."""
        # A handler in Python waits for the end of a call of C, under a simulation for minutes.
        writes = getattr(self._instrument, "writes", True)
        if writes and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminate)
        if self._longest is not None:  # a thread that `threading` and so the workload knows nothing of
            _thread.start_new_thread(self._end_after, (self._longest,))
        try:
            self._instrument.start()
            run_program(self._words)
        finally:
            self.finish()
            while self._state == "finishing":  # by the thread beside this one
                time.sleep(0.01)

    def _end_after(self, seconds: float) -> None:
        """Ask the main thread to end the instrument: before Python 3.12 a profiler can be stopped by its own thread.

        One that waits, for its other threads say, never comes to that: then it is done here, where that can be.
        """
        time.sleep(seconds)

        def end(_: object) -> int:
            self.finish(seconds)
            return 0

        ctypes = self._ctypes
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(end)  # kept until it is called
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)
        if self._instrument.any_thread:
            time.sleep(_PATIENCE)
            self.finish(seconds)

    def finish(self, early: float | None = None) -> None:
        """Write the result, once, in the first process. `early`: after so long, the program is not at its end yet."""
        if os.getpid() != self._pid or not self._finish_lock.acquire(False):
            return
        self._state = "finishing"
        try:
            self._instrument.finish(early)
        except Exception as error:  # the workload's own result and exit code come first
            print(LOST.format(error), file=sys.stderr)
        self._state = "finished"
        if self._ended_by is not None:
            self._die(self._ended_by)
        ends = early is not None and self._stops_program and not self._instrument.goes_on
        if ends and not _has_file_to_write():
            _end_process()

    def _forget(self) -> None:
        self._instrument.forget()
        # A child that waits in a system call would not get to a handler in Python; one that is terminated by its
        # parent, as multiprocessing does it, would then never end.
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _terminate(self, number: int, _: object) -> None:
        if self._state == "finishing":
            self._ended_by = number
            return
        self.finish()
        self._die(number)

    def _die(self, number: int) -> None:
        with contextlib.suppress(ValueError):  # not the main thread, which comes here by this signal
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


MAX_DESCRIPTORS = 256  # that are looked at


def _has_file_to_write() -> bool:
    """Return whether the program has a regular file open that it may write, besides its standard streams.

    Such a file would be incomplete if the program ended now; one that it has closed, or not opened yet, is as an
    earlier run of it left it.
    """
    for descriptor in range(3, MAX_DESCRIPTORS):
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            if regular and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                return True
        except OSError:  # nothing has this number
            continue
    return False


def _end_process() -> None:
    """End the program at once, as one that ended well; its children are ended by who started it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or the program is writing to it just now
            stream.flush()
    os._exit(0)


def write_atomically(path: str, data: bytes) -> None:
    """Write a file whole or not at all."""
    partial = f"{path}.tmp"
    with open(partial, "wb") as file:
        file.write(data)
    os.replace(partial, path)


def write_json(path: str, data: dict[str, object]) -> None:
    """Write one JSON document."""
    write_atomically(path, json.dumps(data, allow_nan=False).encode())


# ------------------------------------------------------------ the program


def run_program(words: Sequence[str]) -> None:
    """Run `script args`, `-m module args`, `-c code args` or `- args` as `__main__`; what it raises passes through."""
    safe = bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
    first, rest = words[0], list(words[1:])
    main = _replace_main()
    if first == "-m":
        sys.argv[:] = rest
        _prepend(os.getcwd(), safe)
        _run_module(rest[0], alter_argv=True)
    elif first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        _prepend("", safe)
        main.__loader__ = importlib.machinery.BuiltinImporter
        exec(compile(rest[0], "<string>", "exec", dont_inherit=True), main.__dict__)
    elif os.path.isdir(first) or _is_zip(first):
        sys.argv[:] = [first, *rest]
        _prepend(_full_path(first), False)
        _run_module("__main__", alter_argv=False)
    else:
        sys.argv[:] = [first, *rest]
        _prepend(os.path.dirname(os.path.realpath(first)), safe)
        _run_script(first, main)


def _replace_main() -> ModuleType:
    main = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __annotations__={}, __package__=None)
    sys.modules["__main__"] = main
    return main


def _prepend(folder: str, safe: bool) -> None:
    if not safe:
        sys.path.insert(0, folder)


def _run_script(path: str, main: ModuleType) -> None:
    full = _full_path(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(2)
    main.__file__ = full
    vars(main)["__cached__"] = None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", full)
    exec(compile(source, full, "exec", dont_inherit=True), main.__dict__)


def _full_path(path: str) -> str:
    """Return the absolute path as the interpreter writes it: with its `./` left in."""
    return os.path.join(os.getcwd(), path)


def _run_module(name: str, alter_argv: bool) -> None:
    # What `python -m` and `python folder` call themselves, imported with the program's path in place as they do;
    # private, but there from 3.3 to 3.14.
    import runpy

    runpy._run_module_as_main(name, alter_argv=alter_argv)  # type: ignore[attr-defined]


def _is_zip(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def prepare(arguments: list[str]) -> HostSession:
    """Return what runs `KIND OUT -- program`, with all of ours loaded: a command that `passes.command` has made."""
    kind, out, _, *words = arguments
    module, name = KINDS[kind]
    instrument: Instrument = getattr(importlib.import_module(f"{__package__}.{module}"), name)(
        os.path.abspath(out)
    )
    sys.modules[str(__package__)].switch = instrument  # type: ignore[attr-defined]
    return HostSession(instrument, words, _longest(), stops_program=directive("stops_program") is True)


def directive(name: str) -> Any:
    """Return an entry of the plan's directive, as plain data; None where it has none of that name."""
    try:
        return json.loads(os.environ.get("PROFKIT_DIRECTIVE", "{}")).get(name)
    except (ValueError, AttributeError):
        return None


def _longest() -> float | None:
    """Return how long the plan lets the instrument look, in seconds."""
    longest = directive("longest")
    return float(longest) if isinstance(longest, (int, float)) and longest > 0 else None

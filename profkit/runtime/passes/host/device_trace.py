"""A program's own framework as the instrument that traces its devices: torch's profiler, and that of JAX.

OUT is a prefix. torch and jax are used where the workload has imported them, never imported; nothing is traced in
forked children.

- torch: every kernel from the first use of CUDA to the end, where nsys is absent. Only the devices' activities are
  asked for (kernels, copies, the calls that launched them): torch's operators on the CPU would cost the host some
  microseconds each and say nothing of a kernel. The trace is `OUT.<pid>.json`, a Chrome trace as torch exports it. Each
  entry of a region is added as an event of category `user_annotation`, with `{"domain": "profkit"}` in its `args`.
- JAX: jax.profiler (XLA's own tracing by CUPTI) over steps of the program, from the end of a compilation on. A window
  opens where JAX has compiled something, before that runs for the first time, and closes a few seconds after the last
  compilation: what takes longer to compile is in no window, and the next one opens behind it. Python's calls are not
  traced: for ten steps of an eager program they made the end of a trace 0.67 s instead of 0.08 s. Each window is
  `OUT.<pid>-<number>.json.gz`, a Chrome trace as XLA writes it, in which each entry of a region is an annotation
  `profkit:NAME`. `OUT.operations` has the lines that the kernels stand for, and why there is no trace.
"""

from __future__ import annotations

import _thread
import functools
import glob
import importlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from .compilers import add_to_file, kernel_rows, operation_lines
from .everywhere import call_after_import
from .operation_window import unsampled
from .own_library import is_foreign
from .session import directive, fact

NO_CUDA = "the program did not use CUDA through torch, so torch's profiler saw nothing"
MAX_MARKS = 20_000  # entries of regions; later ones are not marked
DOMAIN = "profkit"


class TorchTracer:
    """The switch of a trace by torch. `reason` says what went wrong."""

    any_thread = goes_on = False

    def __init__(self, out: str) -> None:
        self._out = out
        self._profile: Any = None
        self._entered = 0
        self._marks: list[tuple[str, int, int]] = []
        self._is_child = False
        self.reason: dict[str, Any] | None = None

    def start(self) -> None:
        """Begin to trace at torch's first use of CUDA; neither torch nor CUDA is loaded for that."""
        if "torch" in sys.modules:
            self._torch_is_there(sys.modules["torch"])
        else:
            call_after_import("torch", self._torch_is_there)

    def enter(self, name: str) -> None:  # noqa: ARG002
        """Begin a region, once the devices have finished earlier work."""
        _wait_for_devices()
        self._entered = time.time_ns()

    def exit(self, name: str) -> None:
        """End the region, once its own work is done."""
        _wait_for_devices()
        if len(self._marks) < MAX_MARKS:
            self._marks.append((name, self._entered, time.time_ns()))

    def forget(self) -> None:
        """Trace nothing in a forked child."""
        self._profile, self._is_child = None, True

    def finish(self, early: float | None = None) -> None:  # noqa: ARG002
        """Write the trace, whole or not at all; if there is none, print the reason to stderr."""
        profile, self._profile = self._profile, None
        try:
            if profile is not None:
                _wait_for_devices()
                profile.stop()
                self._save(profile)
        except Exception as error:
            self._fail(error)
        if self.reason or profile is None:
            failed = self.reason and f"torch's profiler cannot be used: {self.reason['names']['name']}"
            print(f"profkit: {failed or NO_CUDA}", file=sys.stderr)

    # ------------------------------------------------------------ inside

    def _torch_is_there(self, torch: ModuleType) -> None:
        later = getattr(getattr(torch, "cuda", None), "_lazy_call", None)
        if later is None:
            self._begin()
        else:
            later(self._begin)  # called when torch initialises CUDA: in the thread that does

    def _begin(self) -> None:
        torch: Any = sys.modules["torch"]
        if self._profile is not None or self._is_child:
            return
        try:
            kinds = torch.profiler.ProfilerActivity
            wanted = {kinds.CUDA} & torch.profiler.supported_activities() or {kinds.CPU}
            try:  # else it warns on stderr that it keeps nothing
                profile = torch.profiler.profile(activities=wanted, acc_events=True)
            except TypeError:  # before torch 2.5
                profile = torch.profiler.profile(activities=wanted)
            profile.start()
            self._profile = profile
        except Exception as error:
            self._fail(error)

    def _save(self, profile: Any) -> None:
        path = f"{self._out}.{os.getpid()}.json"
        try:
            profile.export_chrome_trace(f"{path}.tmp")
            with open(f"{path}.tmp", encoding="utf-8") as file:
                trace: dict[str, Any] = json.load(file)
            # times are microseconds since this; torch before 2.4 wrote them since 1970
            base = int(trace.get("baseTimeNanoseconds", 0))
            trace["traceEvents"] += [
                {
                    "ph": "X",
                    "cat": "user_annotation",
                    "name": name,
                    "pid": os.getpid(),
                    "tid": threading.get_native_id(),
                    "ts": (begin - base) / 1e3,
                    "dur": (end - begin) / 1e3,
                    "args": {"domain": DOMAIN},
                }
                for name, begin, end in self._marks
            ]
            trace.pop("host_name", None)  # a run must not contain the machine's name
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:
                json.dump(trace, file)
            os.replace(f"{path}.tmp", path)
        finally:
            if os.path.exists(f"{path}.tmp"):
                os.unlink(f"{path}.tmp")

    def _fail(self, error: Exception) -> None:
        text = str(error).strip().split("\n")[0]
        self.reason = fact("torch-profiler-not-usable", f"{type(error).__name__}: {text}")


def _wait_for_devices() -> None:
    """Wait until every used device is idle; others are not touched, because that would create a context.

    Not while a CUDA graph is recorded: to wait would spoil it.
    """
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return
    for device in range(cuda.device_count()):
        if cuda.memory_reserved(device) or device == cuda.current_device():
            cuda.synchronize(device)


# ------------------------------------------------------------ JAX

SECONDS = 2.0  # of a window after the last compilation, where the plan says nothing else
MAX_WINDOW_RATIO = 4  # a window is at most this many times as long, where one compilation follows the other
MAX_WINDOWS = 6
# A step that takes long to compile is probably the program's main work, so it gets a window even after those of the
# set-up, of which a large model has one for each shape of its layers. Their number is limited by the cost of tracing.
LONG_COMPILATION, MAX_WINDOWS_AFTER_LONG = 1.0, 4  # seconds, and windows
# While opening and closing windows takes less than this share of the time since JAX.
MAX_WINDOWS_WHILE_CHEAP = 24
MAX_SWITCHING_SHARE = 0.1  # was imported
EACH = 0.05  # seconds between two checks whether the window has to close
MAX_KERNELS = 1000  # whose lines are reported
REGION = "profkit:"
NO_JAX = "the program compiled nothing with JAX, so jax.profiler saw nothing"
OF_THE_PROGRAM = "the program uses jax.profiler itself, which allows no other trace beside it"
OF_ANOTHER_THREAD = (
    "JAX is used in another thread than the main one, where a trace could not be ended in time"
)


class JaxTracer:
    """The switch of a trace by JAX.

    All is done in the main thread: where another one ended a trace while the main thread launched CUDA graphs, the
    launch failed (JAX 0.11, H200), and Python cannot end while a thread is in XLA.
    """

    any_thread = goes_on = False

    def __init__(self, out: str) -> None:
        self._out = out
        seconds = directive("seconds")
        self._seconds = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else SECONDS
        self._profiler: Any = None
        self._start_trace: Any = None  # the program's own is wrapped
        self._main = threading.get_ident()
        self._look: Any = None  # what the main thread is to do, kept until it has done so
        self._look_pending = False
        self._windows = 0
        self._open: str | None = None  # the folder of the window that is open
        self._opened = self._compiled = self._kept_at = 0.0
        # When JAX was imported, and seconds that windows took to open and close.
        self._since = self._switching = 0.0
        self._regions: list[Any] = []  # annotations that are open
        self._left: dict[str, float] = {}  # when each window closed while the program went on, by its name
        self._programs: dict[int, Any] = {}  # by identity: a function's own are gone once it has returned
        self._ended = False
        self._why: str | None = None

    def start(self) -> None:
        """Begin once the program has imported jax."""
        if "jax" in sys.modules:
            self._jax_is_there(sys.modules["jax"])
        else:
            call_after_import("jax", self._jax_is_there)

    def enter(self, name: str) -> None:
        """Begin a region, once the devices have finished earlier work."""
        if self._profiler is None or self._ended or threading.get_ident() != self._main:
            return
        self._begin()
        _wait_for_arrays()
        annotation = self._profiler.TraceAnnotation(REGION + name)
        annotation.__enter__()
        self._regions.append(annotation)

    def exit(self, name: str) -> None:  # noqa: ARG002
        """End the region, once its own work is done."""
        if self._regions and threading.get_ident() == self._main:
            _wait_for_arrays()
            self._regions.pop().__exit__(None, None, None)

    def forget(self) -> None:
        """Trace nothing in a forked child."""
        self._ended, self._open = True, None

    def finish(self, early: float | None = None) -> None:  # noqa: ARG002
        """Close the window, say which lines the kernels stand for, and on stderr why there was no window."""
        if threading.get_ident() == self._main:
            self._end()
        self._ended = True
        if glob.glob(f"{glob.escape(self._out)}.*.json.gz"):
            with suppress(Exception):
                if left := [[name, time.monotonic() - at] for name, at in self._left.items()]:
                    add_to_file(self._out, windows=left)
                self._keep_programs()
                rows = kernel_rows(list(self._programs.values()), is_foreign)
                rows["kernels"] = rows["kernels"][:MAX_KERNELS]
                add_to_file(self._out, **rows)
            return
        self._why = self._why or NO_JAX
        add_to_file(self._out, reason="jax-not-traced", said=self._why)
        print(f"profkit: {self._why}", file=sys.stderr)

    # ------------------------------------------------------------ inside

    def _jax_is_there(self, _: ModuleType) -> None:
        self._since = time.monotonic()
        self._profiler = profiler = importlib.import_module("jax.profiler")
        self._start_trace = profiler.start_trace
        for name in ("start_trace", "start_server"):
            self._give_way_to(profiler, name)
        importlib.import_module("jax.monitoring").register_event_duration_secs_listener(self._hear)
        ctypes = importlib.import_module("ctypes")
        self._look = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._look_at_clock)
        _thread.start_new_thread(self._watch, (ctypes.pythonapi.Py_AddPendingCall,))

    def _give_way_to(self, profiler: ModuleType, name: str) -> None:
        """Close our window before the program's own call of this function: what we traced was before its steps."""
        original = getattr(profiler, name)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self._why = OF_THE_PROGRAM
            self._end()
            self._ended = True
            for trace in glob.glob(f"{glob.escape(self._out)}.*.json.gz"):
                os.unlink(trace)
            return original(*args, **kwargs)

        # where it is public, and where `jax.profiler.trace` looks for it
        for module in (profiler, sys.modules.get(original.__module__)):
            if module is not None and getattr(module, name, None) is original:
                setattr(module, name, wrapper)

    def _hear(self, event: str, seconds: float, /, **_: Any) -> None:
        """Record that JAX has compiled something in this thread, which will run it."""
        if not event.endswith("/backend_compile_duration"):
            return
        if threading.get_ident() != self._main:
            self._why = self._why or OF_ANOTHER_THREAD
            return
        self._compiled = now = time.monotonic()
        most = MAX_WINDOWS
        if seconds >= LONG_COMPILATION:
            cheap = self._switching <= MAX_SWITCHING_SHARE * (now - self._since)
            most += MAX_WINDOWS_WHILE_CHEAP if cheap else MAX_WINDOWS_AFTER_LONG
        if self._open and now > self._opened + self._seconds and self._windows < most:
            self._end()  # of what was before, set-up most of all
        self._begin(most)

    def _watch(self, add_pending_call: Any) -> None:
        """Have the main thread check the clock, once its last check is done."""
        while not self._ended:
            time.sleep(EACH)
            if self._open and not self._look_pending and not self._ended:
                self._look_pending = True
                add_pending_call(self._look, None)

    def _look_at_clock(self, _: object) -> int:
        self._look_pending = False
        now = time.monotonic()
        if self._open and now > self._compiled + EACH:
            if self._kept_at < self._compiled:
                self._keep_programs()
            quiet = now > max(self._compiled, self._opened) + self._seconds and not self._regions
            if quiet or now > self._opened + MAX_WINDOW_RATIO * self._seconds:
                name = os.path.basename(self._open)
                self._end()
                self._left[name] = time.monotonic()
        return 0

    @contextmanager
    def _saying_why(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # the workload's own result comes first
            self._open, self._ended = None, True
            text = str(error).strip().split("\n")[0]
            self._why = f"jax.profiler cannot be used: {type(error).__name__}: {text}"

    def _begin(self, most: int = MAX_WINDOWS) -> None:
        """Open a window, if none is, and fewer than `most` were."""
        if self._open or self._ended or self._windows >= most:
            return
        with self._saying_why():
            self._windows += 1
            folder = f"{self._out}.{os.getpid()}-{self._windows}"
            options = {}
            with suppress(AttributeError):  # older ones have none
                options["profiler_options"] = chosen = self._profiler.ProfileOptions()
                chosen.python_tracer_level = 0
            begun = time.monotonic()
            self._start_trace(folder, **options)
            self._open, self._opened = folder, time.monotonic()
            self._switching += self._opened - begun

    def _end(self) -> None:
        """Close the window, and keep its trace alone."""
        folder, self._open = self._open, None
        if folder is None:
            return
        with self._saying_why():
            _wait_for_arrays()
            begun = time.monotonic()
            try:
                self._profiler.stop_trace()
                # its name is the machine's
                for trace in glob.glob(f"{glob.escape(folder)}/**/*.trace.json.gz", recursive=True):
                    os.replace(trace, f"{folder}.json.gz")
            finally:
                shutil.rmtree(folder, ignore_errors=True)
                self._switching += time.monotonic() - begun

    def _keep_programs(self) -> None:
        self._kept_at = time.monotonic()
        with suppress(Exception):  # without them kernels have no lines
            jax: Any = sys.modules["jax"]
            for program in jax.local_devices()[0].client.live_executables():
                self._programs[id(program)] = program


def _wait_for_arrays() -> None:
    """Wait until all arrays that the program can still use are computed; earlier launches are then done, too."""
    with suppress(Exception):  # an array that is given away meanwhile
        jax: Any = sys.modules["jax"]
        jax.block_until_ready(jax.live_arrays())


# ------------------------------------------------------------ JAX on a processor

# Of the first window, and of the longest; each is four times as long as the one before it that was written quickly. XLA
# writes 24 events for a step of four instructions: of a loop of short steps half a second took 4.8 s to write, and what
# came after the first million events was lost.
PROCESSOR = "cpu"  # as JAX calls it
FIRST_SECONDS, LONGEST_SECONDS, LONGER = 0.05, 1.0, 4.0
MAX_WINDOWS_ON_CPU = 8
MAX_GROWTH_BYTES = 16 << 20  # bytes by which the process may grow in a window: some 100,000 events
QUICK_WRITE_SECONDS, MAX_WRITING_SECONDS = 0.1, 0.4  # seconds: to write one window, and all


class XlaWindow(JaxTracer):
    """Windows behind compilations, where JAX computes on the processor, in the run whose stacks are sampled.

    XLA computes in threads of its own, which no sample of Python's stacks sees: the main thread waits meanwhile. OUT is
    the samples' file; beside it are `*.xla.<pid>-<number>.json.gz`, one for each window, and `*.xla.operations` with
    the lines that XLA's instructions stand for.
    """

    def __init__(self, out: str) -> None:
        super().__init__(f"{os.path.splitext(out)[0]}.xla")
        self._seconds = FIRST_SECONDS
        self._memory = 0  # bytes when the window was opened
        self._writing = 0.0  # seconds that all windows took so far

    def start(self) -> None:
        """Wait for the first compilation. In a forked child there is no window."""
        os.register_at_fork(after_in_child=self.forget)
        super().start()

    def enter(self, name: str) -> None:
        """Do nothing: waiting for XLA at a region would change what is sampled."""

    def exit(self, name: str) -> None:
        """Do nothing, as in `enter`."""

    def finish(self, early: float | None = None) -> None:  # noqa: ARG002
        """Close the window, and write which lines the instructions stand for; without a window nothing is said."""
        if self._ended and self._why is None:
            return
        if threading.get_ident() == self._main:
            self._end()
        self._ended = True
        if glob.glob(f"{glob.escape(self._out)}.*.json.gz"):
            with suppress(Exception):
                self._keep_programs()
                add_to_file(self._out, xla=operation_lines(list(self._programs.values()), is_foreign))

    def _begin(self, most: int = MAX_WINDOWS) -> None:  # noqa: ARG002
        if (
            self._windows >= MAX_WINDOWS_ON_CPU
            or self._writing > MAX_WRITING_SECONDS
            or self._open
            or self._ended
        ):
            return
        with self._saying_why():
            jax: Any = sys.modules["jax"]
            self._ended = jax.default_backend() != PROCESSOR  # other kernels are another pass' object
        if self._ended:
            return
        with unsampled():
            super()._begin()
        self._memory = _memory()

    def _end(self) -> None:
        if self._open is None:
            return
        begun = time.monotonic()
        with unsampled():
            super()._end()
        took = time.monotonic() - begun
        self._writing += took
        if took < QUICK_WRITE_SECONDS:
            self._seconds = min(LONGEST_SECONDS, LONGER * self._seconds)

    def _look_at_clock(self, _: object) -> int:
        self._look_pending = False
        now = time.monotonic()
        if self._open and now > self._compiled + EACH:
            if self._kept_at < self._compiled:
                self._keep_programs()
            quiet = now > max(self._compiled, self._opened) + self._seconds
            full = _memory() > self._memory + MAX_GROWTH_BYTES
            if full or quiet or now > self._opened + MAX_WINDOW_RATIO * self._seconds:
                last = full or self._seconds >= LONGEST_SECONDS
                self._end()
                if not last:
                    self._begin()
        return 0


def _memory() -> int:
    """Return the bytes of this process in memory; 0 without /proc."""
    with suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0

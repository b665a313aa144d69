"""Writes the line of the program around each of its calls into torch as an NVTX range, for nsys, which runs outside.

Beside them torch writes each operation with the shapes of its inputs (`emit_nvtx`), and so whose backward pass a node
is. Both begin when torch initialises CUDA, and end once the program has long repeated itself.

A mode for calls of torch's Python functions does it, not one for dispatched operations: what it sees is what the line
calls, backward passes and what lies below it run as always, and kernels are matched by the time of their launch. The
mode is the lowest on the stack, so that whoever enters and leaves another one finds the stack as it should be.
torch.compile would look into it, and a profiler of the workload's own allows no other: before either begins it is gone.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

from .compilers import MAX_ROWS, CompilerLog, add_to_file
from .operation_values import PaddedColumns, values_text
from .own_library import is_foreign, is_own
from .torch_state import DeviceMemory
from .values.repeated_results import QuietRepeats

VARIABLE = "PROFKIT_OPERATIONS"  # set where somebody traces NVTX
PREFIX = "profkit-at "
BELOW = "\t"  # between the line of the program, that of a package, and what the call is given
MAX_UNCHANGED_CALLS = 12_000  # calls for the GPU without a new line: the program repeats itself
MAX_CALLS = 100_000
CHECK_EACH = 7  # calls: no multiple of those in a step
# Codes of facts: why it ends before its process does. `said` is what was raised.
COMPILED, PROFILED, ELSEWHERE, RAISED = (
    "torch-compiles",
    "torch-profiles",
    "cuda-of-another-thread",
    "raised-there",
)
# Called for every tensor, and launching nothing.
_QUESTIONS = frozenset(
    ("__get__", "__len__", "dim", "is_contiguous", "is_floating_point", "numel", "size", "stride")
)


class OperationLines:
    """The companion of a process that uses torch."""

    def __init__(self, out: str) -> None:
        self._out = out
        self._main = threading.get_ident()
        self._mode: Any = None
        self._emitter: Any = None
        self._on = self._ended = False
        self._depth = 0  # calls that the main thread is in
        self._calls = 0
        self._calls_on_gpu = self._last_news = 0  # at the last new line
        self._texts: dict[tuple[CodeType, int, CodeType | None, int], str] = {}
        self._foreign: dict[CodeType, bool] = {}
        self._torch_folder = ""
        self._reason: str | None = None
        self._error = ""
        self._push: Callable[[str], object] = str
        self._pop: Callable[[], object] = str
        self._memory, self._compiler = DeviceMemory(is_foreign), CompilerLog()
        self._padding, self._repeats = PaddedColumns(), QuietRepeats()
        self._checks: list[list[object]] = []  # switches for debugging that are on: name and line
        self._checking: list[object] | None = None  # where the program let autograd look for NaN,
        self._check_looks = self._checked = 0  # how often that was checked, and how often it did

    # ------------------------------------------------------------ beginning and end

    def start(self) -> None:
        """Wait for CUDA. torch has just been imported, and the stack of modes is empty."""
        if not self._is_wanted() or threading.current_thread() is not threading.main_thread():
            return
        try:
            self._install(sys.modules["torch"])
        except Exception as error:
            self._fail(error)

    def _is_wanted(self) -> bool:
        """Return whether a tracer outside reads ranges."""
        return bool(os.environ.get(VARIABLE))

    def finish(self) -> None:
        """Write, as the process ends, what was seen."""
        if self._mode is None and self._reason is None:
            return
        add_to_file(
            self._out,
            calls=self._calls,
            lines=len(self._texts),
            reason=self._reason,
            said=self._error,
            memory=self._memory.end(),
            held=self._memory.course,
            full=self._memory.when_full[:MAX_ROWS],
            checks=self._checks_on(),
            breaks=self._compiler.breaks(),
            recompiles=self._compiler.compiled_again(),
            padding=self._padding.rows(),
            again=self._repeats.rows(_place_of),
        )

    def _install(self, torch: Any) -> None:
        self._torch_folder = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")
        self._push, self._pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
        for owner, name, reason in (
            (torch, "compile", COMPILED),
            (getattr(torch, "export", None), "export", COMPILED),
            (torch.autograd.profiler.profile, "__init__", PROFILED),
            (torch.autograd.profiler.emit_nvtx, "__init__", PROFILED),
        ):
            self._give_way_to(owner, name, reason)
        self._forget_before_swaps(torch.utils)
        for owner in (torch.autograd.set_detect_anomaly, torch.autograd.detect_anomaly):
            self._hear_of_checks(owner)
        if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
            self._checks.append(["CUDA_LAUNCH_BLOCKING", "", 0, ""])
        self._mode = _line_mode(torch, self)
        self._mode.__enter__()
        os.register_at_fork(after_in_child=self._forget)
        torch.cuda._lazy_call(self._begin)
        torch.cuda._lazy_call(lambda: self._follow_memory(torch))

    def _look_at_memory(self) -> None:
        self._memory.look_now_and_then()

    def _follow_memory(self, torch: Any) -> None:
        with suppress(Exception):
            self._memory.begin(torch)

    def _begin(self) -> None:
        """Begin as torch initialises CUDA; nothing may be raised here."""
        if self._ended:
            return
        if threading.get_ident() != self._main:
            self._stop(ELSEWHERE)
            return
        try:
            emitter = sys.modules["torch"].autograd.profiler.emit_nvtx
            new = emitter.__new__(emitter)
            emitter.__init__.__wrapped__(new, record_shapes=True)
            new.__enter__()
            self._emitter, self._on = new, True
        except Exception as error:
            self._fail(error)

    def _give_way_to(self, owner: Any, name: str, reason: str) -> None:
        original = getattr(owner, name, None)
        if not callable(original):
            return

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self._stop(reason)
            result = original(*args, **kwargs)
            if reason is COMPILED:
                with suppress(Exception):
                    importlib.import_module("torch._dynamo.convert_frame")  # which the first call would load
                    self._compiler.listen()
            return result

        setattr(owner, name, wrapper)

    def _forget_before_swaps(self, owner: Any) -> None:
        """Hold no weak reference to tensors when torch swaps two of them: it refuses that."""
        original = getattr(owner, "swap_tensors", None)
        if not callable(original):
            return

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self._repeats.forget()
            return original(*args, **kwargs)

        owner.swap_tensors = wrapper

    def _hear_of_checks(self, owner: Any) -> None:
        """Note the line of the program that lets autograd look for NaN in each backward operation.

        torch's compilers use the same switch while they trace: that is none of the program's.
        """
        original = owner.__init__

        @functools.wraps(original)
        def wrapper(checks: Any, *args: Any, **kwargs: Any) -> None:
            original(checks, *args, **kwargs)
            with suppress(Exception):
                caller = sys._getframe(1)
                foreign = is_foreign(caller.f_code.co_filename) or self._is_hidden(caller.f_code.co_filename)
                given = [*args, *kwargs.values()]
                if not foreign and self._checking is None and all(given):  # it may be switched off, too
                    self._checking = ["detect_anomaly", *_place_of(self._line_text(caller))]

        owner.__init__ = wrapper

    def _look_at_checks(self) -> None:
        """Record, in some of the calls, whether autograd looks for NaN: a moment of it costs nothing later."""
        if self._checking is not None and self._calls % CHECK_EACH == 0:
            torch = sys.modules["torch"]
            self._check_looks += 1
            self._checked += torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()

    def _checks_on(self) -> list[list[object]]:
        """Return the switches for debugging that were on for most of the time."""
        on = self._checking is not None and 0 < self._check_looks <= 2 * self._checked
        return [*self._checks, *([self._checking] if on and self._checking is not None else [])]

    def _stop(self, reason: str | None) -> None:
        """Write no more ranges; the mode is removed as soon as no call is under way."""
        self._on = False
        if threading.get_ident() != self._main:
            return
        if not self._ended:
            self._ended, self._reason = True, reason
            emitter, self._emitter = self._emitter, None
            if emitter is not None:
                with suppress(Exception):
                    emitter.__exit__(None, None, None)
        if self._depth == 0 and self._mode is not None:
            with suppress(Exception):
                _remove_mode(sys.modules["torch"], self._mode)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or f"{type(error).__name__}: {error}"[:300]
        self._stop(RAISED)

    def _forget(self) -> None:
        """Forget everything in a forked child, which is not the process in question."""
        self._on, self._ended, self._mode, self._reason = False, True, None, None

    # ------------------------------------------------------------ a call

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the call of a function of torch, with its line around it."""
        name = getattr(function, "__name__", "")
        if not self._on or name in _QUESTIONS:
            return function(*args, **kwargs)
        main = threading.get_ident() == self._main
        try:
            text, values = self._line_text(sys._getframe(2)), values_text(name, args, kwargs)
            if values:
                text += f"{BELOW if BELOW in text else 2 * BELOW}{values}"
            torch = sys.modules["torch"]
            self._padding.look(torch, name, args, lambda: _place_of(text))
            number = self._repeats.before(torch, function, name, args, kwargs) if main else None
            self._push(text)
        except Exception as error:
            self._fail(error)
            return function(*args, **kwargs)
        self._depth += main
        result: Any = None
        try:
            result = function(*args, **kwargs)
            return result
        finally:
            self._depth -= main
            with suppress(Exception):
                self._pop()
                if main:
                    self._repeats.after(
                        number, name, args, result, text
                    )  # outside the range, whose time counts
                    # A loop that prepares its data on the CPU says nothing of what comes after it on the GPU.
                    self._calls_on_gpu += _is_on_gpu(result) or any(map(_is_on_gpu, args[:1]))
                    self._look_at_memory()
                    self._look_at_checks()
                    if self._calls_on_gpu - self._last_news > MAX_UNCHANGED_CALLS or self._calls > MAX_CALLS:
                        self._stop(None)

    def _line_text(self, frame: FrameType | None) -> str:
        """Return the innermost line that is neither torch's, nor of a package; of packages alone the innermost.

        Behind a tab the innermost line of a package that it leads to, if there is one. What the call is given that no
        shape tells comes behind that (`operation_values.py`).
        """
        self._calls += 1
        own: FrameType | None = None
        inner: FrameType | None = None
        while frame is not None:
            foreign = self._foreign.get(frame.f_code)
            if foreign is None:
                file = frame.f_code.co_filename
                foreign = self._foreign[frame.f_code] = is_foreign(file) or self._is_hidden(file)
            if not foreign:
                own, inner = frame, own
                break
            if own is None and not self._is_hidden(frame.f_code.co_filename):
                own = frame
            frame = frame.f_back
        if own is None:
            return f"{PREFIX}?:0:"
        key = (
            own.f_code,
            own.f_lineno or 0,
            inner.f_code if inner else None,
            inner.f_lineno or 0 if inner else 0,
        )
        text = self._texts.get(key)
        if text is None:
            text = f"{PREFIX}{_place_text(own)}"
            if inner is not None:
                text += f"{BELOW}{_place_text(inner)}"
            self._texts[key] = text
            self._last_news = self._calls_on_gpu
        return text

    def _is_hidden(self, file: str) -> bool:
        return file.startswith((self._torch_folder, "<frozen")) or is_own(file)


def _is_on_gpu(value: Any) -> bool:
    return bool(getattr(value, "is_cuda", False))


def _place_text(frame: FrameType) -> str:
    """Return `train.py:12:step`, with the whole path."""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)  # 3.11
    file = code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)
    return f"{file}:{frame.f_lineno or 0}:{name}"


def _place_of(text: str) -> tuple[str, int, str]:
    """Return file, line and function of what `_line_text` wrote."""
    file, line, function = text[len(PREFIX) :].split(BELOW)[0].rsplit(":", 2)
    return file, int(line), function


def _line_mode(torch: Any, lines: OperationLines) -> Any:
    class CallLines(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return lines.call(func, args, kwargs or {})

    return CallLines()


def _remove_mode(torch: Any, mode: Any) -> None:
    """Take one mode out of the stack, wherever it is in it."""
    overrides = torch.overrides
    modes = [overrides._pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    for other in reversed(modes):
        if other is not mode:
            overrides._push_mode(other)

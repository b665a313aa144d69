"""Changes one thing in a Python program from its start, so that a trial can measure the effect.

Nothing of the user's is written. What took hold is written beside the trial when the process ends: a change that never
took hold was not tried.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import sys

from .everywhere import call_after_import

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, FunctionType, ModuleType
    from typing import Any

# The first generation is collected about a hundred times less often than by default (docs/insights.md).
COLLECTOR_THRESHOLDS = (200_000, 10, 100)
OUTPUT_BUFFER = 1 << 20  # bytes
MAX_RESULTS = 100_000  # that a memoised function keeps
CHECKED = 16  # one of so many results from memory is computed again and compared
MAX_WORKERS = 4
# Flags of generators, coroutines and asynchronous generators (inspect.CO_GENERATOR and its like): what these return can
# be used once.
_USED_ONCE = 0x20 | 0x80 | 0x200
_held: dict[str, Any] = {}  # what took hold, by intervention


def start(text: str) -> None:
    """Begin what the JSON object `text` names: `{"out": FOLDER, "collector": {}, "memoise": {"file": ...}, ...}`."""
    changes = json.loads(text)
    # Handlers run in reverse order: what an intervention finds out at the end is in `_held` before that is written.
    atexit.register(_write, changes.pop("out"))
    for name, options in changes.items():
        _INTERVENTIONS[name](**options)


def _write(folder: str) -> None:
    try:
        with open(os.path.join(folder, f"{os.getpid()}.json"), "w", encoding="utf-8") as file:
            json.dump(_held, file)
    except (OSError, ValueError):
        pass  # the program has ended well, and an error here must not change its exit status


# ------------------------------------------------------------ the interpreter


def _collect_rarely() -> None:
    """Collect garbage a hundred times less often than Python does by default, and not once more at the end.

    At its end Python walks all that is left, twice: of 2.4 million objects that were kept and hardly ever collected
    before, these walks took what the collections before had saved.
    """
    if not gc.isenabled():
        return
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    _held["collector"] = True

    def end() -> None:
        if gc.get_threshold() == COLLECTOR_THRESHOLDS:
            gc.freeze()
        else:  # the program has set its own
            del _held["collector"]

    atexit.register(end)


class _Kept(io.TextIOWrapper):
    """A standard output that ignores `flush`: it writes when its buffer is full or the program ends."""

    at_end = False

    def flush(self) -> None:
        if self.at_end:
            super().flush()


def _keep_output() -> None:
    """Give the program a standard output that is not flushed line by line."""
    before = sys.stdout
    raw = io.FileIO(before.fileno(), "w", closefd=False)
    kept = _Kept(
        io.BufferedWriter(raw, OUTPUT_BUFFER), encoding=before.encoding, errors=before.errors, newline="\n"
    )
    sys.stdout = sys.__stdout__ = kept  # type: ignore[misc]

    def end() -> None:
        kept.at_end = True
        kept.flush()

    def forked() -> None:
        kept.at_end = True  # the child may end without its exit handlers

    atexit.register(end)
    os.register_at_fork(
        before=end, after_in_parent=lambda: setattr(kept, "at_end", False), after_in_child=forked
    )
    _held["output"] = True


# ------------------------------------------------------------ a function that is called with the same arguments again


def _memoise(file: str, function: str, line: str) -> None:
    """Keep the results of the function around a line, which is found when it is called for the first time."""
    file = os.path.abspath(file)  # the code of `python ./train.py` has FOLDER/./train.py

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == function and os.path.abspath(code.co_filename) == file:
            lines = [number for *_, number in code.co_lines() if number is not None]
            if min(lines) <= int(line) <= max(lines):
                sys.setprofile(None)
                _remember_results(code)

    sys.setprofile(watch)


def _remember_results(code: CodeType) -> None:
    functions = [
        function for function in gc.get_referrers(code) if getattr(function, "__code__", None) is code
    ]
    if len(functions) != 1 or code.co_freevars or code.co_flags & _USED_ONCE:
        return
    found: FunctionType = functions[0]
    original = type(found)(code, found.__globals__, found.__name__, found.__defaults__)
    original.__kwdefaults__ = found.__kwdefaults__
    memory = _Memory(original)
    import builtins

    name = f"_profkit_memory_{id(memory)}"
    setattr(builtins, name, memory.ask)
    scope: dict[str, Any] = {}
    # Callers hold the function itself, wherever they have it from: its code alone is replaced.
    exec(f"def replaced(*args, **named):\n    return {name}(args, named)", scope)
    found.__defaults__ = found.__kwdefaults__ = None
    found.__code__ = scope["replaced"].__code__
    _held["memoise"] = memory.counts


class _Memory:
    """The results of a function by its arguments, some of them computed again to see that they stay the same."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._results = function, {}  # type: ignore[var-annotated]
        self._given_up = False
        self.counts = {"calls": 0, "known": 0, "different": 0}

    def ask(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self.counts["calls"] += 1
        # True and 1 are equal, but the function may return different results for them.
        key = (arguments, tuple(map(type, arguments)), tuple(sorted(named.items())))
        try:
            known = key in self._results
        except TypeError:
            known = False
            self._given_up = True
        if not known or self._given_up:
            result = self._function(*arguments, **named)
            if not self._given_up and len(self._results) < MAX_RESULTS:
                self._results[key] = result
            return result
        self.counts["known"] += 1
        result = self._results[key]
        if self.counts["known"] % CHECKED == 1 and self._function(*arguments, **named) != result:
            self.counts["different"] += 1
            self._given_up = True
            return self._function(*arguments, **named)
        return result


# ------------------------------------------------------------ torch


def _tune_convolutions() -> None:
    """Let cuDNN try its algorithms at the first convolution of each shape."""

    def act(torch: ModuleType) -> None:
        torch.backends.cudnn.benchmark = True
        _held["convolutions"] = True

    call_after_import("torch", act)


def _attend_without_cudnn() -> None:
    """Let torch's attention choose among its other backends: cuDNN makes a plan for each new length of a sequence."""

    def act(torch: ModuleType) -> None:
        switch = getattr(torch.backends.cuda, "enable_cudnn_sdp", None)
        if switch is not None:  # before 2.5 there is no such backend
            switch(False)
            _held["attention"] = True

    call_after_import("torch", act)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load_beside() -> None:
    """Let each DataLoader without workers have some, which stay, and pinned memory."""

    def act(module: ModuleType) -> None:
        begin = module.DataLoader.__init__

        def initialise(self: Any, *args: Any, **named: Any) -> None:
            # By place only the data set is given in practice; workers by place are left as they are.
            if len(args) < 6 and not named.get("num_workers"):
                named["num_workers"] = min(MAX_WORKERS, _processors())
                named.setdefault("persistent_workers", True)
                named.setdefault("pin_memory", True)
                _held["loader"] = _held.get("loader", 0) + 1
            begin(self, *args, **named)

        module.DataLoader.__init__ = initialise

    call_after_import("torch.utils.data.dataloader", act)


def _keep_workers() -> None:
    """Let each DataLoader with workers keep them, where it is gone through more than once.

    A loader that is gone through once is none that the change reached.
    """

    def act(module: ModuleType) -> None:
        loaders = module.DataLoader
        begin, iterate = loaders.__init__, loaders.__iter__
        changed: dict[int, int] = {}  # passes begun, by the address of a loader that did not keep its workers

        def initialise(self: Any, *args: Any, **named: Any) -> None:
            begin(self, *args, **named)
            changed.pop(id(self), None)
            if self.num_workers > 0 and not self.persistent_workers:
                object.__setattr__(self, "persistent_workers", True)  # its own refuses to change it
                changed[id(self)] = 0

        def go_through(self: Any) -> Any:
            if id(self) in changed:
                changed[id(self)] += 1
                if changed[id(self)] > 1:
                    _held["workers"] = _held.get("workers", 0) + 1
            return iterate(self)

        loaders.__init__, loaders.__iter__ = initialise, go_through

    call_after_import("torch.utils.data.dataloader", act)


_INTERVENTIONS: dict[str, Callable[..., None]] = {
    "collector": _collect_rarely,
    "output": _keep_output,
    "memoise": _memoise,
    "convolutions": _tune_convolutions,
    "attention": _attend_without_cudnn,
    "loader": _load_beside,
    "workers": _keep_workers,
}

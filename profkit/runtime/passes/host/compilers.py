"""What compilers did for a program: what torch.compile and JAX compiled again, graph breaks, what Triton tuned."""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import linecache
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from types import FrameType
from typing import Any

from .own_library import is_foreign

SCHEMA = "profkit.operations/1"
MOST_ROWS = 10
MOST_KERNELS = 1000
COMPILE_LOGS = (
    "torch._dynamo.symbolic_convert.__graph_breaks",
    "torch._dynamo.convert_frame.__graph_breaks",
    "torch._dynamo.guards.__recompiles",
)
_AGAIN = re.compile(r"Recompiling function (\S+) in (.+):(\d+)\s+triggered by.*\s+- (?:\d+/\d+: )?(.+)")
_BREAK = re.compile(r"Graph break in user code at (.+):(\d+)\s+Graph Break Reason: (.*(?:\n+.+){0,3})")
_SKIPPED = "Failed to handle graph break gracefully"
_SAYS_LITTLE = (_SKIPPED, "Encountered graph break when")


def add_to_file(out: str, **found: object) -> None:
    """Add what this process found to the file of all processes."""
    with (
        suppress(Exception),
        open(f"{out}.operations", "a", encoding="utf-8") as file,
    ):  # the program comes first
        file.write(json.dumps({"schema": SCHEMA, "pid": os.getpid(), **found}) + "\n")


class CompilerLog(logging.Handler):
    """Hears where torch.compile leaves a function for Python, and what it compiles again, from torch's own logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._breaks: dict[tuple[str, int, str, bool], int] = {}
        self._again: dict[tuple[str, int, str], list[object]] = {}  # first reason, and how often

    def listen(self) -> None:
        """Hear what is said from here on; torch's own handlers are asked nothing more than before."""
        with suppress(Exception):  # what is not enabled there is not even written
            sys.modules["torch._logging._internal"].log_state.enable_artifact("recompiles")
        for name in COMPILE_LOGS:
            log = logging.getLogger(name)
            if self not in log.handlers:
                log.addHandler(self)
            if log.getEffectiveLevel() > logging.DEBUG or log.level == logging.NOTSET:
                log.setLevel(logging.DEBUG)
                log.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """One message."""
        with suppress(Exception):
            message = record.getMessage()[:20_000]  # what is looked for stands at its begin
            if again := _AGAIN.search(message):
                place = (os.path.abspath(again[2]), int(again[3]), again[1])
                reason, times = self._again.get(place, (again[4][:200], 0))
                self._again[place] = [reason, int(str(times)) + 1]
            found = _BREAK.search(message)
            if found is None:
                return
            lines = [line.strip() for line in found[3].splitlines() if line.strip()]
            skipped = lines[0].startswith(_SKIPPED)
            reason = next((line for line in lines if not line.startswith(_SAYS_LITTLE)), lines[0])
            key = (os.path.abspath(found[1]), int(found[2]), reason[:200], skipped)
            self._breaks[key] = self._breaks.get(key, 0) + 1

    def compiled_again(self) -> list[list[object]]:
        """File, line, function, the first reason, how often it was compiled again, and the seconds of a compilation."""
        each = 0.0
        with suppress(Exception):  # torch's own list, of all compilations
            times = sys.modules["torch._dynamo.utils"].compilation_time_metrics["_compile.compile_inner"]
            each = sum(times) / len(times)
        return [[*place, *found, each] for place, found in self._again.items()][:MOST_ROWS]

    def breaks(self) -> list[list[object]]:
        """File, line, reason, whether the whole function was left, and how often it was compiled up to there."""
        ranked = sorted(self._breaks.items(), key=lambda one: -one[1])
        return [[*key, count] for key, count in ranked][:MOST_ROWS]


class JaxCompiler:
    """Counts what JAX compiles, by the line of the program that asked for it."""

    def __init__(self, out: str) -> None:
        self._out = out
        self._compiled: dict[tuple[str, int, str, str], list[float]] = {}
        self._kernels: list[list[object]] = []

    def start(self) -> None:
        """Hear of compilations from here on."""
        importlib.import_module("jax.monitoring").register_event_duration_secs_listener(self._hear)
        os.register_at_fork(after_in_child=self._compiled.clear)  # what a child compiles is its own
        atexit.register(self._note_kernels)  # before what jax has registered, which lets go of its programs

    def _note_kernels(self) -> None:
        if not self._compiled:  # to ask for its devices would begin to use them
            return
        with suppress(Exception):
            client: Any = sys.modules["jax"].devices()[0].client
            self._kernels = kernel_lines(client.live_executables(), is_foreign)

    def _hear(self, event: str, seconds: float, /, **about: Any) -> None:
        if not event.endswith("/backend_compile_duration"):
            return
        with suppress(Exception):  # the program comes first
            frame: FrameType = sys._getframe(1)
            while frame.f_back is not None and is_foreign(frame.f_code.co_filename):
                frame = frame.f_back
            file, name = os.path.abspath(frame.f_code.co_filename), str(about.get("fun_name", ""))
            place = (file, frame.f_lineno, frame.f_code.co_name, name)
            self._compiled.setdefault(place, []).append(float(seconds))

    def finish(self) -> None:
        """The process ends: lines that had the same function compiled again, and those that kernels stand for."""
        again = [(key, found) for key, found in self._compiled.items() if len(found) > 1]
        again.sort(key=lambda one: -sum(one[1]))
        rows = [[*key, len(found) - 1, sum(found) / len(found)] for key, found in again[:MOST_ROWS]]
        if rows or self._kernels:
            add_to_file(self._out, jax=rows, kernels=self._kernels)


# ------------------------------------------------------------ which line each kernel of XLA stands for

# A module's text has tables of files, functions and frames, and its instructions name a frame, or the file and the line
# (versions before 0.5). A kernel has the name of its instruction, with `_` for each dot.
MOST_TEXT = 64 << 20  # characters of all modules
_Line = tuple[str, int, str]
_COLLECTIVES = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
_LAUNCHED = re.compile(
    rf"^ *(?:ROOT )?%([\w.-]+) = .*? (?:fusion|sort|custom-call|((?:{_COLLECTIVES})(?:-start)?))\(.*$",
    re.MULTILINE,
)
_CALLS = re.compile(r"calls=%([\w.-]+)")
_COMPUTATION = re.compile(r"^%([\w.-]+) \(.*?(?:^\}|\Z)", re.MULTILINE | re.DOTALL)
_LIBRARY = re.compile(r'custom_call_target="(__cublas)')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_WRITTEN = re.compile(r'source_file="([^"]+)" source_line=(\d+)')
_NAMES = re.compile(r'^(\d+) "(.*)"$')
_LOCATION = re.compile(r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+)")
_PARENT = re.compile(r"^(\d+) \{file_location_id=(\d+) parent_frame_id=(\d+)")


def kernel_lines(programs: Sequence[Any], is_foreign: Callable[[str], bool]) -> list[list[object]]:
    """File, line, function, kernel and module of what these programs of XLA launch."""
    return [
        [*row, module]
        for module, text in _module_texts(programs)
        for row in lines_of_module(text, is_foreign)
    ]


def _module_texts(programs: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """The name and the text of each module, up to MOST_TEXT characters in all."""
    read = 0
    for program in programs:
        for module in program.hlo_modules():
            text = module.to_string()
            read += len(text)
            if read > MOST_TEXT:
                return
            yield module.name, text


def lines_of_module(text: str, is_foreign: Callable[[str], bool]) -> Iterator[list[object]]:
    """File, line, function and kernel of each instruction that is one, where its line is known."""
    line_of = _frames(text, is_foreign)
    fused = {found[1]: Counter(_lines_in(found[0], line_of)) for found in _COMPUTATION.finditer(text)}
    for found in _LAUNCHED.finditer(text):
        lines = Counter(_lines_in(found[0], line_of))
        called = _CALLS.search(found[0])
        if not lines and called is not None:
            lines = fused.get(called[1], lines)
        if lines:
            library = _LIBRARY.search(found[0])
            name = library[1] if library is not None else re.sub(r"[.-]", "_", found[1])
            name = "__nccl" if found[2] else name
            yield [*lines.most_common(1)[0][0], name]


def _lines_in(text: str, line_of: dict[int, _Line]) -> Iterator[_Line]:
    for found in _FRAME.finditer(text):
        if (line := line_of.get(int(found[1]))) is not None:
            yield line
    for found in _WRITTEN.finditer(text):
        yield found[1], int(found[2]), ""


def _frames(text: str, is_foreign: Callable[[str], bool]) -> dict[int, _Line]:
    """Of each frame the innermost line that is the program's own."""
    names: dict[str, dict[int, str]] = {"FileNames": {}, "FunctionNames": {}}
    places: dict[int, _Line] = {}
    frames: dict[int, tuple[int, int]] = {}
    table = ""
    for row in text[: text.find("\n%")].splitlines():
        if row in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = row
        elif (found := _NAMES.match(row)) is not None and table in names:
            names[table][int(found[1])] = found[2]
        elif (found := _LOCATION.match(row)) is not None:
            number, file, function, line = map(int, found.groups())
            named = names["FileNames"].get(file, ""), names["FunctionNames"].get(function, "")
            places[number] = named[0], line, named[1]
        elif (found := _PARENT.match(row)) is not None:
            number, place, parent = map(int, found.groups())
            frames[number] = place, parent
    # Parents are counted from 1 where the outermost frame names itself, else from 0 with 0 for none.
    offset = 1 if frames.get(1, (0, 0))[1] == 1 else 0
    lines: dict[int, _Line] = {}
    for number, (place, parent) in sorted(frames.items()):  # what called a frame stands before it
        here = places.get(place, ("", 0, ""))
        if here[0] and not is_foreign(here[0]):
            lines[number] = here
        elif parent - offset < number and parent - offset in lines:
            lines[number] = lines[parent - offset]
    return lines


# ------------------------------------------------------------ and each instruction that runs on a processor

# What XLA runs on a processor are instructions that are in no fusion.
MOST_OPERATIONS = 5000
_FUSED = 3  # names of a fusion that are said
_WHOLE_COMPUTATION = re.compile(r"^(?:ENTRY )?%([\w.-]+) \(.*?(?:^\}|\Z)", re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(r"^ *(?:ROOT )?%([\w.-]+) = (?:\([^)]*\)|\S+) ([\w-]+)\(.*$", re.MULTILINE)
_NAME = re.compile(r'op_name="([^"]*)"')
# A product may carry the name of what became of it: of a gradient that is `transpose`.
_PRODUCTS = {"dot": "dot_general", "convolution": "conv_general_dilated"}
_NO_WORK = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})


def operation_lines(programs: Sequence[Any], foreign: Callable[[str], bool]) -> list[list[object]]:
    """Return file, line, function, instruction, module and JAX's name of what programs of XLA may run."""
    rows = (
        [*row[:4], module, row[4]]
        for module, text in _module_texts(programs)
        for row in operations_of_module(text, foreign)
    )
    return list(islice(rows, MOST_OPERATIONS))


def operations_of_module(text: str, foreign: Callable[[str], bool]) -> Iterator[list[object]]:
    """Yield file, line, function, instruction and JAX's name of each instruction whose line is known.

    A fusion is at the line that most of it is written at, and has the names of what was fused, in order.
    """
    line_of = _frames(text, foreign)
    computations = {found[1]: found[0] for found in _WHOLE_COMPUTATION.finditer(text)}
    fused = set(_CALLS.findall(text))
    for name, body in computations.items():
        if name in fused:
            continue
        for found in _INSTRUCTION.finditer(body):
            if found[2] in _NO_WORK:
                continue
            called = _CALLS.search(found[0])
            whole = computations.get(called[1], "") if called is not None else ""
            lines = Counter(_lines_in(whole, line_of)) or Counter(_lines_in(found[0], line_of))
            # `dot_general` of `jit(loss)/transpose(jvp())/dot_general`; what is no name of an operation is left out
            last = (one.rpartition("/")[2] for one in _NAME.findall(whole) or _NAME.findall(found[0]))
            names = [one for one in dict.fromkeys(last) if one and "(" not in one]
            shown = _PRODUCTS.get(found[2]) or ", ".join(names[:_FUSED]) or found[2]
            if lines:
                yield [*lines.most_common(1)[0][0], found[1], shown]


class TritonTuner:
    """Notes which kernels `triton.autotune` wraps, and asks them at the end for how many keys they were tuned.

    And which kernels there are at all: those that ran have their definition, whatever module it is in.
    """

    def __init__(self, out: str) -> None:
        self._out = out
        self._wrapped: list[Any] = []
        self._kernels: list[Any] = []

    def start(self, module: Any) -> None:
        """Note each kernel that is made or wrapped from here on; `module` is triton.runtime.autotuner."""
        self._note(module.Autotuner, self._wrapped)
        if (jit := getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", None)) is not None:
            self._note(jit, self._kernels)

    def _note(self, kind: Any, made: list[Any]) -> None:
        original = kind.__init__
        os.register_at_fork(after_in_child=made.clear)

        @functools.wraps(original)
        def wrapper(new: Any, *args: Any, **kwargs: Any) -> None:
            original(new, *args, **kwargs)
            made.append(new)

        kind.__init__ = wrapper

    def _definitions(self) -> Iterator[list[object]]:
        """File, line, function, kernel and no module of each kernel of the program's own that was compiled to run."""
        for kernel in self._kernels:
            with suppress(Exception):
                code = kernel.fn.__code__
                if not any(cache[0] for cache in kernel.device_caches.values()) or is_foreign(
                    code.co_filename
                ):
                    continue
                lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
                above = sum(1 for _ in takewhile(lambda text: not text.lstrip().startswith("def "), lines))
                line = code.co_firstlineno + (above if above < len(lines) else 0)
                yield [os.path.abspath(code.co_filename), line, code.co_name, code.co_name, ""]

    def finish(self) -> None:
        """The process ends: place and name of a kernel, its keys, and the configurations that are tried for each."""
        if definitions := list(self._definitions())[:MOST_KERNELS]:
            add_to_file(self._out, kernels=definitions)
        rows: list[list[object]] = []
        for tuner in self._wrapped:
            with suppress(Exception):
                code, keys = tuner.base_fn.__code__, len(tuner.cache)
                first = code.co_firstlineno  # that of the first decorator
                lines = linecache.getlines(code.co_filename)[first - 1 :]
                above = takewhile(lambda text: not text.lstrip().startswith("def "), lines)
                line = first + next((at for at, text in enumerate(above) if "autotune" in text), 0)
                if keys > 1:
                    file = os.path.abspath(code.co_filename)
                    rows.append([file, line, code.co_name, keys, len(tuner.configs)])
        if rows:
            add_to_file(self._out, tuned=rows[:MOST_ROWS])

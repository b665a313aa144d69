"""Counts how often lines of the program run, for the few that take its time, and looks at the arrays they work on.

From Python 3.12 on by sys.monitoring, with events of the wanted lines alone; a function whose lines run too often is
given up. Before by sys.settrace, which makes the interpreter slower wherever it runs Python: there all ends where the
program makes many calls, or its hot lines run often, which is what Python alone does. What takes its time in compiled
code is counted whole, and a count that is not whole is none. A program that traces itself, a debugger and a coverage
tool are left alone.

Nothing is called on a value of the program but `type`, and of what is exactly an array of NumPy its shape, its type and
how it lies in memory. No content leaves the process.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from array import array
from collections import defaultdict
from itertools import count, pairwise
from opcode import opmap
from time import perf_counter
from types import CodeType, FrameType, ModuleType
from typing import Any

from .session import fact
from .values.frame_locals import keeps_locals, let_go

MAX_COUNTING_SHARE = 0.05  # of the time so far that counting may take
FREE = 0.02  # seconds that it may take in any case: a short program is counted whole
# The same while modules are imported, under sys.settrace: NumPy makes 50,000 calls, torch ten times as many.
IMPORTS = 1.0
# Seconds of an event, as measured: a call of any function, a line of a wanted one, and each of that one's variables,
# which sys.settrace copies before and after.
CALL, LINE, VARIABLE = 1.5e-6, 1.3e-6, 0.03e-6
EACH = 256  # events between two looks at what it took
MAX_MARKS = 8192  # kept times of a loop's iterations; beyond it, every second one is dropped
LOOK_INTERVAL, MAX_LOOKS = 61, 200  # at the names of a line: executions between two looks, and looks in all
MAX_FORMS = 6  # distinguished for one name
PARTS = 8  # of a loop's iterations, whose times are written
ENDED, ELSEWHERE = "lines-ended", "lines-traced-elsewhere"  # codes of facts
_RESUME = opmap.get("RESUME", -1)  # 3.11: what comes before it is no part of a line
_OWN_NAME = "profkit"
_IMPORT_SYSTEM = ("<frozen importlib._bootstrap>", "_find_and_load")
_TOOLS = (4, 3)  # numbers of tools of sys.monitoring that no kind of tool has
_NUMBERS = (int, float, bool, complex)
_MONITORING: Any = getattr(sys, "monitoring", None)  # 3.12
TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable

WantedLine = dict[str, Any]  # a row of the directive's `lines`: see core.types.CountedLine


class _Line:
    """One wanted line: its executions, what its names held, and when iterations of a loop began."""

    __slots__ = ("forms", "looks", "marks", "seen", "stride", "wanted")

    def __init__(self, wanted: WantedLine) -> None:
        self.wanted = wanted
        self.clear()

    def clear(self) -> None:
        self.seen, self.looks, self.stride = 0, 0, 1
        self.forms: dict[str, list[object]] = {}
        self.marks = array("d")

    def count(self, frame: FrameType) -> None:
        """Count one more execution, which begins now."""
        self.seen += 1
        seen = self.seen
        if self.wanted["loop"] and seen % self.stride == 0:
            self.marks.append(perf_counter())
            if len(self.marks) >= MAX_MARKS:
                self.marks = self.marks[1::2]
                self.stride *= 2
        # Seldom, and not only at even ones: what two things take in turn is seen of both.
        if (
            (seen & (seen - 1) == 0 or seen % LOOK_INTERVAL == 0)
            and self.looks < MAX_LOOKS
            and self.wanted["names"]
        ):
            self._look(frame)

    def _look(self, frame: FrameType) -> None:
        self.looks += 1
        if keeps_locals(frame.f_code):
            return
        known = frame.f_locals
        for path in self.wanted["names"]:
            try:
                form = _form_of(_value_at(path, known, frame.f_globals))
            except Exception:  # an error here would be the program's
                form = ""
            forms = self.forms.setdefault("".join(path), [])
            if form not in forms and len(forms) < MAX_FORMS:
                forms.append(form)
        if _MONITORING is not None:  # under sys.settrace it is written back
            let_go(frame, known)

    def row(self) -> list[object]:
        """Return file, line, function, executions, looks, what the names held, and seconds of an iteration by part."""
        wanted = self.wanted
        return [
            wanted["file"],
            wanted["line"],
            wanted["function"],
            self.seen,
            self.looks,
            self.forms,
            self._parts(),
        ]

    def _parts(self) -> list[float]:
        """Return the median in each part: other programs make some iterations longer, and not the usual one."""
        each = [(after - before) / self.stride for before, after in pairwise(self.marks)]
        if len(each) < PARTS:
            return []
        ends = [part * len(each) // PARTS for part in range(PARTS + 1)]
        return [sorted(each[first:last])[(last - first) // 2] for first, last in pairwise(ends)]


class _Code:
    """One code object with wanted lines, which is kept so that its address stays its own."""

    __slots__ = ("by_offset", "code", "cost", "events", "lines")

    def __init__(self, code: CodeType, lines: dict[int, _Line]) -> None:
        self.code, self.lines, self.events = code, lines, 0
        self.cost = LINE + (VARIABLE * code.co_nlocals if _MONITORING is None else 0.0)
        self.by_offset: dict[int, _Line] = {}
        for line in lines.values():
            starts = _starts(code, line.wanted["line"])
            self.by_offset |= dict.fromkeys(starts if line.wanted["each"] else starts[:1], line)

    def count(self, frame: FrameType) -> None:
        line = self.by_offset.get(frame.f_lasti)
        if line is not None:
            line.count(frame)


def _starts(code: CodeType, wanted: int) -> list[int]:
    """Return the offsets at which the interpreter comes to a line from another one, or from the function's call."""
    resume = next((at for at in range(0, len(code.co_code), 2) if code.co_code[at] == _RESUME), -2)
    found, before = [], None
    for begin, end, line in code.co_lines():
        first = max(begin, resume + 2)
        if line == wanted and before != wanted and first < end:
            found.append(first)
        before = line if first < end else None
    return found


class LineCounter:
    """Counts the wanted lines of the main thread from `start` to `stop`.

    `when_too_often` is called where counting ends because the program makes too many calls or runs its lines too often.
    """

    def __init__(self, wanted: list[WantedLine], when_too_often: Callable[[], None] | None = None) -> None:
        self.is_wanted = bool(wanted)
        self._when_too_often = when_too_often
        self._files: dict[str, list[WantedLine]] = defaultdict(list)
        for line in wanted:
            self._files[line["file"]].append(line)
        self._codes: dict[int, _Code | None] = {}
        self._kept: list[CodeType] = []  # of the codes that are not wanted, whose addresses stay theirs
        self._lost: list[_Code] = []  # that ran too often to be counted
        self._on = self._counts = False
        self._ended = ""
        self.entries = 0  # of regions
        self._tick = count(1)
        self._calls = self._import_calls = 0
        self._importing = 0  # imports within each other
        self._begun = 0.0
        self._tool: int | None = None
        self._ident = 0

    # ------------------------------------------------------------ on and off

    def start(self) -> None:
        """Count from here, in the thread that calls."""
        if not self._files or sys.gettrace() is not None:
            self._ended = ELSEWHERE if self._files else ""
            return
        self._begun = perf_counter()
        self._on = self._counts = True
        if _MONITORING is None:
            sys.settrace(self._trace_call)
        else:
            self._start_monitoring(_MONITORING)

    def stop(self) -> None:
        """Count no more."""
        if not self._on:
            return
        self._on = self._counts = False
        if _MONITORING is not None:
            self._stop_monitoring(_MONITORING)
        elif sys.gettrace() == self._trace_call:
            sys.settrace(None)
        else:  # the program's own tracing took its place: what came then was not seen
            self._ended = self._ended or ELSEWHERE

    @property
    def is_counting(self) -> bool:
        """Return whether any line may still be counted."""
        return self._on

    def enter(self) -> None:
        """Begin a region; lines that ran before the first one do not count."""
        self.entries += 1
        if self.entries == 1:
            for code in list(self._codes.values()):
                for line in code.lines.values() if code is not None else ():
                    line.clear()
        self._counts = self._on

    def exit(self) -> None:
        """End a region."""
        self._counts = False

    def result(self) -> dict[str, object]:
        """Return the rows of completely counted lines, the entered regions, and why other lines were not counted."""
        whole = [code for code in list(self._codes.values()) if code is not None] if not self._ended else []
        rows = [line.row() for code in whole for line in code.lines.values()]
        notes = [fact(self._ended)] if self._ended else []
        if self._lost and not self._ended:
            names = ", ".join(code.code.co_name for code in self._lost[:3])
            notes.append(fact("lines-too-often", names, count=len(self._lost)))
        return {"rows": rows, "entries": self.entries, "notes": notes}

    # ------------------------------------------------------------ what both ways have in common

    def _code_of(self, code: CodeType) -> _Code | None:
        """Return the wanted code, found once; None of all other."""
        wanted = self._files.get(code.co_filename)
        lines: dict[int, _Line] = {}
        if wanted is not None:
            held = {line for _, _, line in code.co_lines()}
            lines = {
                wanted_line["line"]: _Line(wanted_line)
                for wanted_line in wanted
                if wanted_line["line"] in held and wanted_line["function"].rpartition(".")[2] == code.co_name
            }
            # A comprehension at such a line is looked at for how often it runs: there it is the interpreter that works.
            inner = _MONITORING is None and any(wanted_line["line"] in held for wanted_line in wanted)
            found = _Code(code, lines) if lines or inner else None
        else:
            found = None
        self._codes[id(code)] = found
        if found is None:
            self._kept.append(code)
        return found

    def _check_cost(self) -> None:
        """Give up the function with most events, or all, where counting takes too much of the time."""
        counted = [code for code in list(self._codes.values()) if code is not None]
        lines = sum(code.events * code.cost for code in counted)
        calls = self._calls * CALL
        cheap = lines + calls <= FREE + MAX_COUNTING_SHARE * (perf_counter() - self._begun)
        if cheap and self._import_calls * CALL <= IMPORTS:
            return
        most = max(counted, key=lambda code: code.events * code.cost, default=None)
        if most is None or calls > lines or _MONITORING is None:
            self._ended = ENDED
            self.stop()
            if self._when_too_often is not None:
                self._when_too_often()
            return
        self._lost.append(most)
        self._forget(most)

    def _forget(self, code: _Code) -> None:
        self._codes[id(code.code)] = None
        self._kept.append(code.code)
        if _MONITORING is not None and self._tool is not None:
            _MONITORING.set_local_events(self._tool, code.code, 0)

    # ------------------------------------------------------------ sys.settrace

    def _trace_call(self, frame: FrameType, event: str, arg: object) -> Any:  # noqa: ARG002
        """Return the interpreter calls a function: its lines are requested if the function is wanted."""
        if not self._on:
            return None
        code = frame.f_code
        key = id(code)
        found = self._codes[key] if key in self._codes else self._code_of(code)
        if self._importing:
            self._import_calls += 1
        else:
            self._calls += 1
        if not next(self._tick) % EACH:
            self._check_cost()
        if code.co_name == _IMPORT_SYSTEM[1] and code.co_filename == _IMPORT_SYSTEM[0]:
            self._importing += 1
            frame.f_trace_lines = False
            return self._trace_import
        return self._tracer(found) if found is not None else None

    def _trace_import(self, frame: FrameType, event: str, arg: object) -> Any:  # noqa: ARG002
        """Handle the import of a module, whose calls say nothing about the program's work."""
        self._importing -= event == "return"
        return self._trace_import

    def _tracer(self, code: _Code) -> Any:
        by_offset, tick = code.by_offset, self._tick

        def trace(frame: FrameType, event: str, arg: object) -> Any:  # noqa: ARG001
            if event != "line":
                return trace
            code.events += 1
            if not next(tick) % EACH:
                self._check_cost()
            if not self._on:
                return None
            line = by_offset.get(frame.f_lasti)
            if line is not None and self._counts:
                line.count(frame)
            return trace

        return trace

    # ------------------------------------------------------------ sys.monitoring

    def _start_monitoring(self, monitoring: Any) -> None:
        self._ident = get_ident()
        self._tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
        if self._tool is None:
            self._on = self._counts = False
            self._ended = ELSEWHERE
            return
        monitoring.use_tool_id(self._tool, _OWN_NAME)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._begin_code)
        monitoring.register_callback(self._tool, monitoring.events.LINE, self._begin_line)
        monitoring.set_events(self._tool, monitoring.events.PY_START)

    def _stop_monitoring(self, monitoring: Any) -> None:
        if self._tool is None:
            return
        monitoring.set_events(self._tool, 0)
        for code in self._codes.values():
            if code is not None:
                monitoring.set_local_events(self._tool, code.code, 0)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, None)
        monitoring.register_callback(self._tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(self._tool)
        self._tool = None

    def _begin_code(self, code: CodeType, offset: int) -> Any:  # noqa: ARG002
        """Handle the first run of a function."""
        if self._on and id(code) not in self._codes:
            self._calls += 1
            if self._code_of(code) is not None and _MONITORING is not None:
                _MONITORING.set_local_events(self._tool, code, _MONITORING.events.LINE)
        return _MONITORING.DISABLE if _MONITORING is not None else None

    def _begin_line(self, code: CodeType, line: int) -> Any:
        """Return a line of a wanted function begins; one that is not wanted says so once."""
        found = self._codes.get(id(code))
        if found is None or line not in found.lines:
            return _MONITORING.DISABLE if _MONITORING is not None else None
        found.events += 1
        if not next(self._tick) % EACH:
            self._check_cost()
        if self._counts and get_ident() == self._ident:
            found.count(sys._getframe(1))
        return None


# ------------------------------------------------------------ values


def _value_at(path: list[str], known: dict[str, object], outside: dict[str, object]) -> object:
    """Return what a name holds, or an attribute or an element below it; no code of the program runs for it.

    `path`: `["self", ".weights", "[0]"]`, `["batch", "['x']"]`. Itself if there is none.
    """
    name, *rest = path
    value = known[name] if name in known else outside.get(name, _Missing)
    for part in rest:
        if part.startswith("."):
            try:
                held = object.__getattribute__(value, "__dict__")
            except AttributeError:
                return _Missing
            value = held.get(part[1:], _Missing) if type(held) is dict else _Missing
        elif type(value) is dict and part[1:2] in "'\"":
            value = value.get(part[2:-2], _Missing)
        elif type(value) in (list, tuple) and part[1:-1].isdigit():
            at = int(part[1:-1])
            value = value[at] if at < len(value) else _Missing  # type: ignore[index,arg-type]
        else:
            return _Missing
    return value


class _Missing:
    """Stands for nothing."""


def _form_of(value: object) -> object:
    """Return `["<f4", [256, 512], "C"]` of an array, `"float"` of a number, else an empty text."""
    kind = type(value)
    if kind in _NUMBERS:
        return kind.__name__
    numpy = sys.modules.get("numpy")
    names = vars(numpy) if type(numpy) is ModuleType else {}
    if kind is names.get("ndarray") or (
        isinstance(names.get("generic"), type)
        and kind.__module__ == "numpy"
        and issubclass(kind, names["generic"])
    ):
        array_: Any = value
        flags = array_.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else ""
        steps = (abs(step) for step, size in zip(array_.strides, array_.shape, strict=True) if size > 1)
        return [array_.dtype.str, list(array_.shape), order, min(steps, default=0)]
    return ""

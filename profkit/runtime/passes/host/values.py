"""What a look at a frame tells: its line, types and lengths of the function's variables, and its arguments.

Nothing is called on a value but `type`, and `len` of what is built in: no code of the program runs for it. No content
leaves the process: of arguments only how many different ones were seen.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from types import CodeType, FrameType
    from typing import Any

MAX_LOOKS = 400  # at the arguments of one function
TYPE_LOOKS = 12  # at the types of its variables: the first few, then each tenth
MAX_NAMES = 24
MAX_TASKS = 256
ONCE, TWICE = "[once]", "[twice]"  # among those of a library's function: how many arguments were met so often
# Among the variables of a function with a cache; of one that is full, also how many results it keeps.
CACHE_HITS, CACHE_MISSES, CACHE_FULL = "[cache hits]", "[cache misses]", "[cache full]"
_PLAIN = (int, float, str, bytes, bool, type(None), type)
_FUNCTION = type(lambda: None)
_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray)
# modules whose types say something
_TOLD = ("numpy", "torch", "pandas", "polars", "re", "collections", "xml", "lxml", "bs4")
ARRAY, OBJECTS, INTEGERS = "numpy.ndarray", "numpy.ndarray of objects", "numpy.ndarray of integers"
# Functions of the standard library that give the same for the same arguments, and take long: name, and how the path of
# their file ends.
_KEEPABLE = {
    "_compile": ("/re/__init__.py", "/re.py"), "realpath": ("/posixpath.py", "<frozen posixpath>"),
    "_strptime": ("/_strptime.py",), "urlparse": ("/urllib/parse.py",),
    "ip_address": ("/ipaddress.py",), "ip_network": ("/ipaddress.py",),
    "split": ("/shlex.py",), "translate": ("/fnmatch.py",), "dedent": ("/textwrap.py",),
}  # fmt: skip
_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: of a function, and not of a module or a class
_LONGEST = 1000  # signs of a text that is told apart by its content
_TESTS = (114, 115)  # the jumps at a test, forward: POP_JUMP_IF_FALSE and its other, of 3.10 and 3.11
_RELATIVE = sys.version_info >= (3, 11)  # their targets


class FunctionValues:
    """What was seen of one function."""

    __slots__ = ("arguments", "last", "looks", "outer", "times", "types")

    def __init__(self) -> None:
        self.looks = self.outer = 0  # at the innermost frame of the program, and at the one that called it
        self.last: tuple[int, int] | None = None  # frame and arguments of the call before
        self.times: dict[int, int] = {}  # how often each of its arguments was met, of a library's function
        self.arguments: set[int] | None = set()  # None: some cannot be told apart
        self.types: dict[str, list[object]] = {}  # name -> type, most elements

    def look(self, frame: FrameType) -> None:
        """Look at the variables of a frame of the function."""
        if self.looks >= MAX_LOOKS:
            return
        self.looks += 1
        code, known = frame.f_code, frame.f_locals
        try:
            self._look(frame, code, known)
        finally:
            if code.co_flags & _OPTIMIZED and sys.version_info < (3, 13):
                known.clear()  # a copy that the frame keeps, and with it what the variables held now

    def look_from_below(self, frame: FrameType) -> None:
        """Look at what the variables of a frame hold whose function has called another one of the program."""
        self.outer += 1
        if self.outer > TYPE_LOOKS and (self.outer % 10 or self.outer > MAX_LOOKS):
            return
        code, known = frame.f_code, frame.f_locals
        try:
            for name, value in _variables(code, frame, known):
                self._note(name, value)
        finally:
            if code.co_flags & _OPTIMIZED and sys.version_info < (3, 13):
                known.clear()

    def look_at_arguments(self, frame: FrameType) -> None:
        """Look at the arguments of one more call, whose frame is `frame`; a call that takes long counts once."""
        if self.looks >= MAX_LOOKS or self.arguments is None:
            return
        code, known = frame.f_code, frame.f_locals
        try:
            given = _arguments(code, known)
        finally:
            if sys.version_info < (3, 13):
                known.clear()
        if given is None or (id(frame), given) == self.last:
            return
        self.last = (id(frame), given)
        self.looks += 1
        self.arguments.add(given)
        self.times[given] = self.times.get(given, 0) + 1
        counts = list(self.times.values())
        self.types = {ONCE: ["int", counts.count(1)], TWICE: ["int", counts.count(2)]}

    def _look(self, frame: FrameType, code: CodeType, known: dict[str, object]) -> None:
        if self.arguments is not None:
            given = _arguments(code, known)
            if given is not None:
                self.arguments.add(given)
            else:
                self.arguments = None
        if self.looks <= TYPE_LOOKS or self.looks % 10 == 0:
            for name, value in _variables(code, frame, known):
                self._note(name, value)

    def _note(self, name: str, value: object) -> None:
        kind = type(value)
        if kind in _SIZED:
            told, length = kind.__name__, len(value)  # type: ignore[arg-type]
        else:
            module = str(kind.__module__).partition(".")[0]
            if module not in _TOLD:
                return
            told, length = f"{module}.{kind.__name__}", -1
            if told == "collections.deque":
                length = len(value)  # type: ignore[arg-type]
            if told == ARRAY:
                length = value.size  # type: ignore[attr-defined]
            if told == ARRAY and value.dtype.hasobject:  # type: ignore[attr-defined]
                told = OBJECTS
            elif told == ARRAY and value.dtype.kind in "iub":  # type: ignore[attr-defined]
                told = INTEGERS
        before = self.types.get(name)
        if before is not None and before[0] == told:
            before[1] = max(length, before[1])  # type: ignore[call-overload]
        elif before is not None or len(self.types) < MAX_NAMES:
            self.types[name] = [told, length]


def _variables(code: CodeType, frame: FrameType, known: dict[str, object]) -> list[tuple[str, object]]:
    """Return the locals of a frame, the attributes of `self`, and globals, as far as the function names them."""
    found = [(name, known[name]) for name in (*code.co_varnames, *code.co_freevars) if name in known]
    found += [(name, frame.f_globals[name]) for name in code.co_names if name in frame.f_globals]
    if code.co_argcount and code.co_varnames[0] == "self" and "self" in known:
        try:
            held = object.__getattribute__(known["self"], "__dict__")
        except AttributeError:
            held = {}
        found += [(f"self.{name}", held[name]) for name in code.co_names if name in held]
    return found


def _arguments(code: CodeType, known: dict[str, object]) -> int | None:
    """Return one number for the arguments of a call; None if they cannot be distinguished."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if not names or not all(name in known and _is_plain(known[name]) for name in names):
        return None
    return hash(tuple([_told_apart(known[name]) for name in names]))


def is_keepable(code: CodeType) -> bool:
    """Return whether a function of the standard library gives the same for the same arguments, and takes long."""
    return code.co_filename.endswith(_KEEPABLE.get(code.co_name, ())) and code.co_name in _KEEPABLE


def _told_apart(value: object) -> object:
    """Return a value, or the code of a function: another function may later lie where this one did."""
    return value.__code__ if type(value) is _FUNCTION else value


def _is_plain(value: object) -> bool:
    if type(value) is _FUNCTION:
        return value.__closure__ is None
    if type(value) is tuple:
        return len(value) < 10 and all(type(one) in _PLAIN for one in value)
    return type(value) in _PLAIN and not (type(value) in (str, bytes) and len(value) > _LONGEST)  # type: ignore[arg-type]


def cache_uses(is_users: Callable[[str], bool]) -> dict[int, dict[str, list[object]]]:
    """Return how often functools' caches of the program's functions were asked: by the address of each one's code.

    Those of modules and of classes in them. What is defined inside of a cached function belongs to it.
    """
    kind = getattr(sys.modules.get("functools"), "_lru_cache_wrapper", None)
    found: dict[int, dict[str, list[object]]] = {}
    for name, module in list(sys.modules.items()) if kind is not None else ():
        file = getattr(module, "__file__", None)
        if name != "__main__" and not is_users(str(file or "<")):  # a script has lost its file at its end
            continue
        held = list(vars(module).values())
        held += [one for each in held if type(each) is type for one in list(vars(each).values())]
        for one in held:
            code = getattr(getattr(one, "__wrapped__", None), "__code__", None) if type(one) is kind else None
            if code is None:
                continue
            info = one.cache_info()
            told: dict[str, list[object]] = {
                CACHE_HITS: ["int", info.hits],
                CACHE_MISSES: ["int", info.misses],
            }
            if info.maxsize and info.currsize >= info.maxsize:
                told[CACHE_FULL] = ["int", info.maxsize]
            found |= {id(each): told for each in (code, *code.co_consts) if type(each) is type(code)}
    return found


def awaited_frames(
    loop_tasks: object, own: Any = None, before: Container[object] = ()
) -> tuple[list[FrameType], bool]:
    """Return the frames of the coroutine that an event loop waits for, innermost first, and whether it is the only one.

    Of several it is the one that the loop was started with; where all but that and one other wait for locks, it is the
    other one, which holds what they wait for, and nothing else can run meanwhile. `loop_tasks` is asyncio's own set of
    its tasks (`_all_tasks`, or `_scheduled_tasks` from 3.12 on). Where only a part of its time is sampled, it is the
    task `own` while that is suspended, and tasks that were there `before` do not count.
    """
    references = list(getattr(loop_tasks, "data", ()))[:MAX_TASKS]
    tasks = [task for task in [one() for one in references] if task is not None and not task.done()]
    if own is not None:
        tasks = [task for task in tasks if task is own or task.get_loop() is own.get_loop()]
    pending = [task for task in tasks if task is own or task not in before]
    alone = len(pending) == 1
    first = [task for task in pending if task is own or (own is None and (alone or _ends_loop(task)))]
    if len(first) != 1 or (own is not None and getattr(own.get_coro(), "cr_running", True)):
        return [], False
    frames = _suspended_frames(first[0])
    if not alone and own is None and not _waits_for_lock(frames):
        others = [each for task in pending if task is not first[0] and (each := _suspended_frames(task))]
        holders = [each for each in others if not _waits_for_lock(each)]
        if len(holders) == 1 and len(others) > 1:
            frames, alone = holders[0], True
    return frames[::-1], alone


def _ends_loop(task: Any) -> bool:
    """Return whether an event loop runs until this task is done: `asyncio.run` says so by a callback of the task.

    Loops of other libraries say it otherwise: there it is the first task of the program.
    """
    callbacks = getattr(task, "_callbacks", None) or ()
    names = {getattr(callback, "__name__", "") for callback, *_ in callbacks}
    return "_run_until_complete_cb" in names or task.get_name() == "Task-1"


def _suspended_frames(task: Any) -> list[FrameType]:
    """Return the frames of a task that waits, outermost first."""
    frames: list[FrameType] = []
    waits = task.get_coro()
    for _ in range(50):
        frame = getattr(waits, "cr_frame", None) or getattr(waits, "gi_frame", None)
        if frame is None:
            break
        frames.append(frame)
        waits = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
    return frames


def _waits_for_lock(frames: list[FrameType]) -> bool:
    """Return whether the innermost frame that waits is that of asyncio's lock, or of a semaphore."""
    code = frames[-1].f_code if frames else None
    return code is not None and code.co_name == "acquire" and code.co_filename.endswith("locks.py")


def line_of_jump(code: CodeType, at: int) -> int:
    """Return the line from which a jump without a line is reached: before 3.12 that back to the head of a loop.

    First that of a test whose other way ends there, else the line before it.
    """
    text, tests = code.co_code, []
    for offset in range(0, at, 2):
        if text[offset] in _TESTS:
            target = 2 * text[offset + 1] + (offset + 2 if _RELATIVE else 0)
            tests += [offset] if target == at else []
    last = code.co_firstlineno
    for begin, end, line in code.co_lines():
        if line and begin < at and (not tests or begin <= tests[-1] < end):
            last = line
    return last

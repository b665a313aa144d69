"""What a look at a frame tells: its line, types and lengths of the function's variables, and its arguments.

Nothing is called on a value but `type`, `len` of what is built in, and of arrays and tensors of exactly NumPy's and
torch's own types, and of groups of pandas, what these know of themselves: no code of the program runs for it. No
content leaves the process: of arguments only how many different ones were seen, of a pattern how many alternatives it
has, of an array how many of its numbers are denormal, of groups how many there are, of a list what its elements are.
"""

from __future__ import annotations

import sys
from _weakref import ref  # built in; `weakref` is another module to load

from .contents import ELEMENTS, module_of, name_of, named_in, relations_of, sequences_of
from .frame_locals import keeps_locals, let_go
from .same_arrays import SameArrays, owns_its_numbers

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

MAX_LOOKS = 400  # at the arguments of one function
TYPE_LOOKS = 12  # at the types of its variables: the first few, then each tenth
MAX_NAMES, MAX_SEQUENCES = 24, 8
ONCE, TWICE = "[once]", "[twice]"  # among those of a library's function: how many arguments were met so often
# Among the variables of a function with a cache; of one that is full, also how many results it keeps.
CACHE_HITS, CACHE_MISSES, CACHE_FULL = "[cache hits]", "[cache misses]", "[cache full]"
_PLAIN = (int, float, str, bytes, bool, type(None), type)
_FUNCTION = type(lambda: None)
_CODE = type((lambda: None).__code__)
_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray)
# modules whose types are reported
_NAMED_MODULES = ("numpy", "torch", "pandas", "polars", "re", "collections", "xml", "lxml", "bs4", "netCDF4")
ARRAY, OBJECTS, INTEGERS = "numpy.ndarray", "numpy.ndarray of objects", "numpy.ndarray of integers"
HALVES, LONG_DOUBLES = "numpy.ndarray of float16", "numpy.ndarray of longdouble"
TOKENS = "torch.Tensor of integers"
DENORMAL = " [denormal]"  # behind the name of an array: how many of a thousand of its numbers are
SMALLEST = {
    4: 1.1754943508222875e-38,
    8: 2.2250738585072014e-308,
}  # by the bytes of a number: below it is denormal
GROUPS, GROUPED_ROWS = " [groups]", " [grouped rows]"  # behind the number of the line that groups
SPARSE, MANY_GROUPS = 10, 100_000  # groups for each row, and in all: fewer cost little
MOST_GROUPS = 1 << 62
_GROUPING = ("/pandas/core/groupby/groupby.py", "/pandas/core/groupby/generic.py")
MAX_NUMBERS = 256  # numbers of an array that are looked at: NumPy keeps the interpreter's lock for so few
LONGEST_PATTERN = 100_000  # signs
# Functions of libraries that give the same for the same arguments, and take long: name, and how the path of their file
# ends.
_KEEPABLE = {
    "_compile": ("/re/__init__.py", "/re.py"), "realpath": ("/posixpath.py", "<frozen posixpath>"),
    "_strptime": ("/_strptime.py",), "urlparse": ("/urllib/parse.py",),
    "ip_address": ("/ipaddress.py",), "ip_network": ("/ipaddress.py",),
    "_fit_transform_one": ("/sklearn/pipeline.py",),
    "__getitem__": ("/numpy/lib/npyio.py", "/numpy/lib/_npyio_impl.py"),
    "split": ("/shlex.py",), "translate": ("/fnmatch.py",), "dedent": ("/textwrap.py",),
}  # fmt: skip
_LONGEST = 1000  # signs of a text that is distinguished by its content


class FunctionValues:
    """What was seen of one function."""

    __slots__ = ("arguments", "last", "looks", "object", "outer", "same", "times", "types")

    def __init__(self) -> None:
        self.looks = self.outer = 0  # at the innermost frame of the program, and at the one that called it
        self.last: tuple[int, int] | None = None  # frame and arguments of the call before
        self.times: dict[int, int] = {}  # how often each of its arguments was met, of a library's function
        self.arguments: set[int] | None = set()  # None: some cannot be distinguished
        self.object: ref[Any] | None = None  # that a method was called on
        # Name -> type, most elements, and how many it had at first, which is -1 once it had fewer than before.
        self.types: dict[str, list[Any]] = {}
        self.same = SameArrays()

    def look(self, frame: FrameType) -> None:
        """Look at the variables of a frame of the function."""
        if self.looks >= MAX_LOOKS or keeps_locals(frame.f_code):
            return
        self.looks += 1
        code, known = frame.f_code, frame.f_locals
        try:
            self._look(frame, code, known)
        finally:
            let_go(frame, known)

    def look_from_below(self, frame: FrameType) -> None:
        """Look at what the variables of a frame hold whose function has called another one of the program."""
        self.outer += 1
        if self.outer > TYPE_LOOKS and (self.outer % 10 or self.outer > MAX_LOOKS):
            return
        if keeps_locals(frame.f_code):
            return
        code, known = frame.f_code, frame.f_locals
        try:
            self._note_all(code, _variables(code, frame, known))
        finally:
            let_go(frame, known)

    def look_at_arguments(self, frame: FrameType) -> None:
        """Look at the arguments of one more call, whose frame is `frame`; a call that takes long counts once."""
        if self.looks >= MAX_LOOKS or self.arguments is None:
            return
        code, known = frame.f_code, frame.f_locals
        try:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = hash(tuple([_sketch(known.get(name)) for name in names]))
        finally:
            let_go(frame, known)
        if (id(frame), given) == self.last:
            return
        self.last = (id(frame), given)
        self.looks += 1
        self.arguments.add(given)
        self.times[given] = self.times.get(given, 0) + 1
        counts = list(self.times.values())
        self.types = {ONCE: ["int", counts.count(1), -1], TWICE: ["int", counts.count(2), -1]}

    def look_at_groups(self, frame: FrameType, line: int) -> None:
        """Look at what a method of pandas' groups, whose frame is `frame`, was called on in a line of the function."""
        if self.looks > TYPE_LOOKS and self.looks % 10:
            return
        known = frame.f_locals
        try:
            found = sparse_groups(known.get("self"))
        finally:
            let_go(frame, known)
        if found is not None:
            self._keep(f"{line}{GROUPS}", "groups", found[0])
            self._keep(f"{line}{GROUPED_ROWS}", "rows", found[1])

    def _arguments(self, code: CodeType, known: dict[str, object]) -> int | None:
        """Return one number for the arguments of a call; None if they cannot be distinguished.

        Of a method its object is left out as long as it is the same one.
        """
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if names[:1] == ("self",) and "self" in known and self._is_of_one_object(known["self"]):
            names = names[1:]
        if not names or not all(name in known and _is_plain(known[name]) for name in names):
            return None
        return hash(tuple([_identity(known[name]) for name in names]))

    def _is_of_one_object(self, value: object) -> bool:
        """Return whether a method was seen to be called on this object alone; a new one may lie where one was freed."""
        if any(
            module_of(base) in ("numpy", "torch") for base in type.__getattribute__(type(value), "__mro__")
        ):
            return False  # an array that is referred to weakly cannot be resized
        try:
            self.object = self.object or ref(value)
        except TypeError:  # it has no place for it
            return False
        return self.object() is value

    def _look(self, frame: FrameType, code: CodeType, known: dict[str, object]) -> None:
        if self.arguments is not None:
            given = self._arguments(code, known)
            if given is not None:
                self.arguments.add(given)
            else:
                self.arguments = None
        if self.looks <= TYPE_LOOKS or self.looks % 10 == 0:
            self._note_all(code, _variables(code, frame, known))

    def _note_all(self, code: CodeType, variables: list[tuple[str, object]]) -> None:
        names, keys = named_in(code)
        for name, value in variables:
            self._note(name, value)
        for name, value in variables:
            for path, kind, numbers in sequences_of(name, value, names, keys):
                self._keep(path + ELEMENTS, kind, numbers, MAX_NAMES + MAX_SEQUENCES)
            for path, kind, number in relations_of(name, value, names):
                self._keep(path, kind, number, MAX_NAMES + MAX_SEQUENCES)

    def _note(self, name: str, value: object) -> None:
        kind = type(value)
        if kind in _SIZED:
            type_name, length = kind.__name__, len(value)  # type: ignore[arg-type]
        else:
            module = module_of(kind)
            if module not in _NAMED_MODULES:
                return
            type_name, length = f"{module}.{name_of(kind)}", -1
            if type_name == "collections.deque":
                length = len(value)  # type: ignore[arg-type]
            elif type_name == "re.Pattern":
                length = _alternatives_of(value)
            elif type_name == ARRAY:
                type_name, length = _array_type(value), value.size  # type: ignore[attr-defined]
                share = _denormal_share(value)
                if share:
                    self._keep(name + DENORMAL, "numbers", share)
            elif type_name == "torch.Tensor" and kind is getattr(sys.modules.get("torch"), "Tensor", None):
                length = value.numel()  # type: ignore[attr-defined]
                type_name = type_name if value.dtype.is_floating_point else TOKENS  # type: ignore[attr-defined]
        self._keep(name, type_name, length)
        if name in self.types:
            self.same.note(name, value, self.types)

    def _keep(self, name: str, type_name: str, length: int, most: int = MAX_NAMES) -> None:
        before = self.types.get(name)
        if before is not None and before[0] == type_name:
            before[2] = before[2] if length >= before[1] else -1
            before[1] = max(length, before[1])
        elif before is not None or len(self.types) < most:
            self.types[name] = [type_name, length, length]


def _array_type(array: Any) -> str:
    """Return how an array is reported: its type, and of numbers that are slow what they are."""
    kind = array.dtype
    if kind.hasobject:
        return OBJECTS
    if kind.kind == "f" and kind.itemsize not in (4, 8):
        return HALVES if kind.itemsize == 2 else LONG_DOUBLES
    return INTEGERS if kind.kind in "iub" else ARRAY


def is_grouping(code: CodeType) -> bool:
    """Return whether this is a method of pandas' groups."""
    return code.co_varnames[:1] == ("self",) and code.co_filename.replace("\\", "/").endswith(_GROUPING)


def sparse_groups(grouped: Any) -> tuple[int, int] | None:
    """Return how many groups an object of pandas makes, and of how many rows; None where most groups may have rows.

    Of columns of categories with observed=False, each combination of these is a group.
    """
    if not _is_pandas(grouped):
        return None
    try:
        held = object.__getattribute__(grouped, "__dict__")
        grouper = held.get("_grouper", held.get("grouper"))
        groupings = object.__getattribute__(grouper, "__dict__")["_groupings"]
        rows, groups = len(held["obj"]) if _is_pandas(held["obj"]) else 0, 1
        for grouping in groupings:
            known = object.__getattribute__(grouping, "__dict__")
            column = known.get("grouping_vector")
            if (
                known.get("_observed") is False
                and name_of(type(column)) == "Categorical"
                and _is_pandas(column)
            ):
                groups *= len(column.categories)
    except (AttributeError, KeyError, TypeError):
        return None  # another version of pandas
    return (min(groups, MOST_GROUPS), rows) if rows and groups >= max(MANY_GROUPS, SPARSE * rows) else None


def _is_pandas(value: object) -> bool:
    return module_of(type(value)) == "pandas"


def _denormal_share(array: Any) -> int:
    """Return how many of a thousand numbers of an array are denormal, by a few of them."""
    kind = array.dtype
    if kind.kind != "f" or kind.itemsize not in SMALLEST or not array.size or not array.flags.c_contiguous:
        return 0
    if not owns_its_numbers(array):
        return 0
    numpy: Any = sys.modules["numpy"]
    step = array.size // MAX_NUMBERS | 1  # odd: what two things take in turn is seen of both
    some = numpy.absolute(array.reshape(-1)[::step][:MAX_NUMBERS])
    denormal = numpy.count_nonzero((some > 0) & (some < SMALLEST[kind.itemsize]))
    return int(1000 * denormal / some.size)


_patterns: dict[int, tuple[object, int]] = {}  # by address, with the pattern itself, so that it stays its own


def _alternatives_of(pattern: Any) -> int:
    """Return how many alternatives the largest group of a pattern has."""
    known = _patterns.get(id(pattern))
    if known is None:
        if len(_patterns) >= MAX_NAMES:
            return -1
        known = _patterns[id(pattern)] = pattern, count_alternatives(pattern.pattern)
    return known[1]


_NO_LITERAL = frozenset("[(*+?{.^$")


def count_alternatives(pattern: object) -> int:
    """Return how many alternatives the largest group of a pattern's text has that are plain text."""
    text = pattern.decode("latin-1") if type(pattern) is bytes else pattern
    if type(text) is not str or len(text) > LONGEST_PATTERN:
        return -1
    most, groups, at = 0, [[0, True]], 0  # by group: plain alternatives so far, and whether this one is
    while at < len(text):
        sign, group = text[at], groups[-1]
        if sign in "|)":
            group[0] += group[1]
            group[1] = True
            most = max(most, group[0])
        elif sign in _NO_LITERAL and not (sign == "?" and text[at - 1] == "("):
            group[1] = False
        if sign == "\\":
            at += 1
        elif sign == "[":
            at = _end_of_class(text, at)
        elif sign == "(":
            groups.append([0, True])
            at += 2 if text[at + 1 : at + 3] == "?:" else 0
        elif sign == ")" and len(groups) > 1:
            groups.pop()
        at += 1
    return max(most, groups[0][0] + groups[0][1] if "|" in text else 0)


def _end_of_class(text: str, at: int) -> int:
    """Return where a class of signs ends: what ends it may be its first sign, and then does not."""
    at += 2 if text[at + 1 : at + 2] == "^" else 1
    if text[at : at + 1] == "]":
        at += 1
    while at < len(text) and text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at


def _variables(code: CodeType, frame: FrameType, known: dict[str, object]) -> list[tuple[str, object]]:
    """Return the locals of a frame, the attributes of `self`, and globals, as far as the function names them.

    What a comprehension or a lambda in it names, the function names too.
    """
    found = [
        (name, known[name])
        for name in (*code.co_varnames, *code.co_freevars, *code.co_cellvars)
        if name in known
    ]
    inner = [
        constant
        for constant in code.co_consts
        if type(constant) is _CODE and constant.co_name.startswith("<")
    ]  # comprehensions
    named = dict.fromkeys(code.co_names + sum([constant.co_names for constant in inner], ()))
    found += [(name, frame.f_globals[name]) for name in named if name in frame.f_globals]
    if code.co_argcount and code.co_varnames[0] == "self" and "self" in known:
        try:
            held = object.__getattribute__(known["self"], "__dict__")
        except AttributeError:
            held = {}
        found += [(f"self.{name}", held[name]) for name in code.co_names if name in held]
    return found


_SAMPLED = 8  # elements of a list or an array that tell it apart from others


def _sketch(value: object, depth: int = 2) -> object:
    """Return what distinguishes a value from others: all of what is plain, else type, size and a few parts.

    Of an object, what its public attributes are that no fit has set: scikit-learn ends the names of those in `_`.
    """
    kind = type(value)
    if _is_plain(value):
        return _identity(value)
    if depth and kind in (list, tuple):
        size, step = len(value), max(1, len(value) // _SAMPLED)  # type: ignore[arg-type]
        parts = (*value[::step], *value[-1:])  # type: ignore[index]
        return kind, size, tuple([_sketch(part, depth - 1) for part in parts])
    if f"{module_of(kind)}.{name_of(kind)}" == ARRAY:
        array: Any = value
        if not owns_its_numbers(array):
            return array.dtype.str, array.shape
        step = max(1, array.shape[0] // _SAMPLED) if array.ndim else 1
        few = array[::step][:_SAMPLED] if array.ndim == 1 else array[:0]
        return array.dtype.str, array.shape, few.shape if array.dtype.hasobject else few.tobytes()
    if depth and kind not in (dict, str, bytes):
        try:
            held = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return kind
        # The list first, in one step: the program may have its lock back, and add to the object, within a loop.
        named = [name for name in list(held) if not name.startswith("_") and not name.endswith("_")]
        return kind, tuple([(name, _sketch(held.get(name), depth - 1)) for name in sorted(named)])
    return kind


def is_keepable(code: CodeType) -> bool:
    """Return whether a function of a library gives the same for the same arguments, and takes long."""
    return code.co_filename.endswith(_KEEPABLE.get(code.co_name, ())) and code.co_name in _KEEPABLE


def _identity(value: object) -> object:
    """Return a value, or the code of a function: another function may later lie where this one did."""
    return value.__code__ if type(value) is _FUNCTION else value


def _is_plain(value: object) -> bool:
    if type(value) is _FUNCTION:
        return value.__closure__ is None
    if type(value) is tuple:
        return len(value) < 10 and all(type(element) in _PLAIN for element in value)
    return type(value) in _PLAIN and not (type(value) in (str, bytes) and len(value) > _LONGEST)  # type: ignore[arg-type]


def cache_uses(is_users: Callable[[str], bool]) -> dict[int, dict[str, list[object]]]:
    """Return how often functools' caches of the program's functions were used: by the address of each one's code.

    Those of modules and of classes in them. What is defined inside of a cached function belongs to it.
    """
    kind = getattr(sys.modules.get("functools"), "_lru_cache_wrapper", None)
    found: dict[int, dict[str, list[object]]] = {}
    for name, module in list(sys.modules.items()) if kind is not None else ():
        file = getattr(module, "__file__", None)
        if name != "__main__" and not is_users(str(file or "<")):  # a script has lost its file at its end
            continue
        held = list(vars(module).values())
        held += [member for each in held if type(each) is type for member in list(vars(each).values())]
        for member in held:
            code = (
                getattr(getattr(member, "__wrapped__", None), "__code__", None)
                if type(member) is kind
                else None
            )
            if code is None:
                continue
            info = member.cache_info()
            uses: dict[str, list[object]] = {
                CACHE_HITS: ["int", info.hits, -1],
                CACHE_MISSES: ["int", info.misses, -1],
            }
            if info.maxsize and info.currsize >= info.maxsize:
                uses[CACHE_FULL] = ["int", info.maxsize, -1]
            found |= {id(each): uses for each in (code, *code.co_consts) if type(each) is type(code)}
    return found

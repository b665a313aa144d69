"""What Triton compiles and tunes: kernels by their definitions, keys, and products whose operands were widened."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any

from ..own_library import is_foreign
from .operations_file import MAX_KERNELS, MAX_ROWS, add_to_file


class TritonTuner:
    """Notes which kernels `triton.autotune` wraps, and asks them at the end for how many keys they were tuned.

    And which kernels there are at all: those that ran have their definition, whatever module it is in.
    """

    def __init__(self, out: str) -> None:
        self._out = out
        self._wrapped: list[Any] = []
        self._kernels: list[Any] = []
        self._variants = KernelVariants()

    def start(self, module: Any) -> None:
        """Note each kernel that is made or wrapped from here on; `module` is triton.runtime.autotuner."""
        self._note(module.Autotuner, self._wrapped)
        if (jit := getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", None)) is not None:
            self._note(jit, self._kernels)
        with suppress(Exception):  # before Triton 3.4 nothing tells of compilations
            self._variants.listen(sys.modules["triton.knobs"].compilation)

    def _note(self, kind: Any, made: list[Any]) -> None:
        original = kind.__init__
        os.register_at_fork(after_in_child=made.clear)

        @functools.wraps(original)
        def wrapper(new: Any, *args: Any, **kwargs: Any) -> None:
            original(new, *args, **kwargs)
            made.append(new)

        kind.__init__ = wrapper

    def _definitions(self) -> Iterator[list[object]]:
        """Yield file, line, function, kernel and no module for each compiled kernel of the program itself."""
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

    def _widened(self) -> Iterator[list[object]]:
        """Yield file, line, kernel and type of each product of 16-bit numbers that were made float32 before it.

        A product that asks for the digits of float32 has a true value behind its type of 16 bits in memory, if any.
        """
        for kernel in self._kernels:
            with suppress(Exception):
                code = kernel.fn.__code__
                if is_foreign(code.co_filename):
                    continue
                signatures = list(compiled_for(kernel))
                kind = next(filter(None, map(narrow_type, signatures)), None)
                source = inspect.getsource(kernel.fn) if signatures else ""
                file, first = os.path.abspath(code.co_filename), code.co_firstlineno
                if kind is not None and (line := widened_line(source)) is not None:
                    yield [file, first + line, code.co_name, kind]
                if (line := exact_line(source)) is not None:
                    yield [file, first + line, code.co_name, kind or "", True]

    def finish(self) -> None:
        """Write, as the process ends, each kernel's place, name and keys, and the configurations tried for each key."""
        if definitions := list(self._definitions())[:MAX_KERNELS]:
            add_to_file(self._out, kernels=definitions)
        if widened := list(self._widened())[:MAX_ROWS]:
            add_to_file(self._out, widened=widened)
        if again := self._variants.rows()[:MAX_ROWS]:
            add_to_file(self._out, triton=again)
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
            add_to_file(self._out, tuned=rows[:MAX_ROWS])


class KernelVariants:
    """Counts how often Triton compiles a kernel at a line, and which of its constants differ from time to time."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, int, str, str], list[tuple[float, dict[str, object]]]] = {}

    def listen(self, knobs: Any) -> None:
        """Hear of each compilation from here on; the own listener of `knobs`, triton.knobs.compilation, still hears."""
        theirs = knobs.listener

        def listener(**about: Any) -> None:
            with suppress(Exception):  # the program comes first
                self._hear(about["src"], about["times"].total / 1e6, bool(about["cache_hit"]))
            if theirs is not None:
                theirs(**about)

        knobs.listener = listener
        os.register_at_fork(after_in_child=self._compiled.clear)  # what a child compiles is its own

    def _hear(self, source: Any, seconds: float, cached: bool) -> None:
        """Add a compilation, unless a file had its result. `source`: a triton.compiler.ASTSource."""
        made_by = source.fn.fn.__code__.co_filename
        if (
            cached or _INDUCTOR in made_by
        ):  # torch.compile has other kernels of the same name for other graphs
            return
        frame = sys._getframe(2)
        while frame.f_back is not None and is_foreign(frame.f_code.co_filename):
            if frame.f_code.co_filename.replace("\\", "/").endswith(_TUNER):
                return  # each configuration that is tried has constants of its own
            frame = frame.f_back
        place = (os.path.abspath(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name, source.name)
        names = source.fn.arg_names
        constants = {names[path[0]]: value for path, value in source.constants.items() if len(path) == 1}
        self._compiled.setdefault(place, []).append((seconds, constants))

    def rows(self) -> list[list[object]]:
        """Return file, line, function, kernel with what differs, how often it was compiled again, and seconds each."""
        again = [(place, found) for place, found in self._compiled.items() if len(found) > 1]
        again.sort(key=lambda item: -sum(seconds for seconds, _ in item[1]))
        return [
            [
                *place[:3],
                f"{place[3]}, {_differing([constants for _, constants in found])}",
                len(found) - 1,
                sum(seconds for seconds, _ in found) / len(found),
            ]
            for place, found in again
        ]


_INDUCTOR = "torchinductor"  # in the folder of the kernels that torch.compile writes
_TUNER = "/triton/runtime/autotuner.py"
MAX_NAMES = 3


def _differing(constants: list[dict[str, object]]) -> str:
    """Return the names of the constants that a kernel was compiled with several values of, as part of a sentence."""
    values: dict[str, set[str]] = {}
    for variant in constants:
        for name, value in variant.items():
            values.setdefault(name, set()).add(repr(value)[:200])
    names = sorted(
        (name for name in values if len(values[name]) > 1), key=lambda name: (-len(values[name]), name)
    )
    if not names:
        return "for arguments of other types, or that 16 divides or does not"
    several = ", ".join(f"{name} with {len(values[name])} values" for name in names[:MAX_NAMES])
    return f"whose constants differ: {several}"


# ------------------------------------------------------------ products whose operands were widened

# Pointers to numbers of 16 bits in what a kernel was compiled for: `*bf16`, `*fp16`.
_NARROW = re.compile(r"\*(bf16|fp16)\b")
MAX_SOURCE_CHARACTERS = 1 << 20


def narrow_type(compiled: object) -> str | None:
    """Return the type of 16 bits that pointers of a compiled kernel have, by the text of its signature."""
    found = _NARROW.search(str(compiled)[:MAX_SOURCE_CHARACTERS])
    return found[1] if found is not None else None


def widened_line(source: str) -> int | None:
    """Return the line, counted from 0, of a `tl.dot` of which both operands were loaded and made float32 before.

    The tensor cores multiply what they are given: float32 as TF32, at half the rate of bfloat16 and with twice the
    bytes in shared memory, however few digits there were in memory. None where no product is of this form.
    """
    tree = _parsed(source)
    if tree is None:
        return None
    values = dict(_assigned(tree))
    for call in _dots(tree):
        if len(call.args) >= 2 and all(_is_widened(operand, values) for operand in call.args[:2]):
            return call.lineno - 1
    return None


def exact_line(source: str) -> int | None:
    """Return the line, counted from 0, of a `tl.dot` that asks for the digits of float32.

    Tensor cores have none: of operands in float32 the product is multiplied on other units. None where no product asks.
    """
    tree = _parsed(source)
    for call in _dots(tree) if tree is not None else ():
        for keyword in call.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if (keyword.arg, value) in (("input_precision", "ieee"), ("allow_tf32", False)):
                return call.lineno - 1
    return None


def _parsed(source: str) -> ast.Module | None:
    """Return the tree of a kernel's source; None where it is too long or no Python."""
    if len(source) > MAX_SOURCE_CHARACTERS:
        return None
    try:
        return ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _dots(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of `tl.dot`."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node.func) == "dot")


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that are assigned once, and what; what has several values may be anything."""
    seen: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    seen.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            seen.setdefault(node.target.id, []).append(node.value)
    for name, values in seen.items():
        if len(values) == 1:
            yield name, values[0]


def _is_widened(operand: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Return whether it is `tl.load(...).to(tl.float32)`, in one expression or by a name, transposed or not."""
    for _ in range(4):  # names that stand for names
        if isinstance(operand, ast.Name) and operand.id in values:
            operand = values[operand.id]
        elif isinstance(operand, ast.Call) and _called(operand.func) == "trans" and operand.args:
            operand = operand.args[0]
    if not (isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute)):
        return False
    if operand.func.attr != "to" or not operand.args or _called(operand.args[0]) != "float32":
        return False
    inner = operand.func.value
    if isinstance(inner, ast.Name):
        inner = values.get(inner.id, inner)
    return isinstance(inner, ast.Call) and _called(inner.func) == "load"


def _called(function: ast.expr) -> str:
    """Return the last part of a name: `dot` of `tl.dot`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def compiled_for(kernel: Any) -> Iterator[object]:
    """Yield the signatures that a kernel of Triton was compiled for in this process."""
    for cache in kernel.device_caches.values():
        yield from cache[0]

"""The notation of operator traces: a call of an operation as text, and a file of calls.

    Operator: aten.add.Tensor
    cnt: 12, ((T([8, 16], f16), T([8, 16], f16, stride=(32, 1))), {'alpha': 2})  # offsets [0, 16]

`T(shape, dtype[, stride])` stands for a tensor; some files write the stride as a list, some by name. The
comment is an addition that other readers of such files ignore: where in its storage each tensor begins, in
elements. It is absent where all begin at 0.

Nothing of a file is executed: the text is parsed as Python and only literals are taken from it.

The operations that a user's program calls are found by running it: its processes count their calls.
"""

from __future__ import annotations

import ast
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from profkit.core.errors import UsageError, WorkloadError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import TemporaryFolder, write_whole
from profkit.core.process import run
from profkit.core.types import Fact
from profkit.reporting.facts import fact_text
from profkit.runtime.passes.command import start_up_environment

DTYPES = {
    "bf16": "bfloat16", "f64": "float64", "f32": "float32", "f16": "float16",
    "c32": "complex32", "c64": "complex64", "c128": "complex128",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "b8": "bool", "u8": "uint8",
}  # fmt: skip
SHORT_DTYPES = {name: short for short, name in DTYPES.items()}
# As files of older versions of torch call them.
LEGACY_NAMES = {"sum.SymInt": "sum.dim_IntList"}
_DEVICE = re.compile(r"""["']torch\.device\((.*?)\)["']""")
_OFFSETS = re.compile(r"#\s*offsets \[([\d, ]*)\]")
_LINE = re.compile(r"cnt: (\d{1,18}), (.*)")  # nothing is called more often
_INTEGER_LIMIT = 1 << 64  # torch has no larger whole number


@dataclass(frozen=True)
class TensorForm:
    """A trace's description of a tensor. `dtype` is torch's name; no `stride`: contiguous. `offset` in elements."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None
    offset: int = 0

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def extent(self) -> int:
        """Return the elements of storage from its first to its last element."""
        if self.elements == 0:
            return 0
        if self.stride is None:
            return self.elements
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))


@dataclass(frozen=True)
class Symbol:
    """A value of torch that is no number: `kind` is dtype, device, layout or memory_format."""

    kind: str
    name: str


@dataclass(frozen=True)
class Call:
    """The arguments of one call, with tensors as their forms."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def tensors(self) -> tuple[TensorForm, ...]:
        """Return all tensors in the order of the arguments, including those in lists."""
        return tuple(_find_tensors((self.args, tuple(self.kwargs.values()))))


@dataclass(frozen=True)
class TracedCall:
    """A line of a trace file: how often an operation (`add.Tensor`) was called with these arguments."""

    operation: str
    count: int
    arguments: str


class NotationError(ValueError):
    """The text is no call in this notation."""


def _find_tensors(value: Any) -> Iterator[TensorForm]:
    """Yield the tensors in a value, including those in lists."""
    if isinstance(value, TensorForm):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _find_tensors(element)


def replace_tensors(value: Any, change: Callable[[TensorForm], Any]) -> Any:
    """Replace each tensor by `change` of it, in the order of `Call.tensors`."""
    if isinstance(value, TensorForm):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(replace_tensors(element, change) for element in value)
    return value


# ---------------------------------------------------------------- reading


def read_calls(lines: Iterable[str]) -> Iterator[TracedCall]:
    """Yield the calls of a trace file. Lines that are neither an operator nor a call of it are skipped."""
    operation = ""
    for line in lines:
        if line.startswith("Operator: "):
            operation = line.removeprefix("Operator: ").strip().removeprefix("aten.")
            operation = LEGACY_NAMES.get(operation, operation)
        elif operation and (match := _LINE.match(line)):
            yield TracedCall(operation, int(match[1]), match[2].strip())


def parse_call(text: str) -> Call:
    """Parse the call that a text like `((T([8], f32), 1.0), {'alpha': 2})` stands for. Raises NotationError."""
    text = text.strip()
    try:
        value = _value_of(ast.parse(_DEVICE.sub(r"torch.device(\1)", text), mode="eval").body)
    except NotationError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotationError(f"not in the notation of traces: {text[:80]}") from error
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict)):
        raise NotationError(f"not a pair of arguments and keywords: {text[:80]}")
    args = value[0] if isinstance(value[0], tuple) else (value[0],)
    call = Call(args, value[1])
    offsets = _OFFSETS.search(text)
    return _with_offsets(call, _numbers(offsets[1])) if offsets else call


def _with_offsets(call: Call, offsets: Sequence[int]) -> Call:
    """Return the call with the offsets of its tensors. Raises NotationError where their number differs."""
    if len(offsets) != len(call.tensors()):
        raise NotationError("the comment speaks of another number of tensors")
    left = iter(offsets)

    def place(form: TensorForm) -> TensorForm:
        return replace(form, offset=next(left))

    return Call(
        replace_tensors(call.args, place),
        {name: replace_tensors(value, place) for name, value in call.kwargs.items()},
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Parse whole numbers between commas. Raises NotationError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdigit() and len(part) < 20 for part in parts):
        raise NotationError(f"not a list of whole numbers of at most 64 bits: {text[:80]}")
    return tuple(int(part) for part in parts)


def _value_of(node: ast.expr) -> Any:
    """Return the value of a literal, tensor or symbol. Raises NotationError for anything else."""
    match node:
        case ast.Constant(value=str() as text) if text in DTYPES:
            return Symbol("dtype", DTYPES[text])
        case ast.Constant(value=int() as number) if number >= _INTEGER_LIMIT:
            raise NotationError("a whole number of more than 64 bits")
        case ast.Constant(value=None | bool() | int() | float() | complex() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _value_of(operand)
            if isinstance(value, (int, float, complex)):
                return -value
        case ast.Tuple(elts=elements):
            return tuple(_value_of(each) for each in elements)
        case ast.List(elts=elements):
            return [_value_of(each) for each in elements]
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {
                str(key.value): _value_of(value)
                for key, value in zip(keys, values, strict=True)
                if isinstance(key, ast.Constant)
            }
        case ast.Name(id="inf"):
            return math.inf
        case ast.Name(id="nan"):
            return math.nan
        case ast.Name(id=name) if name in DTYPES:
            return Symbol("dtype", DTYPES[name])
        case ast.Attribute(value=ast.Name(id="th" | "torch"), attr=name):
            layout = "memory_format" if name.endswith("_format") else "layout"
            return Symbol("dtype" if name in SHORT_DTYPES else layout, name)
        case ast.Call(func=ast.Name(id="T"), args=args, keywords=keywords):
            return _tensor_form(
                [_value_of(each) for each in args], {each.arg: _value_of(each.value) for each in keywords}
            )
        case ast.Call(func=ast.Attribute(value=ast.Name(id="th" | "torch"), attr="device"), args=[name]):
            return Symbol("device", str(_value_of(name)))
    raise NotationError(f"neither a literal nor a tensor: {ast.unparse(node)[:80]}")


def _tensor_form(args: list[Any], keywords: dict[str | None, Any]) -> TensorForm:
    """Return the form that the arguments of `T(...)` describe. Raises NotationError."""
    stride = args[2] if len(args) > 2 else keywords.get("stride")
    match args:
        case [list() | tuple() as shape, Symbol(kind="dtype", name=dtype), *_] if all(
            isinstance(size, int) and size >= 0 for size in shape
        ):
            if stride is not None and not (
                isinstance(stride, (list, tuple)) and all(isinstance(step, int) for step in stride)
            ):
                raise NotationError(f"a stride is a list of whole numbers, not {stride!r:.80}")
            if stride is not None and len(stride) != len(shape):
                raise NotationError(f"a stride of {len(stride)} dimensions for {len(shape)}")
            return TensorForm(tuple(shape), dtype, None if stride is None else tuple(stride))
    raise NotationError(f"not a tensor: {args!r:.80}")


# ---------------------------------------------------------------- writing


def format_call(call: Call) -> str:
    """Format the call in the notation, on one line."""
    args = "".join(f"{_format(value)}, " for value in call.args)
    keywords = ", ".join(f"{name!r}: {_format(value)}" for name, value in call.kwargs.items())
    trailing = args.strip() if len(call.args) == 1 else args.removesuffix(", ")
    offsets = [form.offset for form in call.tensors()]
    return f"(({trailing}), {{{keywords}}}){f'  # offsets {offsets}' if any(offsets) else ''}"


def _format(value: Any) -> str:
    """Format a value in the notation."""
    match value:
        case TensorForm(shape=shape, dtype=dtype, stride=stride):
            strides = "" if stride is None else f", stride={stride}"
            return f"T({list(shape)}, {SHORT_DTYPES[dtype]}{strides})"
        case Symbol(kind="dtype", name=name):
            return SHORT_DTYPES.get(name, f"torch.{name}")
        case Symbol(kind="device", name=name):
            return f"torch.device({name!r})"
        case Symbol(name=name):
            return f"torch.{name}"
        case list():
            return f"[{', '.join(_format(each) for each in value)}]"
        case tuple():
            return f"({', '.join(_format(each) for each in value)}{',' if len(value) == 1 else ''})"
    return repr(value)


MAX_BYTES = 1_000_000_000  # of a trace file
MAX_UNPACKED = 16 << 20  # bytes of a compressed one; that of 155 models has 2 MB


def read_traces(path: Path) -> list[TracedCall]:
    """Read the calls of a trace file, which may be compressed, or of all `*.txt` below a folder; each call once.

    Raises UsageError where no call can be read.
    """
    counts = Counter[tuple[str, str]]()
    for file in sorted(path.rglob("*.txt")) if path.is_dir() else [path]:
        for call in _read_file(file):
            counts[call.operation, call.arguments] += call.count
    if not counts:
        raise UsageError(
            f"{path} has no traced calls",
            "a line `Operator: aten.relu.default`, then lines `cnt: 1, ((T([8], f32),), {})`",
        )
    return [TracedCall(operation, count, text) for (operation, text), count in counts.items()]


def _read_file(file: Path) -> Iterator[TracedCall]:
    """Yield the calls of one file. Raises UsageError where it cannot be read."""
    try:
        content = read_bounded(file, MAX_BYTES)
        if content[:2] == b"\x1f\x8b":  # one of ours: its calls are written as here
            unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, MAX_UNPACKED)
            yield from read_calls(unpacked.decode().splitlines())
        else:
            yield from map(_normalized, read_calls(content.decode().splitlines()))
    except (OSError, UnicodeDecodeError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{file} cannot be read as a trace: {reason}", "--traces PATH") from error


def _normalized(call: TracedCall) -> TracedCall:
    """Return the call as this module writes it, so that equal calls have equal texts; other text as it is."""
    try:
        return replace(call, arguments=format_call(parse_call(call.arguments)))
    except NotationError:
        return call


def write_trace(calls: Iterable[TracedCall]) -> str:
    """Format a trace file of the calls: by operation, the most called first."""
    lines = []
    operation = ""
    for call in sorted(calls, key=lambda call: (call.operation, -call.count, call.arguments)):
        if call.operation != operation:
            operation = call.operation
            # One of another library than aten has that one's name before its own.
            lines.append(f"Operator: {operation if operation.count('.') > 1 else f'aten.{operation}'}")
        lines.append(f"cnt: {call.count}, {call.arguments}")
    return "\n".join(lines) + "\n"


def record_operations(command: Sequence[str], out: Path, tick: Callable[[float], None] | None = None) -> int:
    """Run the command, write the trace of all its Python processes to `out`, and return the number of calls.

    Raises UsageError where the command starts no Python that can be followed, or calls no operation, and
    WorkloadError where it fails.
    """
    with TemporaryFolder("calls") as folder:
        environment, reason = start_up_environment(command, "operation-calls", Path(folder))
        if environment is None:
            why = fact_text(Fact.of(reason or "no-command", program=command[0]))
            raise UsageError(f"the program's operations cannot be seen: {why}", "-- python train.py")
        # The user's program, and its first run: it is not known how long it takes.
        outcome = run(command, env=environment, timeout=None, tick=tick)
        if not outcome.ok:
            last = next(reversed(outcome.output_tail.strip().splitlines()), "")
            raise WorkloadError(f"the program {outcome.ending()}{f': {last[:200]}' if last else ''}")
        if not any(Path(folder).iterdir()):
            raise UsageError("the program called no operation of PyTorch", "-- python train.py")
        calls = read_traces(Path(folder))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, [write_trace(calls)])
        return sum(call.count for call in calls)

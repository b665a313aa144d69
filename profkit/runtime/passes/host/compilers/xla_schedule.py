"""What a program of XLA launches, in the order of its schedule, by the text of its module.

XLA runs a program of several kernels as a CUDA graph: a trace has one instruction for all of them. The schedule shows
which one each is: a fusion's kernel has its name (or that of another fusion that computes the same), what a library
launches lies between two of these. From types and shapes follows the least that each needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from .xla_lines import ProgramLine, frame_lines, lines_in

MAX_INSTRUCTIONS = 6000  # of all modules; a module is reported whole or not at all
MAX_CHARACTERS = 24 << 20  # of all modules
MAX_DIMENSIONS, MAX_DIGITS = 16, 12  # any program may have any text
MAX_CALL_DEPTH = 8  # calls in calls
_LONGEST_OPERATION = 120  # characters
_SHOWN_NAMES = 3  # of a fusion
# Bytes of one number, and what reports call it.
_TYPES: Mapping[str, tuple[int, str]] = {
    "pred": (1, "bool"), "s8": (1, "int8"), "u8": (1, "uint8"), "s16": (2, "int16"), "u16": (2, "uint16"),
    "s32": (4, "int32"), "u32": (4, "uint32"), "s64": (8, "int64"), "u64": (8, "uint64"),
    "f8e4m3fn": (1, "fp8"), "f8e5m2": (1, "fp8"), "f8e4m3fnuz": (1, "fp8"), "f8e5m2fnuz": (1, "fp8"),
    "f16": (2, "fp16"), "bf16": (2, "bf16"), "f32": (4, "fp32"), "f64": (8, "fp64"),
    "c64": (8, "complex64"), "c128": (16, "complex128"),
}  # fmt: skip
_HEAD = re.compile(r"^ *(ROOT )?%([\w.-]+) = ")
_OPCODE = re.compile(r" ([a-z][\w-]*)\(")
_BRACKET = re.compile(r"[()]")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([^\]]*)\]")
_OPERAND = re.compile(r"%([\w.-]+)")
_OPENS = re.compile(r"^(ENTRY )?%([\w.-]+) \(")
_CALLED = re.compile(r"(?:calls|to_apply|body)=%([\w.-]+)")
_ATTRIBUTES = re.compile(r",? *(?:metadata|backend_config|frontend_attributes)=\{.*$")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*$")
_DEDUPLICATED = re.compile(r'deduplicated_name="([^"]*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d{1,9})"\}')
_DIMENSIONS = re.compile(r'"?((?:lhs|rhs)_(?:contracting|batch)_dim)(?:ension)?s"?[:=][\[{]([\d", ]*)[\]}]')
_BACKWARD = "transpose(jvp"
_PRODUCT = "dot_general"  # as JAX calls it
_PRODUCTS = frozenset({_PRODUCT, "conv_general_dilated"})
# A part of an operand is enough for these.
_PARTIAL = frozenset({"slice", "dynamic-slice", "gather", "dynamic-update-slice", "scatter"})
_COLLECTIVE = re.compile(
    r"(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?$"
)
_NO_KERNEL = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy", "copy-start", "copy-done", "after-all",
    "add-dependency", "opt-barrier", "partition-id", "replica-id", "domain", "all-reduce-done", "all-gather-done",
    "collective-permute-done", "async-done", "async-update",
})  # fmt: skip


class XlaArray(NamedTuple):
    """A type of XLA, and a shape."""

    type: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> float | None:
        """Return what it takes in memory; None of a type that is not known."""
        known = _TYPES.get(self.type)
        return float(known[0] * prod(self.shape)) if known is not None else None


@dataclass(frozen=True)
class XlaInstruction:
    """One line of a computation."""

    name: str
    type: str
    opcode: str
    operands: str  # as they are written
    rest: str  # attributes
    root: bool = False

    @property
    def arrays(self) -> list[XlaArray]:
        """Return the arrays of its result."""
        return arrays_of(self.type)

    @property
    def inputs(self) -> list[str]:
        """Return the names of its operands."""
        return _OPERAND.findall(self.operands)

    @property
    def operation(self) -> str:
        """Return how JAX calls what it is written for: `mul` of `jit(step)/transpose(jvp())/mul`."""
        found = _OP_NAME.search(self.rest)
        name = found[1].rpartition("/")[2] if found is not None else ""
        return name if _PLAIN_NAME.match(name) else ""

    @property
    def backward(self) -> bool:
        """Return whether it is a part of a backward pass."""
        found = _OP_NAME.search(self.rest)
        return found is not None and _BACKWARD in found[1]


Computation = dict[str, XlaInstruction]  # by name, in order


def arrays_of(text: str) -> list[XlaArray]:
    """Return the arrays of a type, in order, those of a tuple each; one whose size is not fixed has no type."""
    return [_array(type_, shape.split(",") if shape else []) for type_, shape in _ARRAY.findall(text)]


def _array(type_: str, sizes: Sequence[str]) -> XlaArray:
    if len(sizes) > MAX_DIMENSIONS or not all(size.isdecimal() and len(size) <= MAX_DIGITS for size in sizes):
        return XlaArray("", ())
    return XlaArray(type_, tuple(map(int, sizes)))


class ModuleText:
    """The computations of one module; each is read when it is needed."""

    def __init__(self, text: str) -> None:
        self._bodies: dict[str, list[str]] = {}
        self._read: dict[str, Computation] = {}
        self.entry = ""
        self.scheduled = "is_scheduled=true" in text[: text.find("\n")]
        body: list[str] | None = None
        for line in text.splitlines():
            opened = _OPENS.match(line) if body is None else None
            if opened is not None:
                body = self._bodies[opened[2]] = []
                self.entry = opened[2] if opened[1] else self.entry
            elif line.startswith("}"):
                body = None
            elif body is not None:
                body.append(line)

    def text_of(self, name: str) -> str:
        """Return a computation as it is written."""
        return "\n".join(self._bodies.get(name, ()))

    def computation(self, name: str) -> Computation:
        """Return the instructions of a computation, in order; empty if there is none of that name."""
        if name not in self._read:
            read = (_instruction(line) for line in self._bodies.get(name, ()))
            self._read[name] = {
                instruction.name: instruction for instruction in read if instruction is not None
            }
        return self._read[name]


def _instruction(line: str) -> XlaInstruction | None:
    head = _HEAD.match(line)
    if head is None:
        return None
    start = head.end()
    type_end = _closing(line, start) if line.startswith("(", start) else line.find(" ", start)
    found = _OPCODE.match(line, type_end) if type_end > 0 else None
    if found is None:
        return None
    end = _closing(line, found.end() - 1)
    if end < 0:
        return None
    operands, rest = line[found.end() : end - 1], line[end:]
    return XlaInstruction(head[2], line[start:type_end], found[1], operands, rest, head[1] is not None)


def _closing(line: str, start: int) -> int:
    """Return the place behind the bracket that closes the one at `start`; -1 where none does."""
    depth = 0
    for found in _BRACKET.finditer(line, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    return -1


# ------------------------------------------------------------ what is launched


@dataclass
class ScheduledLaunch:
    """One instruction that launches, as it is written into the file.

    `runs`: "xla" (a kernel of its name), "cublas", "nccl", or "?" if it is not known which and how many. `group`: the
    same number for all that compute the same: XLA compiles one of them, and all have its name in a trace. `loop`: which
    loop it is in, 0 in none, and how often that turns, 0 if it is not known.
    """

    kernel: str
    runs: str
    group: int = 0
    operation: str = ""
    backward: bool = False
    type: str = ""
    unit: str = ""
    flop: float | None = None
    bytes: float | None = None
    loop: int = 0
    times: int = 1
    instruction: XlaInstruction | None = None

    def row(self) -> list[object]:
        """Return what stands in the file: text and counts alone; what is not known is an empty text."""
        work = ("" if amount is None else amount for amount in (self.flop, self.bytes))
        columns = self.runs, self.group, self.operation, int(self.backward), self.type, self.unit, *work
        name = self.instruction.name if self.instruction is not None else ""
        return [self.kernel, *columns, self.loop, self.times, name]


@dataclass
class _Launches:
    """Gathers what a module launches."""

    text: ModuleText
    rows: list[ScheduledLaunch] = field(default_factory=list)
    loops: int = 0
    _groups: dict[object, int] = field(default_factory=dict)

    def take(self, name: str, *, loop: int = 0, times: int = 1, depth: int = 0) -> None:
        """Add what a computation launches."""
        body = self.text.computation(name)
        for instruction in body.values():
            if instruction.opcode in _NO_KERNEL or len(self.rows) > MAX_INSTRUCTIONS:
                continue
            called = _CALLED.search(instruction.rest)
            if instruction.opcode == "call" and called is not None and depth < MAX_CALL_DEPTH:
                self.take(called[1], loop=loop, times=times, depth=depth + 1)
                continue
            inner = re.search(r"body=%([\w.-]+)", instruction.rest) if instruction.opcode == "while" else None
            if inner is not None and not loop:
                trips = _TRIPS.search(instruction.rest)
                self.loops += 1
                self.take(inner[1], loop=self.loops, times=int(trips[1]) if trips else 0, depth=depth + 1)
                continue
            made = self._launch(instruction, body)
            made.loop, made.times, made.instruction = loop, times, instruction
            self.rows.append(made)

    def _launch(self, instruction: XlaInstruction, body: Computation) -> ScheduledLaunch:
        if instruction.opcode == "fusion":
            return self._fusion(instruction, body)
        target = _TARGET.search(instruction.rest) if instruction.opcode == "custom-call" else None
        if target is not None and target[1].startswith("__cublas"):
            return _library_product(instruction, body)
        if _COLLECTIVE.match(instruction.opcode):
            shown = [array for name in instruction.inputs if name in body for array in body[name].arrays]
            return ScheduledLaunch(
                "",
                "nccl",
                operation=_shown(instruction.operation or instruction.opcode, shown),
                backward=instruction.backward,
            )
        return ScheduledLaunch("", "?", operation=instruction.operation)

    def _fusion(self, instruction: XlaInstruction, body: Computation) -> ScheduledLaunch:
        called = re.search(r"calls=%([\w.-]+)", instruction.rest)
        inside = self.text.computation(called[1]) if called is not None else {}
        read = _read_arrays(instruction.inputs, body)
        made = ScheduledLaunch(
            re.sub(r"[.-]", "_", instruction.name), "xla", self._group(instruction, inside, read)
        )
        made.backward = instruction.backward
        products = [inner for inner in inside.values() if inner.opcode == "dot"]
        partial = any(inner.opcode in _PARTIAL for inner in inside.values())
        made.bytes = None if partial else _sum_of(read, instruction.arrays)
        if len(products) == 1:
            _add_product(made, products[0], inside)
            return made
        if products:
            made.bytes = None
            made.operation = _shown(_PRODUCT, instruction.arrays)
            return made
        # of what is only read in part no shape of a result tells how much
        largest = max(
            instruction.arrays if partial else (*read, *instruction.arrays),
            key=lambda array: prod(array.shape),
            default=None,
        )
        made.operation = _shown(_names_of(instruction, inside), [largest] if largest is not None else [])
        made.type = _TYPES.get(largest.type, (0, ""))[1] if largest is not None else ""
        made.unit = "memory" if made.bytes is not None else ""
        return made

    def _group(self, instruction: XlaInstruction, inside: Computation, read: Sequence[XlaArray]) -> int:
        """Return the number of all that compute the same."""
        numbers = {name: number for number, name in enumerate(inside)}
        alike = tuple(
            (
                inner.opcode,
                inner.type,
                tuple(numbers.get(name, -1) for name in inner.inputs) or inner.operands,
                _OPERAND.sub("%", _ATTRIBUTES.sub("", inner.rest)),
            )
            for inner in inside.values()
        )
        named = _DEDUPLICATED.search(instruction.rest)
        keys: list[object] = [(instruction.type, tuple(read), hash(alike))]
        keys += [named[1]] if named is not None else []
        number = next((self._groups[key] for key in keys if key in self._groups), len(self._groups) + 1)
        for key in keys:
            self._groups.setdefault(key, number)
        return number


def _read_arrays(names: Sequence[str], body: Computation) -> list[XlaArray]:
    """Return what is read, each array once, by whatever name it goes."""
    seen: dict[str, list[XlaArray]] = {}
    for name in names:
        origin, known = name, body.get(name)
        for _ in range(MAX_CALL_DEPTH):
            before = body.get(origin)
            if before is None or before.opcode != "bitcast" or not before.inputs:
                break
            origin = before.inputs[0]
        source = body.get(origin)
        if source is not None and source.opcode == "get-tuple-element":
            origin = f"{source.operands}{source.rest.partition('metadata')[0]}"
        seen.setdefault(origin, known.arrays if known is not None else [XlaArray("", ())])
    return [array for arrays in seen.values() for array in arrays]


def _sum_of(*parts: Sequence[XlaArray]) -> float | None:
    """Return the bytes of all arrays; None where one is of no known type."""
    sizes = [array.bytes for part in parts for array in part]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _names_of(instruction: XlaInstruction, inside: Computation) -> str:
    """Return how JAX calls what a fusion computes: of each result the operation that it is made by."""
    root = next((inner for inner in inside.values() if inner.root), None)
    made = (
        [inside.get(name) for name in root.inputs] if root is not None and root.opcode == "tuple" else [root]
    )
    names = [_name_before(inner, inside) for inner in made if inner is not None]
    names = [name for name in dict.fromkeys(names) if name] or [instruction.operation]
    return ", ".join(names[:_SHOWN_NAMES]) or instruction.opcode


def _name_before(instruction: XlaInstruction, inside: Computation) -> str:
    """Return an operation's name; of what only has another shape that of what it is a shape of.

    What is made for a product may have the product's name, and is none.
    """
    for _ in range(MAX_CALL_DEPTH):
        if instruction.operation and instruction.opcode != "bitcast":
            return instruction.operation if instruction.operation not in _PRODUCTS else instruction.opcode
        before = (
            inside.get(instruction.inputs[0])
            if instruction.opcode in ("bitcast", "copy", "convert") and instruction.inputs
            else None
        )
        if before is None:
            return "" if instruction.opcode in ("parameter", "bitcast") else instruction.opcode
        instruction = before
    return ""


def _shown(name: str, arrays: Sequence[XlaArray]) -> str:
    """Return `mul, tanh [4096,2048]`."""
    shapes = (f"[{','.join(map(str, array.shape))}]" for array in arrays[:2] if array.shape)
    return " x ".join([f"{name} {shape}" if not at else shape for at, shape in enumerate(shapes)] or [name])[
        :_LONGEST_OPERATION
    ]


# ------------------------------------------------------------ products


def _library_product(product: XlaInstruction, body: Computation) -> ScheduledLaunch:
    """Return a product of cuBLAS: its second result is memory that the library works in, and counts for nothing."""
    made = ScheduledLaunch("", "cublas", backward=product.backward, operation=_PRODUCT)
    results = product.arrays
    workspace = len(results) > 1 and results[-1].type in ("s8", "u8") and len(results[-1].shape) == 1
    made.bytes = _sum_of(_read_arrays(product.inputs, body), results[:-1] if workspace else results)
    _add_product(made, product, body)
    return made


def _add_product(made: ScheduledLaunch, product: XlaInstruction, body: Computation) -> None:
    """Add FLOP, type and shapes of a product of matrices, rows by columns; nothing where the text lacks them."""
    sides = [body[name].arrays for name in product.inputs[:2] if name in body]
    dimensions = {
        name: [int(n) for n in re.findall(r"\d+", numbers)]
        for name, numbers in _DIMENSIONS.findall(product.rest)
    }
    made.operation = _PRODUCT
    if len(sides) != 2 or any(len(side) != 1 for side in sides) or "lhs_contracting_dim" not in dimensions:
        made.bytes = None
        return
    parts = [_split(side[0], dimensions, name) for side, name in zip(sides, ("lhs", "rhs"), strict=True)]
    if None in parts:
        made.bytes = None
        return
    (batches, rows, inner), (_, columns, _) = (part for part in parts if part is not None)
    made.flop = 2.0 * batches * rows * columns * inner
    lead = f"{batches}," if batches > 1 else ""
    made.operation = f"{_PRODUCT} [{lead}{rows},{inner}] x [{lead}{inner},{columns}]"
    made.type, made.unit = _operand_type(sides[0][0], sides[1][0], product)


def _split(side: XlaArray, dimensions: Mapping[str, list[int]], name: str) -> tuple[int, int, int] | None:
    """Return how many batches, free and summed elements a side of a product has."""
    batch, inner = dimensions.get(f"{name}_batch_dim", []), dimensions.get(f"{name}_contracting_dim", [])
    if any(at >= len(side.shape) for at in (*batch, *inner)):
        return None
    free = [size for at, size in enumerate(side.shape) if at not in (*batch, *inner)]
    return prod(side.shape[at] for at in batch), prod(free), prod(side.shape[at] for at in inner)


def _operand_type(left: XlaArray, right: XlaArray, product: XlaInstruction) -> tuple[str, str]:
    """Return the type of a product's operands, and what it runs on.

    FP32 is rounded to TF32 unless the program requested more (jax.default_matmul_precision).
    """
    type_ = _TYPES.get(left.type, (0, ""))[1] if left.type == right.type else ""
    if type_ in ("fp16", "bf16", "fp8"):
        return type_, "tensor"
    exact = re.search(
        r"HIGHEST|HIGH\b|operand_precision=\{h|dot_(?:bf16|f32)|ALG_DOT_(?!TF32_TF32_F32\b)", product.rest
    )
    return ("tf32", "tensor") if type_ == "fp32" and exact is None else (type_, "fma" if type_ else "")


# ------------------------------------------------------------ all modules


def schedule_rows(modules: Sequence[tuple[str, str]], foreign: Callable[[str], bool]) -> list[list[object]]:
    """Return the rows of all modules (name, text) that have a schedule, whole ones alone; the longest texts first."""
    rows: list[list[object]] = []
    read = 0
    for number, (name, text) in sorted(enumerate(modules, 1), key=lambda item: -len(item[1][1])):
        if read + len(text) > MAX_CHARACTERS:
            continue
        read += len(text)
        found = schedule_of_module(text, foreign)
        if len(rows) + len(found) <= MAX_INSTRUCTIONS:
            rows += ([name, number, at, len(found), *row] for at, row in enumerate(found))
    return rows


def schedule_of_module(text: str, foreign: Callable[[str], bool]) -> list[list[object]]:
    """Return a row for each instruction that launches, in order: file, line, function, and what ScheduledLaunch has."""
    module = ModuleText(text)
    if not module.scheduled or not module.entry:
        return []
    launches = _Launches(module)
    launches.take(module.entry)
    line_of = frame_lines(text, foreign)
    return [[*_place(launch.instruction, module, line_of), *launch.row()] for launch in launches.rows]


def _place(
    instruction: XlaInstruction | None, module: ModuleText, line_of: Mapping[int, ProgramLine]
) -> ProgramLine:
    """Return the line of an instruction, or the one that most of what it calls is written at; else no file."""
    if instruction is None:
        return "", 0, ""
    lines = Counter(lines_in(instruction.rest, line_of))
    called = _CALLED.search(instruction.rest)
    if not lines and called is not None:
        lines = Counter(lines_in(module.text_of(called[1]), line_of))
    return lines.most_common(1)[0][0] if lines else ("", 0, "")

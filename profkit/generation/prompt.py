"""Build the prompt: the operation, the calls that will be tested, the device, the language, and the rules.

And extract the kernel from the answer: one code block of it, or what is wrong with the answer, as a sentence
for the model.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from profkit.core.formatting import format_quantity
from profkit.core.types import EvaluationTest, Fact, Gpu, Machine, MeasuredCeilings
from profkit.generation.model import ChatMessage
from profkit.kernels.evaluation.sources.names import SUFFIX, FileText, LoadError, parse_text, with_imports

SHOWN_TESTS = 12
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
# Models that think aloud mark it so; what they try there is no answer.
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
MAX_CHARACTERS = 100_000  # of a kernel: each prompt has it once more
_ALLOWED = "PyTorch may allocate and view tensors; the arithmetic is in your code."
LANGUAGES: Mapping[str, str] = {
    "triton": f"Write it in Triton: `@triton.jit` kernels that the function launches. {_ALLOWED}",
    "cuda": "Write it in CUDA C++, compiled by `torch.utils.cpp_extension.load_inline` when the file is loaded. "
    + _ALLOWED,
    "cpp": "Write it in C++ for this processor. Compile it when the file is loaded, in `tempfile.mkdtemp()`, with "
    f"`g++ -O3 -march=native -fopenmp -shared -fPIC`, and call it by ctypes. {_ALLOWED}",
    "pytorch": "Write it in Python with PyTorch's operations, without calling the operation itself.",
    "helion": f"Write it in Helion: `@helion.kernel()` functions with `hl.tile` loops. {_ALLOWED}",
    "any": "Write it in whatever is fastest here and needs nothing that is not installed.",
}
SYSTEM = """You write one kernel that replaces an operation of PyTorch: first correct for all arguments, then as fast
as the hardware allows. You answer with one Python file in one code block. What you are told of your kernels was
measured: take it as fact."""
RULES = """- Every call has new values in other memory, and results of timed calls are verified too. A result that is
  kept, guessed, or computed only when somebody looks fails as a cheat.
- A result may be wrong by what rounding in its dtype explains; less precision inside is wrong.
- Change no argument that the schema does not mark, and return no view of one unless PyTorch does.
- Do not change PyTorch, the process, files of others or the network. Compile when the file is loaded or first
  called: that is not timed.
- Write for all arguments of the schema. A rare case may be simple, but it must be right.

Answer with the whole file in one block that begins with ```python."""


@dataclass(frozen=True)
class KernelTask:
    """A kernel to be written. `schema` is PyTorch's own; the file must define `function`."""

    operation: str
    function: str
    language: str
    schema: str
    tests: tuple[EvaluationTest, ...]
    device: tuple[str, ...]  # facts, a line each


def first_messages(task: KernelTask) -> tuple[ChatMessage, ...]:
    """Return the beginning of the conversation on a task."""
    return ChatMessage("system", SYSTEM), ChatMessage("user", "\n".join(_describe(task)).strip() + "\n")


def device_facts(
    name: str,
    versions: Mapping[str, str],
    machine: Machine | None,
    gpu: Gpu | None,
    ceilings: Mapping[str, MeasuredCeilings],
) -> tuple[str, ...]:
    """Describe the device, a line each; `ceilings` are the measured peaks by dtype, "" for all others."""
    lines = [name]
    if gpu is not None:
        lines.append(
            f"compute capability {gpu.capability}, {gpu.multiprocessors} multiprocessors, "
            f"{format_quantity(float(gpu.l2_bytes or 0), 'B')} of L2, "
            f"{format_quantity(float(gpu.memory_bytes or 0), 'B')} of memory"
        )
    elif machine is not None:
        caches = (f"L{cache.level} {format_quantity(float(cache.size), 'B')}" for cache in machine.caches)
        wide = [
            feature for feature in ("avx512f", "avx2", "fma", "asimd", "sve") if feature in machine.features
        ]
        lines.append(", ".join((f"{machine.cores} cores", machine.architecture, *wide, *caches)))
    for dtype, peaks in ceilings.items():
        if peaks.bandwidth and peaks.flops:
            lines.append(
                f"measured peaks: {format_quantity(peaks.bandwidth, 'B/s')} of memory bandwidth, "
                f"{format_quantity(peaks.flops, 'FLOP/s')}{' in ' + dtype if dtype else ''}"
            )
    return (*lines, ", ".join(f"{package} {version}" for package, version in versions.items()))


def _describe(task: KernelTask) -> Iterator[str]:
    yield f"Write a kernel for `torch.ops.aten.{task.operation}`."
    yield from ("", "```", task.schema, "```", "")
    yield f"The file defines `{task.function}`. It is called with exactly the arguments of this schema, by position"
    yield "and by keyword, and returns what PyTorch returns: values, shape, dtype, strides and device."
    yield from ("", "## Calls that are tested", "")
    yield "`T(shape, dtype, stride)` is a tensor, contiguous where no stride stands. Values are random."
    yield ""
    yield from _test_lines(task.tests)
    yield from ("", "## Device", "")
    yield from (f"- {fact}" for fact in task.device)
    yield from ("", "## Language", "")
    yield LANGUAGES[task.language]
    yield from ("", "## Rules", "", RULES)


def _test_lines(tests: Sequence[EvaluationTest]) -> Iterator[str]:
    """Yield the tests: timed ones first, then others spread evenly, so that every kind of argument is shown."""
    timed = [test for test in tests if test.timed]
    untimed = [test for test in tests if not test.timed]
    step = max(1, -(-len(untimed) // max(1, SHOWN_TESTS - min(len(timed), SHOWN_TESTS // 2))))
    shown = timed[: SHOWN_TESTS // 2] if untimed else timed[:SHOWN_TESTS]
    shown = [*shown, *untimed[::step]][:SHOWN_TESTS]
    for test in shown:
        note = f", {test.calls:,} times in a traced program" if test.calls else ""
        yield f"- `{test.arguments}`{' (timed' + note + ')' if test.timed else note.removeprefix(',')}"
    if len(tests) > len(shown):
        yield f"- and {len(tests) - len(shown)} more like these"


# ---------------------------------------------------------------- what it answers


@dataclass(frozen=True)
class FoundCode:
    """The code of an answer. `problem`: what is wrong, for the model; `fault`: why there is nothing to be tested.

    A `load-error` has its code, so that its line can be shown.
    """

    code: str = ""
    problem: Fact | None = None
    fault: Literal["", "no-code", "no-answer", "load-error"] = ""


class _Block(NamedTuple):
    text: str
    closed: bool


def find_code(answer: str, function: str, file: str, *, cut: bool = False) -> FoundCode:
    """Extract the one text in `answer` that defines `function`; `file` is its name in error messages.

    `cut`: the model stopped at its limit of tokens.
    """
    answer = _THOUGHTS.sub("", answer.replace("\r\n", "\n").replace("\r", "\n"))
    blocks = _split_blocks(answer)
    if blocks and not blocks[-1].closed and (cut or not _defines(blocks[-1].text, function)):
        return _no_code(Fact("answer-without-end"))
    if not blocks:
        if _defines(answer, function):  # an answer that is a file
            return _checked(answer, function, file)
        return _no_code(Fact("answer-cut-off" if cut else "answer-without-code"))
    defining = [block.text for block in blocks if _defines(block.text, function)]
    naming = [block.text for block in blocks if function in block.text]
    if not defining and not naming:
        return _no_code(Fact.of("answer-without-function", blocks=len(blocks), name=function))
    return _checked((defining or naming)[-1], function, file)


def _split_blocks(answer: str) -> list[_Block]:
    """Return the fenced blocks in order. One that is never closed ends with the answer."""
    blocks: list[_Block] = []
    fence, lines = "", list[str]()
    for line in answer.split("\n"):
        match = _FENCE.match(line)
        if not fence and match:
            fence, lines = match[1], []
        elif fence and match and match[1].startswith(fence) and not match[2].strip():
            blocks.append(_Block(_dedented(lines), True))
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        blocks.append(_Block(_dedented(lines), False))
    return blocks


def _dedented(lines: list[str]) -> str:
    """Remove the indentation of a block, such as that of a list item."""
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def _defines(text: str, function: str) -> bool:
    try:
        return parse_text(text[:MAX_CHARACTERS], "answer").kernel_of(_stem(function)) is not None
    except LoadError:
        return False


def _checked(code: str, function: str, file: str) -> FoundCode:
    """Return the code with its missing imports added, or with what keeps it from being loaded."""
    if len(code) > MAX_CHARACTERS:
        return _no_code(Fact.of("file-too-long", length=len(code), most=MAX_CHARACTERS))
    try:
        parsed: FileText = parse_text(code, file)
    except LoadError as error:
        return FoundCode(code, Fact.message(f"{error}."), "load-error")
    if parsed.kernel_of(_stem(function)) is None:
        there = ", ".join(f"`{name}`" for name in sorted(parsed.functions)) or "no function"
        return FoundCode(code, Fact.of("file-without-function", name=function, names=there), "load-error")
    return FoundCode(with_imports(code))


def _stem(function: str) -> str:
    return function.removesuffix(SUFFIX)


def _no_code(problem: Fact) -> FoundCode:
    return FoundCode("", problem, "no-code")

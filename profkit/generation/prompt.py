"""What a model is asked: the operation, the calls that will be tested, the device, the language, and the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from profkit.core.formatting import format_quantity
from profkit.core.types import EvaluationTest, Gpu, Machine, MeasuredCeilings
from profkit.generation.model import Message

SHOWN_TESTS = 12
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
    """What is to be written. `schema`, `documentation` and `decomposition` are PyTorch's own; `function` is the name
    that the file must define."""

    operation: str
    function: str
    language: str
    schema: str
    tests: tuple[EvaluationTest, ...]
    device: tuple[str, ...]  # facts, a line each
    documentation: str = ""
    decomposition: str = ""


def first_messages(task: KernelTask) -> tuple[Message, ...]:
    """The beginning of the conversation on a task."""
    return Message("system", SYSTEM), Message("user", "\n".join(_describe(task)).strip() + "\n")


def device_facts(
    name: str,
    versions: Mapping[str, str],
    machine: Machine | None,
    gpu: Gpu | None,
    ceilings: Mapping[str, MeasuredCeilings],
) -> tuple[str, ...]:
    """What is known of the device, a line each; `ceilings` are the measured peaks by dtype, "" for all others."""
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
    if task.documentation:
        yield from (
            "",
            "PyTorch's documentation of it:",
            "",
            *(f"> {line}" for line in task.documentation.split("\n")),
        )
    if task.decomposition:
        yield from (
            "",
            "PyTorch's own reference code of it:",
            "",
            "```python",
            task.decomposition.rstrip(),
            "```",
        )
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
    """The timed ones first, then those that differ most in length: every kind of argument is seen."""
    timed = [test for test in tests if test.timed]
    others = [test for test in tests if not test.timed]
    step = max(1, -(-len(others) // max(1, SHOWN_TESTS - min(len(timed), SHOWN_TESTS // 2))))
    shown = timed[: SHOWN_TESTS // 2] if others else timed[:SHOWN_TESTS]
    shown = [*shown, *others[::step]][:SHOWN_TESTS]
    for test in shown:
        note = f", {test.calls:,} times in a traced program" if test.calls else ""
        yield f"- `{test.arguments}`{' (timed' + note + ')' if test.timed else note.removeprefix(',')}"
    if len(tests) > len(shown):
        yield f"- and {len(tests) - len(shown)} more like these"

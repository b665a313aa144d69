"""Whole arrays that are copied within the device in each step: what each framework is told, and at which line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.core.types import (
    CodeLine,
    CodeSpot,
    GpuLine,
    GpuTrace,
    Hotspot,
    Insight,
    Kernel,
    KernelTime,
    LineCode,
    LineSamples,
    Place,
    Profile,
    RunDocument,
    SampledTime,
    Transfer,
    Variable,
)
from tests import gpu_documents

XLA = "loop_dynamic_update_slice_fusion"
ATEN = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
STEPS, EACH = 1819, 1_629_487_104  # bytes in a step: of two arrays of 0.8 GB, and two small ones
# What JAX's text of the program says that it copies: line, argument and bytes.
ARGUMENTS = (
    (46, "memory", 805_306_368),
    (47, "memory", 805_306_368),
    (48, "memory", 16_777_216),
    (49, "memory", 2_097_152),
)
AFTER = "params, loss, key = learn(params, memory, key)"  # where the host waits for the queue of launches


def copying(
    kernel: str, text: str = AFTER, arguments: tuple[tuple[int, str, int], ...] = ARGUMENTS, each: int = EACH
) -> RunDocument:
    """The trace of quad_replay on an H200: 10 copies in a step, 81 % of it. Its host is most in line 100."""
    once = KernelTime(Kernel(kernel, (256, 1, 1), (128, 1, 1)), STEPS, 0.2)
    trace = GpuTrace(
        "jax_profiler", (once,), span=1.75, busy=1.68, launches=STEPS, repeats=STEPS, copying=1.42, starved=0.1,
        transfers=(Transfer("device to device", 10 * STEPS, STEPS * each, 1.42),),
    )  # fmt: skip
    code = LineCode(text, 93)
    place = Place(function="main", file="/app/quad_replay.py", line=100)
    spot = CodeSpot(0.4, 7.0, "library", place, code=code)
    seen = LineSamples("main", place.file or "", 100, 7.0, 7.0, code=code)
    spots = tuple(
        Hotspot("remember", size, None, 1, place.file, line, f"jit_remember {name}")
        for line, name, size in arguments
    )
    copied = Profile("arguments that XLA copies", "B", float(EACH), spots, "copied-arguments")
    return replace(
        gpu_documents.report(trace=trace, sampled=(SampledTime(16.0, 16.0, lines=(seen,)),)),
        hot_spots=(spot,),
        profiles=(copied,) if spots else (),
    )


def told(document: RunDocument) -> Insight:
    (found,) = (one for one in find_insights(document) if one.rule == "device-copies")
    return found


def test_what_a_jitted_function_copies_of_its_arguments_is_to_be_donated_to_it() -> None:
    found = told(copying(XLA))
    assert found.title == "Donate what jax.jit(remember) changes: it copies all of it in each call"
    assert "remember copies 1.52 GiB of its argument memory in each call" in found.evidence
    assert 'jax.jit, donate_argnames="memory"' in found.change
    assert (found.where.function, found.where.line) == ("remember", 46)
    assert found.gain is not None
    assert round(found.gain.at_most, 2) == 0.81


@pytest.mark.parametrize(
    ("arguments", "each"),
    [
        ((), EACH),  # what the program copies is not known
        (((46, "memory", 1 << 20),), EACH),  # it is little of what is copied
        (ARGUMENTS, EACH // 3),  # it did not run in each step
    ],
)
def test_copies_of_jax_that_no_argument_explains_have_no_line_and_speak_of_donation(
    arguments: tuple[tuple[int, str, int], ...], each: int
) -> None:
    found = told(copying(XLA, arguments=arguments, each=each))
    assert found.where == Place()
    assert "donate_argnums" in found.change
    assert "contiguous" not in found.change
    assert "jax.jit(" in found.change


def test_two_calls_in_a_step_copy_twice_as_much() -> None:
    assert "jax.jit(remember)" in told(copying(XLA, each=2 * EACH)).title


def test_a_program_of_jax_that_copies_nothing_in_its_steps_has_no_such_finding() -> None:
    document = copying(XLA)
    assert document.trace is not None
    quiet = replace(document.trace, transfers=(), copying=0.0)  # with donation, as the program was mended
    assert [one for one in find_insights(replace(document, trace=quiet)) if one.rule == "device-copies"] == []


def test_an_update_outside_of_jit_keeps_its_line() -> None:
    found = told(copying(XLA, "history = history.at[step].set(x)", ()))
    assert found.where.line == 100
    assert "outside of jax.jit" in found.change


@pytest.mark.parametrize(
    ("kernel", "text", "words", "line"),
    [
        (ATEN, "x = x.clone()", ".contiguous()", 100),
        ("cupy_add__float32_float32_float32", "kept = cp.ascontiguousarray(x.T)", "ascontiguousarray", 100),
        ("cupy_add__float32_float32_float32", "y = step(x)", "ascontiguousarray", None),  # it may be of another line
    ],
)  # fmt: skip
def test_each_library_is_told_in_its_own_words(kernel: str, text: str, words: str, line: int | None) -> None:
    found = told(copying(kernel, text, ()))
    assert words in found.change
    assert found.where.line == line
    assert ("torch" in found.change, "jax" in found.change) == (False, False)


def test_a_compiled_program_is_told_of_its_buffers() -> None:
    document = replace(copying("step", "", ()), hot_spots=(), sampled=())
    workload = replace(document.workload, command=("./replay",), python=None)
    found = told(replace(document, workload=workload))
    assert "cudaMemcpyDeviceToDevice" in found.change
    assert "contiguous" not in found.change


# ------------------------------------------------------------ small pieces that a library copies

TUNES = "/app/tune_writer.py"
LIBRARY = "/venv/site-packages/transformers/generation/logits_process.py"


def constrained(caller: str = LIBRARY, each: int = 32, more: int = 0) -> RunDocument:
    """The trace of tune_writer on an H200: 194 copies in each of 43 steps, at the line that calls `generate`.

    Its prefix_allowed_tokens_fn asks for one number of each of 32 sequences. `more`: calls of torch in another line.
    """
    kernel = KernelTime(Kernel(ATEN, (64, 1, 1), (128, 1, 1)), 52_896, 0.14)
    sent = (Transfer("host to device", 43 * 194, 43 * 194 * 14_541, 0.02),)
    lines = (
        GpuLine(TUNES, 54, "write_tunes", 43 * 1900, 2.2, 50_000, transfers=sent),
        GpuLine(TUNES, 49, "TuneGrammar.next_tokens", 43 * each, 0.2, 0, waits=43 * each),
        *((GpuLine(TUNES, 50, "TuneGrammar.next_tokens", 43 * more, 0.1, 0),) if more else ()),
    )
    trace = GpuTrace(
        "nsys", (kernel,), span=3.75, busy=0.15, launches=52_896, repeats=43, starved=0.95, lines=lines,
        line_span=3.75, lines_of=3.75, transfers=sent,
    )  # fmt: skip
    below = (
        CodeLine(
            "GenerationMixin.generate", "/venv/site-packages/transformers/generation/utils.py", 2200, 3.4
        ),
        CodeLine("PrefixConstrainedLogitsProcessor.__call__", LIBRARY, 1390, 3.0),
        CodeLine("Module._call_impl", "/venv/site-packages/torch/nn/modules/module.py", 1780, 0.5),
    )
    calls = CodeLine("PrefixConstrainedLogitsProcessor.__call__", LIBRARY, 1394, 0.6)
    if caller != LIBRARY:
        calls = replace(calls, function="Module._call_impl", file=caller)
    seen = (
        LineSamples("write_tunes", TUNES, 54, 3.5, 3.4, below=below),
        LineSamples("TuneGrammar.next_tokens", TUNES, 49, 0.6, 0.6, callers=(calls,)),
    )
    return gpu_documents.report(trace=trace, sampled=(SampledTime(15.6, 15.6, lines=seen),))


def small(document: RunDocument) -> Insight:
    (found,) = (one for one in find_insights(document) if one.rule == "small-copies")
    return found


def test_the_function_that_a_library_calls_for_each_item_is_named_where_the_library_copies() -> None:
    found = small(constrained())
    assert found.title == "Copy to the GPU once instead of 194 times in each step"
    assert found.where.line == 54
    assert (
        "a library calls TuneGrammar.next_tokens (tune_writer.py:49) 32 times in each step" in found.evidence
    )
    assert "what TuneGrammar.next_tokens does for one item" in found.change


@pytest.mark.parametrize(
    "document",
    [
        constrained("/venv/site-packages/torch/nn/modules/module.py"),  # a model's forward, which torch calls
        constrained("/app/other.py"),  # a function of the program itself
        constrained(each=1),  # once in each step, as a training step is
        constrained(more=1),  # called once, with many calls of torch in one line
    ],
)
def test_what_is_not_called_for_each_item_is_not_named(document: RunDocument) -> None:
    found = small(document)
    assert "calls TuneGrammar" not in found.evidence
    assert found.change.startswith("Combine them into one array on the host")


# ------------------------------------------------------------ one array that is copied in each step

INDEX = "/app/passage_search.py"
TABLE = 153_600_000  # elements of two bytes
SAME: dict[str, Variable] = {
    "queries": Variable("torch.Tensor", 131_072),
    "self.vectors": Variable("torch.Tensor", TABLE),
    "self.vectors [same]": Variable("ms", 2_700),
}


def searching(
    text: str = "table = self.vectors.to(self.device)",
    variables: dict[str, Variable] = SAME,
    size: int = 2 * TABLE,
) -> Insight:
    """The trace of passage_search on an H200: a table of 293 MiB is copied in each of 69 steps of 47 ms."""
    kernel = KernelTime(Kernel(ATEN, (64, 1, 1), (128, 1, 1)), 2_829, 0.2)
    sent = (Transfer("host to device", 69, 69 * size, 3.03, (Transfer("pageable", 69, 69 * size, 3.03),)),)
    trace = GpuTrace(
        "nsys", (kernel,), span=3.27, busy=3.23, launches=2_829, repeats=69, copying=3.03, transfers=sent,
        lines=(GpuLine(INDEX, 31, "FlatIndex.search", 69, 3.0, 0, transfers=sent),), line_span=3.27, lines_of=3.27,
    )  # fmt: skip
    seen = LineSamples("FlatIndex.search", INDEX, 31, 2.9, 2.9, code=LineCode(text), variables=variables)
    document = gpu_documents.report(trace=trace, sampled=(SampledTime(9.9, 9.9, lines=(seen,)),))
    (found,) = (one for one in find_insights(document) if one.rule == "exposed-copies")
    return found


@pytest.mark.parametrize(
    "text",
    [
        "table = self.vectors.to(self.device)",
        "table = self.vectors.cuda()",
        "table = torch.as_tensor(self.vectors, device=self.device)",
        "table = jax.device_put(self.vectors)",
    ],
)
def test_an_array_that_stays_the_same_is_to_be_copied_once(text: str) -> None:
    found = searching(text)
    assert found.title == "Copy self.vectors to the GPU once, before the loop"
    assert "this line copies 69 times, once in each step, 293 MiB each" in found.evidence
    assert "Copy it where it is made" in found.change
    assert found.where.line == 31


@pytest.mark.parametrize(
    "found",
    [
        # A batch that is another in each step, and one that the sampler met in a single step.
        searching(variables={name: held for name, held in SAME.items() if "[same]" not in name}),
        searching(variables={**SAME, "self.vectors [same]": Variable("ms", 45)}),
        searching("table = self.load(queries).to(self.device)"),  # of which the table is no part
        searching("table = self.vectors[rows].to(self.device)"),  # other rows each time
        searching("x = queries.to(self.device)"),
        searching(size=TABLE // 3),  # something else was copied
    ],
)
def test_a_batch_that_differs_in_each_step_is_not_to_be_copied_once(found: Insight) -> None:
    assert found.title == "Pin the host memory, and move less data to the device"


# ------------------------------------------------------------ what autograd joins, and what a loop calls

CAT = "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<2>, 4>(T1 *)"


@pytest.mark.parametrize(
    ("operation", "backward_of", "told"),
    [
        ("aten::cat [48,16,512,64], [48,16,512,64]", None, True),
        ("aten::cat [48,16,512,64], [48,16,512,64]", "aten::unbind [3,48,16,512,64]", False),
        ("aten::copy_ [48,512,3,16,64], [48,512,3,16,64]", "aten::view [48,512,3072]", True),
    ],
)
def test_gradients_that_autograd_joins_are_nobodys_array_to_write_into(
    operation: str, backward_of: str | None, told: bool
) -> None:
    """A training step on an H200 whose attention takes its queries, keys and values from one tensor."""
    lines = (GpuLine("/app/lm.py", 21, "forward", launches=320),)
    joined = KernelTime(
        Kernel(CAT, (1024, 3, 1), (128, 1, 1)), 320, 0.25, operation=operation, operation_launches=320, operations=1,
        file="/app/lm.py", line=21, function="forward", lines=lines, backward_of=backward_of,
    )  # fmt: skip
    product = KernelTime(Kernel("nvjet_sm90_hsh", (132, 1, 1), (128, 1, 1)), 320, 1.5)
    trace = GpuTrace(
        "nsys",
        (product, joined),
        span=1.8,
        busy=1.75,
        launches=640,
        repeats=40,
        lines=lines,
        line_span=1.8,
        lines_of=1.8,
    )
    found = {one.rule for one in find_insights(gpu_documents.report(trace=trace))}
    assert ("device-copies" in found) is told


BANDS = "/app/radar_bands.py"


def launching(loop: float) -> Insight:
    """The trace of radar_bands on an H200, of CuPy: a loop calls `process`, and a sum stands behind it."""
    kernel = KernelTime(Kernel("cupy_multiply__x", (64, 1, 1), (128, 1, 1)), 33_600, 0.11)
    trace = GpuTrace("nsys", (kernel,), span=0.65, busy=0.11, launches=33_600, repeats=160, starved=0.87)
    call = CodeLine("main", BANDS, 79, loop)
    sums = "level = sum(float(d.power.mean()) for d in dwells)"
    text = "spectrum = cp.fft.fft2(dwell.echo * dwell.taper)"
    seen = (
        LineSamples("process", BANDS, 53, 0.39, 0.39, callers=(call,), within=(call,), code=LineCode(text)),
        LineSamples("main", BANDS, 83, 0.04, 0.04, code=LineCode(sums, 83)),
    )
    outer = (LineSamples("main", BANDS, 79, loop, loop, code=LineCode("process(dwell, gain)", 78)),)
    spots = tuple(
        CodeSpot(line.main_wall, line.main_wall, "library", Place(function=line.function, file=BANDS, line=line.line),
                 code=line.code)
        for line in seen
    )  # fmt: skip
    document = gpu_documents.report(trace=trace, sampled=(SampledTime(1.5, 1.5, lines=seen, outer=outer),))
    (found,) = (
        one for one in find_insights(replace(document, hot_spots=spots)) if one.rule == "late-launches"
    )
    return found


def test_a_place_in_a_function_that_the_loop_of_the_steps_calls_is_in_that_loop() -> None:
    assert launching(0.7).where.line == 53
    # A loop that is too short for the steps; and a line behind them, which is in a loop of its own.
    assert launching(0.1).where.line is None

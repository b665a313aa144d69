"""Sentences about traces of a GPU."""

from __future__ import annotations

from profkit.core.formatting import format_quantity
from profkit.reporting.sentences.formats import after_colon, count_of, times_text
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames

SENTENCES = SentenceTable(
    {
        "no-grids": "this report lacks grids and blocks; nsys stats --report cuda_gpu_kern_gb_sum has them",
        "no-kernel-recorded": (
            "no kernel was recorded: none was launched, or the workload was killed, or ended by "
            "os._exit, before nsys could write its data"
        ),
        "whole-trace": (
            "no region is marked and no loop takes most of the time: the whole trace is analysed, "
            "including set-up"
        ),
        "trace-cut-short": (
            "the trace is cut off, as if its process was killed; everything before that is used"
        ),
        "trace-repaired": (
            "the tool wrote invalid JSON (unescaped names, inf as a number), which was repaired"
        ),
        "more-behind-the-trace": (
            "the file contains more data after the end of the trace, perhaps a second trace, which was "
            "not read"
        ),
        "kernels-of-graphs": "CUDA graphs: each of their kernels is traced and counted separately",
        "counted-without-graphs": (
            "while kernels are counted, XLA launches them one by one "
            "(XLA_FLAGS=--xla_gpu_enable_command_buffer=), because programs that XLA runs as CUDA graphs "
            "fail under ncu"
        ),
        "kernels-chosen": "the counters pass counts the kernels of this trace",
        "trace-of-no-kernel-of-jax": "the trace contains no kernel of the program",
        "nsys-tells-launchers": "nsys records which operation and line launched each kernel",
        "torch-compiles": (
            "torch.compile (or torch.export) is used: recording calls would keep it from compiling"
        ),
        "torch-profiles": "the program uses a profiler of torch, which allows no other",
        "cuda-of-another-thread": "CUDA was initialised in another thread than the main one",
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        "trace-of-no-kernel": (
            "the trace contains no kernel: the device was not traced, or did no work (fix: {fix})"
        ),
        "trace-of-another-device": (
            "this is the trace of {device}: its times are shown, but counters from ncu and advice about "
            "CUDA apply to NVIDIA GPUs only"
        ),
        "torch-profiler-not-usable": "torch's profiler cannot be used: {name}",
        "no-launchers": "which operation launched a kernel: {said}",
    },
)


@SENTENCES.add("first-ranges")
def first_ranges(count: float) -> str:
    return f"only the first {count:.0f} NVTX ranges were analysed"


@SENTENCES.add("first-operations")
def first_operations(count: float) -> str:
    return (
        f"only the first {count:.0f} operations and ranges of the trace were read: a launch after them "
        "is counted by its kernel alone, without its line and operation"
    )


@SENTENCES.add("late-calls-left-out")
def late_calls_left_out(count: float) -> str:
    return (
        f"the last {count_of(count, 'call or range was', 'calls and ranges were')} left out: the "
        "trace has more than profkit reads"
    )


@SENTENCES.add("backward-rows")
def backward_rows(count: float) -> str:
    return f"{count_of(count, 'row was', 'rows were')} left out: they end before they begin"


@SENTENCES.add("graphs-as-wholes")
def graphs_as_wholes(count: float, fix: str) -> str:
    launches = count_of(count, "launch of a CUDA graph was", "launches of CUDA graphs were")
    return f"{launches} traced as a whole, so the trace lacks the graph's kernels (fix: {fix})"


@SENTENCES.add("launched-not-recorded")
def launched_not_recorded(count: float) -> str:
    return (
        f"the host launched {count_of(count, 'kernel')}, but none was recorded: the workload was "
        "killed, or ended by os._exit, before nsys could write its data; or nsys cannot trace this "
        "device (WSL, or a driver that it does not know)"
    )


@SENTENCES.add("repeated-part")
def repeated_part(repeats: float, launches: float, of: float, lanes: float, after: float) -> str:
    busiest = " of the busiest device" if lanes > 1 else ""
    left_out = f"; {count_of(after, 'launch', 'launches')} after it left out" if after else ""
    return (
        f"no region is marked: the part that repeats is taken as the workload ({times_text(repeats)}, "
        f"{launches:.0f} of {of:.0f} launches{busiest}), everything before it as set-up{left_out}"
    )


@SENTENCES.add("other-loop")
def other_loop(before: float, repeats: float, seconds: float) -> str:
    where = "before" if before else "after"
    return (
        f"another loop {where} the analysed one is not part of a step: {times_text(repeats)} in "
        f"{format_quantity(seconds, 's')} (to analyse that loop, put profkit.region around its steps)"
    )


@SENTENCES.add("loaded-code")
def loaded_code(count: float, seconds: float) -> str:
    return (
        f"code was loaded {times_text(count)} within the marked region ({format_quantity(seconds, 's')}): "
        "a few calls before the region would avoid that"
    )


@SENTENCES.add("trace-of-the-cpu")
def trace_of_the_cpu(count: float, fix: str) -> str:
    operators = count_of(count, "operator")
    return f"the trace holds {operators} of the CPU and no kernel: only the CPU was traced (to trace kernels: {fix})"


@SENTENCES.add("operators-cut")
def operators_cut(count: float) -> str:
    return f"the table of operators uses only the first {count:.0f} calls and allocations of the trace"


@SENTENCES.add("no-kernel-has-a-time")
def no_kernel_has_a_time(count: float) -> str:
    return (
        f"{count_of(count, 'kernel or copy is', 'kernels and copies are')} in the trace, all with "
        "impossible times: the clock or the tracer failed; record it again"
    )


@SENTENCES.add("device-not-read")
def device_not_read(count: float, device: str) -> str:
    tasks = count_of(count, f"task of {device} is", f"tasks of {device} are")
    return f"{tasks} in the trace in a form that profkit cannot read: only the CPU's work is shown"


@SENTENCES.add("kernels-overrun")
def kernels_overrun(count: float) -> str:
    return (
        f"{count_of(count, 'kernel ends', 'kernels end')} after the next one of the same stream "
        "begins, which is impossible: each is counted until the next one begins"
    )


@SENTENCES.add("told-twice")
def told_twice(count: float) -> str:
    rows = count_of(count, "duplicate row", "duplicate rows")
    return f"{rows} (same stream, launch and time) left out"


@SENTENCES.add("timeless-events")
def timeless_events(count: float) -> str:
    return f"{count_of(count, 'event without a time was', 'events without a time were')} left out"


@SENTENCES.add("by-torch")
def by_torch(parts: Parts) -> str:
    return f"recorded by torch's own profiler, because {parts.first}"


@SENTENCES.add("without-ranges")
def without_ranges(parts: Parts) -> str:
    return f"recorded by nsys without NVTX ranges, because {parts.first}"


@SENTENCES.add("nsys-failed")
def nsys_failed(parts: Parts) -> str:
    return f"nsys failed{parts.because}"


@SENTENCES.add("jax-failed")
def jax_failed(parts: Parts) -> str:
    return f"jax.profiler failed{parts.because}"


@SENTENCES.add("trace-of-xla-on-cpu")
def trace_of_xla_on_cpu(count: float) -> str:
    return (
        f"the trace holds {count_of(count, 'instruction')} that XLA ran on the CPU and no kernel, without "
        "source lines (profkit profile --backend cpu finds them while the program runs)"
    )


@SENTENCES.add("xla-tuning-left-out")
def xla_tuning_left_out(count: float) -> str:
    what = count_of(count, "kernel, copy or fill", "kernels, copies and fills")
    return f"left out: {what} that XLA ran only to choose its kernels"


@SENTENCES.add("compiled-in-trace")
def compiled_in_trace(count: float, seconds: float, names: str) -> str:
    return (
        f"JAX compiled {count_of(count, 'program')} in the trace, which took "
        f"{format_quantity(seconds, 's')}{after_colon(names)}"
    )


@SENTENCES.add("jax-not-traced")
def jax_not_traced(said: str) -> str:
    return said


@SENTENCES.add("ended-by-tool")
def ended_by_tool(name: str, parts: Parts) -> str:
    return (
        f"{name} itself made the program fail, which runs well without it ({parts.first}): the "
        "results come from the other passes"
    )


@SENTENCES.add("launchers-of-a-part")
def launchers_of_a_part(parts: Parts) -> str:
    return f"operations and lines of the kernels are known for a part of the run only: {parts.first}"


@SENTENCES.add("raised-there")
def raised_there(said: str) -> str:
    return said

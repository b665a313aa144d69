"""Sentences about tests and cases of kernels: why there is no result, and what must be known of one."""

from __future__ import annotations

from profkit.core.formatting import format_percent, format_quantity
from profkit.reporting.sentences.formats import count_of, count_text, percent, whole_percent
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames, before_part

SENTENCES = SentenceTable(
    {
        # why an implementation of a sweep cannot be had
        "empty-input": "its input has no elements, so there is nothing to compute",
        "takes-contiguous": "its kernels take contiguous tensors",
        "no-nvrtc": "NVRTC, which compiles CUDA kernels, is not installed (no libnvrtc.so)",
        "needs-nvidia-gpu": "CUDA kernels need an NVIDIA GPU",
        "no-cpp-compiler": "Inductor needs a C++ compiler for the CPU, and none is installed",
        "inductor-without-triton": "Inductor writes Triton kernels, and Triton is not installed",
        "bfloat16-cut-off": "Triton's interpreter truncates bfloat16 instead of rounding",
        "no-triton": "Triton is not installed",
        # why a test or a case has no result, and what must be known of one
        "changes-argument": "it changes an argument that the operation must not change",
        "writes-beside": "it writes outside the elements of an argument that it may change",
        "changes-inputs": "it changes its inputs, so the next call computes something else",
        "random": "its result is random",
        "no-values": "its result has no values",
        "either-value": "it may write two values to the same place, and either may remain",
        "lazy-argument": "a tensor that is conjugated or negated lazily cannot be given to another process",
        "needs-gpu": "Triton needs a GPU",
        "not-asked-for": "its process sent an answer to a question that was not asked",
        "same-for-other-values": (
            "not timed: its result is the same for other values, so it could be a stored one"
        ),
        "gives-memory-back": "it repeatedly frees the memory that holds its results",
        "busy-machine": "the machine was busy: threads waited for a processor while it was timed",
        "difference-of-processes": (
            "new processes with the same kernels did not show this difference: it may come from the "
            "processes, not from the kernels"
        ),
        "other-count-in-float64": "it returns another number of outputs in float64",
        "nothing-ran": "it ran nothing on the GPU",
    }
)
SENTENCES.add_each(
    before_part,
    {
        "wrong-in-second-call": (
            "correct in the first call, but wrong in a second one with other values in other memory"
        ),
        "wrong-in-timed-call": "a timed call was wrong, but the same call was correct when repeated",
        "not-judged": "profkit could not judge it",
        "wrong-answer": "its process gave a wrong answer",
        "judge-ended": "the judge ended while the kernel was tested",
        "reference-ended": (
            "cannot be decided, because PyTorch's own kernel, or the code that makes its arguments, failed"
        ),
        "out-of-memory": "out of memory",
        "inputs-fail": "its inputs",
        "not-timed": "not timed",
        "no-truth": "compared with PyTorch's own result",
        "unknown-launches": "it is not known which kernels it launches",
    },
)
SENTENCES.add_each(
    TextWithNames,
    {
        # why an implementation of a sweep cannot be had
        "takes-dtypes": "its kernels take {names}, not {dtype}",
        "not-nvrtc": "{name} cannot be used as NVRTC: {said}",
        "not-implemented": "{name} does not implement {operation}",
        # tests and cases: why there is no result
        "other-shape": "{name} has the shape {got} instead of {right}",
        "other-dtype": "{name} is {got} instead of {right}",
        "other-device": "{name} is on {got} instead of {right}",
        "other-stride": "{name} has strides {got}; PyTorch has {right}",
        "other-value": "it returns {got} instead of {right}",
        "no-tensor": "it returns a {type} instead of a plain tensor",
        "other-layout": "it returns a tensor of layout {got} instead of a strided one",
        "tensor-given": "it returns a tensor, but PyTorch returns a {right}",
        "unknown-range": "the range of `{name}` is not known",
        "nothing-to-point-at": "`{name}` has nothing to point at",
        "no-kernel-in-torch": "torch {version} has no {device} kernel of it",
        "no-dtype-in-torch": "torch {version} has no dtype {dtype}",
        "other-arguments": "{name} gives this test other arguments now: {said}",
        "not-portable": "an argument of type {type} cannot be given to another process",
        "not-strided": "a tensor of layout {layout} or a quantised one cannot be given to another process",
        "slowed-down": "the GPU was slowed down while it was timed: {names}",
        "fails-in-float64": "it fails in float64 ({said})",
        "kernels-without-test": "no test of the suite {suite} calls the kernels of {names}{more}",
        "like-no-operation": "{name} is not the name of an operation of PyTorch{near}",
        "of-flag-gems": "the kernels are those of FlagGems {version}",
        "no-cuda-driver": "the CUDA driver cannot be loaded: {said}",
        "other-draw": "torch's database draws other arguments now: {said}",
    },
)


# ---------------------------------------------------------------- why an implementation of a sweep cannot be had


@SENTENCES.add("work-elsewhere")
def work_elsewhere(share: float) -> str:
    return (
        f"CUDA events see only {whole_percent(share)} of it: the rest runs on another stream that "
        "nothing waits for"
    )


@SENTENCES.add("copy-and-product")
def copy_and_product(mebibytes: float, dtype: str, rows: float, repeats: float) -> str:
    return (
        f"copy of {mebibytes:.0f} MiB, {dtype} product of {rows:g} x {rows:g}, median of {repeats:g} (torch)"
    )


@SENTENCES.add("too-many-rows")
def too_many_rows(most: float) -> str:
    return f"the Triton kernels take at most {count_text(most)} rows"


@SENTENCES.add("too-wide-rows")
def too_wide_rows(most: float) -> str:
    return f"the Triton kernel takes rows of at most {count_text(most)} elements"


# ---------------------------------------------------------------- tests and cases: why there is no result


@SENTENCES.add("wrong-numbers")
def wrong_numbers(name: str, at: str, got: str, right: str, wrong: float, all: float) -> str:
    where = f" at {at}" if at else ""
    numbers = f"{count_text(wrong)} of {count_of(all, 'number')} wrong"
    return f"{name}{where} is {got} instead of {right}; {numbers}"


@SENTENCES.add("leans")
def leans(name: str, lean: float, allowed: float) -> str:
    return (
        f"{name} is biased by {lean:.3g} of its size, where rounding explains {allowed:.3g}: its "
        "values are truncated instead of rounded, or off by a factor"
    )


@SENTENCES.add("other-count")
def other_count(got: float, right: float) -> str:
    return f"it returns {count_of(got, 'result')} instead of {right:g}"


@SENTENCES.add("lazy-output")
def lazy_output(place: float) -> str:
    return f"output {place:g} is conjugated or negated lazily"


@SENTENCES.add("beyond-memory")
def beyond_memory(place: float) -> str:
    return f"output {place:g} reaches beyond its memory"


@SENTENCES.add("no-memory")
def no_memory(place: float) -> str:
    return f"output {place:g} lies outside the memory of its process"


@SENTENCES.add("no-view")
def no_view(place: float) -> str:
    return f"output {place:g} must be a view of an argument, but is not"


@SENTENCES.add("shares-memory")
def shares_memory(place: float) -> str:
    return f"output {place:g} shares memory with an argument, but must not"


@SENTENCES.add("wrong-when-timed")
def wrong_when_timed(what: str, parts: Parts) -> str:
    return f"wrong after it was timed, with other numbers in {what}: {parts.first}"


@SENTENCES.add("worked-early")
def worked_early(early: float, checks: float) -> str:
    return f"the GPU worked before it was called, in {early:g} of {count_of(checks, 'case')}"


@SENTENCES.add("too-fast")
def too_fast(rate: float, cores: float, limit: float) -> str:
    return (
        "its timed calls ended before their results could have been written: "
        f"{format_quantity(rate, 'B/s')}, and {cores:g} cores cannot store more than "
        f"{format_quantity(limit, 'B/s')} (128 bytes a cycle at 8 GHz each)"
    )


@SENTENCES.add("too-fast-on-gpu")
def too_fast_on_gpu(rate: float, cores: float, limit: float) -> str:
    return (
        "its timed calls ended before their results could have been written: "
        f"{format_quantity(rate, 'B/s')}, and {cores:g} multiprocessors cannot store more than "
        f"{format_quantity(limit, 'B/s')} (128 bytes a cycle at 4 GHz each)"
    )


@SENTENCES.add("more-arguments")
def more_arguments(got: float, version: str, most: float) -> str:
    return f"{count_of(got, 'argument')}, but torch {version} takes at most {most:g}"


@SENTENCES.add("no-room")
def no_room(needed: float, free: float) -> str:
    return (
        f"its arguments need {format_quantity(needed, 'B')} with their copies, but only "
        f"{format_quantity(free, 'B')} are free"
    )


@SENTENCES.add("no-shared-room")
def no_shared_room(needed: float, room: float) -> str:
    return (
        f"its arguments take {format_quantity(needed, 'B')}, but only {format_quantity(room, 'B')} of "
        "memory can be shared with kernels"
    )


@SENTENCES.add("fails-itself")
def fails_itself(name: str, parts: Parts) -> str:
    return f"{name} itself: {parts.first}"


@SENTENCES.add("new-memory-each-time")
def new_memory_each_time(verified: float) -> str:
    return f"{verified:g} of its calls could be verified, because its results lie in new memory each time"


@SENTENCES.add("beyond-peaks")
def beyond_peaks(times: float) -> str:
    return (
        f"{times:.1f} times as fast as the measured peaks of this machine allow: it computes or moves "
        "less than the formula of the operation assumes, or the machine was busy when they were "
        "measured"
    )


@SENTENCES.add("threads-beyond-option")
def threads_beyond_option(threads: float, allowed: float) -> str:
    return (
        f"it keeps {threads:.1f} processors busy although --threads allows {allowed:g}: some of its "
        "speed-up comes from more processors"
    )


@SENTENCES.add("more-threads")
def more_threads(threads: float, reference: float) -> str:
    return (
        f"it keeps {threads:.1f} threads busy, and PyTorch's own {reference:.1f}: it uses more "
        "processor time than its speed-up suggests"
    )


@SENTENCES.add("slow-launches")
def slow_launches(launch: float, seconds: float) -> str:
    return (
        f"the host needs {format_quantity(launch, 's')} to launch a call, and the GPU "
        f"{format_quantity(seconds, 's')} to run it: the speed-up is that of the GPU alone"
    )


@SENTENCES.add("share-of")
def share_of(name: str, share: float) -> str:
    return f"{name} {whole_percent(share)}"


@SENTENCES.add("no-own-kernel")
def no_own_kernel(parts: Parts) -> str:
    return f"it launches no kernel of its own; its GPU time is that of {', '.join(parts)}"


@SENTENCES.add("decoy")
def decoy(share: float, parts: Parts) -> str:
    return (
        f"its own kernels take only {percent(share)} of its GPU time; other kernels do the work: "
        f"{', '.join(parts)}"
    )


@SENTENCES.add("mixed-kernels")
def mixed_kernels(share: float, parts: Parts) -> str:
    return f"{whole_percent(share)} of its GPU time is in its own kernels; {', '.join(parts)}"


@SENTENCES.add("limited-by")
def limited_by(name: str) -> str:
    return name


@SENTENCES.add("near-peak")
def near_peak(name: str, near: float) -> str:
    return f"{name}, {format_percent(near)} % of its peak"


@SENTENCES.add("change-first")
def change_first(name: str) -> str:
    return name


@SENTENCES.add("change-first-of")
def change_first_of(name: str, share: float, of: str) -> str:
    return f"{name} (could save up to {percent(share)} of {of})"

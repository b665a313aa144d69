"""Sentences about sampled stacks, and about what profkit runs in the workload's own process."""

from __future__ import annotations

from profkit.core.formatting import format_quantity
from profkit.reporting.sentences.formats import count_of, percent
from profkit.reporting.sentences.table import SentenceTable, TextWithNames

SENTENCES = SentenceTable(
    {
        "no-python-exit": (
            "the program ended without Python's exit (a signal, os._exit, exec): the last 0.1 s, or the "
            "last hundredth of its time, was not sampled"
        ),
        "no-thread-clocks": "this system has no clock per thread: which of several threads ran is estimated",
        "more-stacks": "too many different stacks: the rest is shown as [more functions]",
        "profile-samples-already": (
            "not sampled: `profkit profile` already samples this program. Use only one of them"
        ),
        "lines-ended": (
            "lines were not counted: before Python 3.12 that would slow down this program, which runs "
            "many calls and lines of Python, too much"
        ),
        "lines-traced-elsewhere": (
            "lines were not counted: the program, a debugger or a coverage tool already uses Python's tracing"
        ),
        "nearly-every-sample-waited-for-a-processor": (
            "its threads waited for a free processor in nearly every sample: other programs were busy, "
            "or it has more threads than there are processors; on an idle machine it may be far faster"
        ),
        "most-samples-waited-for-a-processor": (
            "most samples were discarded: its threads waited for a free processor, because other "
            "programs were busy"
        ),
        "host-waits-inside-the-call": (
            "the host waits for the device inside the call, so these times include the launches"
        ),
        "other-process-in-region": (
            "another process of the workload is inside its region, and perf counts that one"
        ),
        "not-under-valgrind": "this process does not run under valgrind",
        "valgrind-does-not-answer": "valgrind does not answer client requests",
        "no-nvtx": (
            "the region is not marked by an NVTX range: this Python lacks the package nvtx (fix: pip "
            "install nvtx)"
        ),
        "late-cuda": (
            "CUDA was first used inside the region, so the profiler did not see it: use the device once "
            "before the region"
        ),
        "no-cuda-in-region": "the region used no CUDA in this process",
        "region-in-a-graph": (
            "a region inside the recording of a CUDA graph is not marked, because nothing runs there"
        ),
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        "split-not-known": (
            "{line} releases the interpreter's lock (GIL) again and again, and samples are taken when that "
            "happens: some of its share may belong to the lines around it. To measure them, put "
            "`time.perf_counter` around these lines"
        ),
        "sampled-already": (
            "not sampled: {name} is already being sampled in this process. Use only one of them"
        ),
        "lines-too-often": (
            "lines of {name} were not counted: they run so often that counting would slow the program down "
            "too much"
        ),
        "allocated-outside-python": (
            "{name} are allocated outside Python, where tracemalloc does not see them"
        ),
        "no-request-code": "no client request code for {name}",
        "driver-refused": "{name}: {said}",
        "switch-not-usable": "the {name} switch cannot be used: {said}",
        "switch-failed": "{name} failed: {said}",
        "regions-together": (
            "the workload marks several regions ({names}): they are counted together, in one process"
        ),
        "sampling-failed": "some samples of the stacks failed: {said}",
        "perf-does-not-listen": "perf does not read its control fifo: {said}",
        "perf-left": "perf closed its control fifo: {said}",
        "no-executable-memory": "no executable memory for client requests: {said}",
        "driver-not-loaded": "NVIDIA's driver library cannot be loaded: {said}",
        "cuda-not-initialised": "CUDA cannot be initialised: {said}",
        "record-passed-over": "skipped: {said}",
    },
)


@SENTENCES.add("torn-lines")
def torn_lines(count: float) -> str:
    return f"skipped {count_of(count, 'line')} of the sampled stacks that could not be read"


@SENTENCES.add("turns-not-told-apart")
def turns_not_told_apart(share: float) -> str:
    return (
        f"threads pass the interpreter's lock (GIL) to each other: for {percent(share)} of their "
        "computing time the line is not known. To measure it, put `time.thread_time` around these lines"
    )


@SENTENCES.add("rough-shares")
def rough_shares(count: float, points: str) -> str:
    return (
        f"the shares of lines come from {count_of(count, 'sample')} of the main thread: a share of a "
        f"third is exact to ±{points} percentage points. A longer run gives more samples"
    )


@SENTENCES.add("short-recording")
def short_recording(count: float, seconds: float) -> str:
    return (
        f"Only {count_of(count, 'sample')} in {format_quantity(seconds, 's')}: shares are rough. "
        "Repeat short code in a loop."
    )


@SENTENCES.add("kernels-of-first-call")
def kernels_of_first_call(count: float) -> str:
    return (
        f"The kernels are those of the first of {count:.0f} calls. To see those of all calls, put "
        "`with profkit.profile():` around the loop."
    )


@SENTENCES.add("ended-early")
def ended_early(name: str, seconds: float) -> str:
    return f"{name} stopped after {seconds:.0f} s of a longer run: these numbers do not include the rest"


@SENTENCES.add("threads-not-profiled")
def threads_not_profiled(count: float) -> str:
    threads = count_of(count, "thread is", "threads are")
    return f"{threads} not in the profile: cProfile sees the thread that started it"


@SENTENCES.add("threads-mixed")
def threads_mixed(count: float) -> str:
    threads = count_of(count, "thread")
    return f"{threads}: calls of all threads are mixed in this profile (Python 3.12 and later)"


@SENTENCES.add("perf-does-not-answer")
def perf_does_not_answer(seconds: float) -> str:
    return f"perf did not answer within {seconds:.0f} s"


@SENTENCES.add("many-regions")
def many_regions(count: float, name: str) -> str:
    return f"more than {count:g} names of regions; the rest is counted as {name!r}"

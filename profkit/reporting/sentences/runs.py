"""Sentences about a run as a whole, and about what it tried."""

from __future__ import annotations

from profkit.core.formatting import format_figures, format_quantity
from profkit.reporting.sentences.formats import count_of, percent
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames

SENTENCES = SentenceTable(
    {
        # notes of a run
        "hidden-arguments": (
            "Arguments of the workload that look like secrets are replaced by ***. To repeat the run, "
            "type them again. The tools' own reports in artifacts/ may still contain them (`profkit "
            "scrub` removes them). --keep-arguments keeps them."
        ),
        "input-not-sent": (
            "standard input is not sent to the other machine; each run there gets an empty one (to send "
            "it: --send FILE -- sh -c 'PROGRAM < FILE')"
        ),
        "input-not-given": (
            "a shell reads the same standard input, so the program gets an empty one in each run (to "
            "give it a file: profkit profile -- sh -c 'PROGRAM < FILE')"
        ),
        "server-until-interrupt": (
            "The command looks like a server, which does not end by itself: it is sampled from its "
            "start. Send it requests, then press Ctrl-C. To profile a running server: profkit profile "
            "--pid PID"
        ),
        "server-was-ended": (
            "The server was sampled from its start until Ctrl-C. To profile a running server for some "
            "seconds: profkit profile --pid PID"
        ),
        # trials: what made one likely, and why it has no result
        "trial-not-reached": "the change did not reach the program",
        "trial-impure": "called again with equal arguments, the function returned another result",
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        # notes of a run
        "arguments-say": "its arguments contain {word}",
        "started-by": "{name} starts it",
        "program-holds": "{name} contains {mark}",
        "script-names": "{name} names {word}",
        "program-names": "its program names {word}",
        "peaks-not-measured": "the peaks could not be measured: {said}",
        "answer-changed": "updated after all passes: {said} instead of {message}",
        "answer-changed-by": "updated by the later pass {name}: {said} instead of {message}",
        "slept-all-the-time": "It only waited while it was profiled: {what}.",
    },
)


# ---------------------------------------------------------------- notes of a run


@SENTENCES.add("backend-chosen")
def backend_chosen(name: str, parts: Parts, other: str) -> str:
    return f"backend {name}: {parts.first} (--backend {other} profiles the host)"


@SENTENCES.add("backend-without-device")
def backend_without_device(name: str, parts: Parts) -> str:
    return f"backend {name}: {parts.first}, but {parts.second}"


@SENTENCES.add("asked-precision")
def asked_precision(precision: float, seconds: float) -> str:
    return f"measured to ±{percent(precision)}, for up to {seconds:g} s in each process"


@SENTENCES.add("masked-arguments")
def masked_arguments(count: float) -> str:
    arguments = count_of(count, "argument of the command is", "arguments of the command are")
    return (
        f"{arguments} [masked] here as possible secrets; run.json has the whole command. To show options "
        "with their values, set PROFKIT_HARMLESS=NAME,NAME."
    )


@SENTENCES.add("not-copied")
def not_copied(count: float) -> str:
    return (
        f"{count_of(count, 'entry of artifacts/ is', 'entries of artifacts/ are')} not copied: links, "
        "or files that do not come from a pass."
    )


@SENTENCES.add("peaks-took-long")
def peaks_took_long(seconds: float) -> str:
    return f"measuring the machine's peaks took more than {seconds:.0f} s and was ended: other programs are running"


@SENTENCES.add("watched-and-goes-on")
def watched_and_goes_on(pid: float, seconds: float) -> str:
    return f"Process {pid:.0f} and its children were profiled for {seconds:.1f} s; it keeps running."


@SENTENCES.add("input-given")
def input_given(size: float) -> str:
    return f"Each run of the program gets the same {format_quantity(size, 'B')} of standard input."


@SENTENCES.add("child-of-launcher")
def child_of_launcher(pid: float, name: str, child: float) -> str:
    return (
        f"Process {pid:.0f} is {name} and only waits for its child {child:.0f}, which was profiled instead."
    )


@SENTENCES.add("watched-to-its-end")
def watched_to_its_end(pid: float, seconds: float) -> str:
    return f"Process {pid:.0f} and its children were profiled for {seconds:.1f} s, until it ended."


# ---------------------------------------------------------------- trials


@SENTENCES.add("trial-collector")
def trial_collector(share: float) -> str:
    return f"the garbage collector took {percent(share)} of the time"


@SENTENCES.add("trial-threads-wait")
def trial_threads_wait(share: float) -> str:
    return (
        f"threads of the linear algebra library wait for each other for {percent(share)} of the "
        "processor time"
    )


@SENTENCES.add("trial-one-thread")
def trial_one_thread(share: float) -> str:
    return f"{percent(share)} of the time is in a linear algebra library that used one thread"


@SENTENCES.add("trial-allocator")
def trial_allocator(share: float) -> str:
    return f"allocation and page faults took {percent(share)} of the processor time"


@SENTENCES.add("trial-page-faults")
def trial_page_faults(share: float, times: float) -> str:
    return (
        f"the kernel took {percent(share)} of the processor time, and the program got {times:.0f} x its peak "
        "memory in new pages: it gives memory back, and asks for it again"
    )


@SENTENCES.add("trial-memoise")
def trial_memoise(name: str, arguments: float, looks: float) -> str:
    different = count_of(arguments, "different argument")
    return f"{name} was called with {different} in {count_of(looks, 'sample')}"


@SENTENCES.add("trial-output")
def trial_output(count: float, each: float) -> str:
    return f"{count_of(count, 'call')} wrote {format_quantity(each, 'B')} each on average"


@SENTENCES.add("trial-tf32")
def trial_tf32(share: float) -> str:
    return f"{percent(share)} of a step are products in FP32 without tensor cores"


@SENTENCES.add("trial-convolutions")
def trial_convolutions(share: float) -> str:
    return f"{percent(share)} of a step are convolutions"


@SENTENCES.add("trial-loader")
def trial_loader(share: float) -> str:
    return f"{percent(share)} of the time the program waits for a DataLoader"


@SENTENCES.add("trial-attention")
def trial_attention(share: float) -> str:
    return f"the GPU is idle for {percent(share)} of a step in calls of attention, whose kernels are cuDNN's"


@SENTENCES.add("trial-workers")
def trial_workers(share: float) -> str:
    return f"{percent(share)} of the time is in a DataLoader that has workers"


@SENTENCES.add("trial-device-memory")
def trial_device_memory(share: float) -> str:
    return f"{percent(share)} of a step is spent on memory of the device"


@SENTENCES.add("trial-left-out")
def trial_left_out(seconds: float, left: float) -> str:
    return (
        f"one run takes about {format_figures(seconds)} s, but only {format_figures(left)} s are left for "
        "changes that nobody asked to try"
    )

"""Sentences about recordings of Instruments, and about Metal."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import title_of
from profkit.core.formatting import format_quantity
from profkit.reporting.sentences.formats import count_of, share_text
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames, before_part

SENTENCES = SentenceTable(
    {
        # recordings
        "contents-alone": (
            "only a table of contents: it shows how it was recorded, but no tables were exported with it"
        ),
        "table-alone": (
            "only one table: the folder with all exports of its recording, including toc.xml, gives more"
        ),
        "all-processes": (
            "samples of all processes are counted, because toc.xml, which names the profiled process, is "
            "not in the same folder"
        ),
        "untimed-entries": "its entries were not timed on the clock of the trace",
        "counters-of-the-chip": (
            "the available counters depend on the chip and the version of Xcode; some have none"
        ),
        # Metal
        "no-shader-timeline": "it was recorded with Shader Timeline: Disabled, so no shader was timed",
        "no-shader-times": "the recording has no times of single shaders",
        "no-frames": "the process presented no frames (none of its command buffers has a present)",
        "no-rows-that-count": "none of its rows lies in the analysed part",
        "no-gpu-counters": "the recording has no GPU counters",
        "unused-gpu": "the program ran nothing on the GPU",
        "nothing-on-gpu": "the process ran nothing on the GPU",
        "no-own-intervals": "the process's own intervals are not in the trace",
        "not-idle": "the GPU was never idle",
        "no-submissions": "the submissions are not in the trace",
        "served-by-cache": (
            "more than the memory can move, because it includes what the system level cache served"
        ),
        "unknown-bandwidth": "the memory bandwidth of this chip is not known",
        "unchecked-chip": "the figure for this chip comes from a single report",
        "no-declared-bytes": "the workload declares no bytes",
        "no-process-time": "the time of the process on the GPU is not known",
        "unknown-iterations": "without a marked region it is not known how many iterations were traced",
    }
)
SENTENCES.add_each(
    before_part,
    {
        "no-clock": "the clock of the trace is not known",
        "by-signposts": "the region is taken from its signposts",
        "not-the-region": "the whole trace is analysed, not only the region",
    },
)
SENTENCES.add_each(
    TextWithNames,
    {
        # recordings
        "unknown-chip": "{name} is not in profkit's table of Apple's chips",
        "chip-of-unknown-cores": (
            "{name} is sold with {kinds} GPU cores, and the recording does not say how many this one has"
        ),
        "no-sample-of": "no sample of {name}",
        "no-sample-in-region": "no sample of {name} in the marked region",
        "no-gpu-states": "without {table} the GPU counts as active while any process had work on it",
        "no-row": "it has no row in {table}",
        "it-has-no-table": "it has no table {table}",
        "launched-without-gpu": "{name} was started, but ran nothing on the GPU",
        "busiest-process": "the recording names no process: {name}, the busiest on the GPU, is taken",
        "recording-ended": (
            "{name}: the time limit ended the recording and the workload: the trace lacks everything after "
            "that"
        ),
        # Metal
        "no-counter-set": "it was recorded with Counter Set: {setting}",
        "no-rows": "{table} has no rows",
        "not-exported": "{table} was not exported",
        "no-table": "the recording has no table {table}",
        "work": "{kind} {name}",
        "other-unit": "{counter} is counted in {unit} here",
        "unknown-work": "{counter} covers a time for which it is not known how long the GPU worked",
    },
)


# ---------------------------------------------------------------- recordings


@SENTENCES.add("chip-of-other-cores")
def chip_of_other_cores(name: str, kinds: str, cores: float) -> str:
    return f"{name} is sold with {kinds} GPU cores, but the recording says {cores:g}"


@SENTENCES.add("other-processes")
def other_processes(count: float) -> str:
    return f"not counted: {count_of(count, 'sample')} of other processes"


@SENTENCES.add("waiting-threads")
def waiting_threads(count: float) -> str:
    return f"not counted: {count_of(count, 'sample')} of threads that waited"


@SENTENCES.add("without-stack")
def without_stack(count: float, share: float) -> str:
    samples = f"{count_of(count, 'sample')} ({share_text(share)})"
    return f"{samples} without a stack: it is not known where the program was"


@SENTENCES.add("few-samples")
def few_samples(count: float) -> str:
    return f"only {count_of(count, 'sample')}, so shares are rough"


@SENTENCES.add("whole-recording")
def whole_recording(seconds: float, window: float, name: str) -> str:
    return (
        f"no region is marked: the whole recording of {format_quantity(seconds, 's')} is analysed; "
        f"{format_quantity(window, 's')} lie between the first and the last GPU work of {name}"
    )


@SENTENCES.add("rows-without-values")
def rows_without_values(count: float) -> str:
    return f"left out: {count_of(count, 'row')} without a time, a value or an id"


@SENTENCES.add("odd-begin")
def odd_begin(table: str, value: str) -> str:
    return f"its {table} gives {value!r} as the start"


@SENTENCES.add("odd-timebase")
def odd_timebase(table: str, value: str) -> str:
    return f"its {table} gives {value!r} as the timebase"


@SENTENCES.add("several-clocks")
def several_clocks(table: str, count: float) -> str:
    return f"the clock restarts in {table}: {count_of(count, 'row differs', 'rows differ')}"


@SENTENCES.add("later-entries")
def later_entries(count: float, kept: float) -> str:
    return (
        f"{count_of(count, 'later entry of the region is', 'later entries of the region are')} not in "
        f"it: the times of {kept:g} were kept"
    )


@SENTENCES.add("entries-outside")
def entries_outside(count: float, of: float) -> str:
    entries = f"{count:g} of {count_of(of, 'entry', 'entries')} of the region"
    lie = "lies" if count == 1 else "lie"
    return f"{entries} {lie} outside of the trace, or across its ends"


@SENTENCES.add("all-entries-outside")
def all_entries_outside(count: float, of: float) -> str:
    entries = f"{count:g} of {count_of(of, 'entry', 'entries')} of the region"
    lie = "lies" if count == 1 else "lie"
    return f"{entries} {lie} outside of the trace, or across its ends: it is of another recording, or of another clock"


# ---------------------------------------------------------------- Metal


@SENTENCES.add("guessed-process")
def guessed_process(parts: Parts) -> str:
    return f"{parts.first}; the table of contents (toc.xml) tells which one was profiled"


@SENTENCES.add("of-counter")
def of_counter(counter: str) -> str:
    return counter


@SENTENCES.add("no-such-counter")
def no_such_counter(metric: str) -> str:
    return f"none of the recorded counters measures it ({title_of(metric)})"


@SENTENCES.add("zero-in-samples")
def zero_in_samples(counter: str, samples: float) -> str:
    return f"{counter} does not work here: it is 0 in all {samples:.0f} samples"


@SENTENCES.add("diluted-samples")
def diluted_samples(share: float) -> str:
    return (
        f"the process had work for only {share_text(share)} of the time of its samples; they include "
        "the rest, too"
    )

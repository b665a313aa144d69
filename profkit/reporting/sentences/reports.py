"""Sentences about reports of any tool, and those of perf and valgrind."""

from __future__ import annotations

from profkit.core.formatting import format_quantity
from profkit.reporting.sentences.formats import count_of, percent, share_text
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames

SENTENCES = SentenceTable(
    {
        # any report
        "many-functions": "too many different functions: the later ones are counted as one",
        "scrubbed": "scrubbed: host, user, command line and logs were removed",
        # perf
        "last-line-cut": "the last line is cut off; everything before it was read",
        "last-interval-cut": (
            "the last interval is not complete: some events were counted for longer than the others"
        ),
        "no-last-sample": "the text does not end at the end of a sample: the last one may be cut off",
        "ends-in-the-middle": "the text ends in the middle: it may be cut off",
        "ends-in-a-line": (
            "the text ends in the middle of a line: it was cut off, and its last sample is skipped"
        ),
        "native-frames": "native frames, unwound from a copy of the stack",
        "native-and-python-frames": "native and Python frames, unwound from a copy of the stack",
        "beside-stacks": (
            "sampled in the run of the stacks pass; --depth full records complete native stacks in a "
            "separate run"
        ),
        "no-pmu": "no hardware counters here: only the kernel's software events",
        "user-space-alone": "only user space is counted",
        # valgrind
        "no-instructions-simulated": "the simulation counted no instructions (Ir)",
        "nothing-collected": "nothing was counted: the region was never entered, or collection never began",
        "no-avx-512": (
            "valgrind does not support AVX-512: libraries use AVX2 under it, so wider registers appear "
            "as 256 bits"
        ),
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        # any report
        "says": "{program}: {said}",
        "told": "{name}: {message}",
        "file-cut-off": "the file was cut off: {said}; everything before that point was read",
        # perf
        "event-of-user-space": "{event}: user space only, without the time in the kernel",
        "no-python-frames": "{name} shows perf native frames only; Python functions need 3.12 or later",
        "frame-pointers-only": (
            "perf needs frame pointers to see Python functions in {name}, and this interpreter was built "
            "without them: only about 1 stack in 100 reaches a Python function. With Python 3.13 stacks "
            "are complete"
        ),
        "events-of": "events of {name}",
        "events-not-known": "not available here: {names}",
    },
)


# ---------------------------------------------------------------- messages


@SENTENCES.add("text")
def message(text: str) -> str:
    return text


# ---------------------------------------------------------------- any report


@SENTENCES.add("of")
def message_about(what: str, parts: Parts) -> str:
    return f"{what}: {parts.first}"


@SENTENCES.add("rows-left-out")
def rows_left_out(count: float) -> str:
    return f"skipped {count_of(count, 'row')} that could not be understood"


@SENTENCES.add("lines-left-out")
def lines_left_out(count: float) -> str:
    return f"skipped {count_of(count, 'line')} that could not be understood"


# ---------------------------------------------------------------- perf


@SENTENCES.add("many-stacks")
def many_stacks(event: str, share: float) -> str:
    return (
        f"{event}: too many distinct stacks; for {share_text(share)} of the samples the inner frames "
        "are merged in the stacks (the tables are exact)"
    )


@SENTENCES.add("foreign-lines")
def foreign_lines(count: float) -> str:
    return f"skipped {count_of(count, 'line that is', 'lines that are')} not from perf stat"


@SENTENCES.add("cgroups-apart")
def cgroups_apart(count: float) -> str:
    return f"{count_of(count, 'cgroup')}, each listed separately"


@SENTENCES.add("counted-twice")
def counted_twice(name: str, share: float) -> str:
    return f"{name} was counted more than once; the counts differ by {share_text(share)}"


@SENTENCES.add("counted-twice-apart")
def counted_twice_apart(name: str, share: float) -> str:
    return (
        f"{name} was counted more than once; the counts differ by {share_text(share)}; the groups did "
        "not measure the same work"
    )


@SENTENCES.add("lost-samples")
def lost_samples(count: float) -> str:
    return f"perf lost {count_of(count, 'sample')} while recording"


@SENTENCES.add("own-samples")
def own_samples(share: float) -> str:
    return f"{share_text(share)} of perf's samples were in profkit's own sampler and are left out"


@SENTENCES.add("unstable-groups")
def unstable_groups(drift: float, limit: float) -> str:
    return (
        f"unstable: the work of the counter groups differs by {share_text(drift)} (limit "
        f"{percent(limit)}), so ratios across groups are estimates"
    )


# ---------------------------------------------------------------- valgrind


@SENTENCES.add("changed-cache")
def changed_cache(
    level: float, size: float, ways: float, line: float, new_size: float, new_ways: float, new_line: float
) -> str:
    cache = f"{format_quantity(size, 'B')}, {ways:g}-way, {line:g} B lines"
    simulated = f"{format_quantity(new_size, 'B')}, {new_ways:g}-way, {new_line:g} B lines"
    return f"L{level:g} of {cache} is simulated as {simulated}: valgrind needs a power of two of sets"


@SENTENCES.add("simulated-cache")
def simulated_cache(level: float, size: float, ways: float, source: str) -> str:
    return f"L{level:g}: {format_quantity(size, 'B')}, {ways:g}-way, {source}"


@SENTENCES.add("different-simulations")
def different_simulations(one: float, other: float, share: float) -> str:
    return (
        f"the two simulations did different work: {one:.0f} and {other:.0f} instructions "
        f"({share_text(share)}); the second cache level is from another run than the others"
    )


@SENTENCES.add("other-total")
def other_total(dump: float, total: str, event: str, sum: str) -> str:
    return (
        f"dump {dump:g} says {total} {event} in all, but its functions add up to {sum}; the sum of "
        "the functions is used, and the file may be damaged"
    )


@SENTENCES.add("not-decoded")
def not_decoded(share: float, name: str) -> str:
    return f"{share_text(share)} of the instructions were not decoded, most of them in {name}"


@SENTENCES.add("compiled-not-decoded")
def compiled_not_decoded(share: float) -> str:
    return f"{share_text(share)} of the instructions were not decoded, most of them in code that no file was found for"


@SENTENCES.add("counts-per-iteration")
def counts_per_iteration(count: float) -> str:
    return f"counts are per iteration, from {count_of(count, 'simulated iteration')}"

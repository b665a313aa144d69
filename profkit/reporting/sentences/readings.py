"""Sentences about readings: why one is unavailable, or what must be known of it."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import title_of
from profkit.core.formatting import format_figures, format_quantity
from profkit.reporting.sentences.formats import after_colon, count_of, share_text, whole_percent
from profkit.reporting.sentences.table import Parts, Quantity, SentenceTable, TextWithNames

SENTENCES = SentenceTable(
    {
        "deeper": "not collected at this depth: --depth standard counts it",
        "two-levels-of-callgrind": (
            "a callgrind file has only two cache levels, L1 and the last; profkit profile simulates three"
        ),
        "no-instruction-addresses": (
            "the file has no instruction addresses (callgrind --dump-instr=yes writes them)"
        ),
        "no-event-on-a-mac": "no event on a Mac is known to count it",
        "no-event-on-apple-silicon": (
            "no event for it was collected, and the cores of Apple silicon have none"
        ),
        "no-vector-events": (
            "the events of vector instructions (INST_SIMD_ALU_VEC of Apple M2 and later) were not collected"
        ),
        "no-event": "this chip has no known event for it",
        "never-on-a-counter": "no hardware counter was free to count it",
        "cannot-be-zero": "the counter read 0, which is impossible",
        "happens-in-the-kernel": "only user space was counted, but this happens in the kernel",
        "no-third-level": "this machine has no third cache level",
        "no-cache-geometry": "the report does not contain the sizes of the caches",
        "ended-before-region": "it stopped before any region was entered",
        "no-iterations": "no region was marked: there are no iterations to compare",
        "iterations-not-apart": "the iterations cannot be told apart",
        "keeps-growing": "the memory held after a garbage collection keeps growing",
        "keeps-its-size": "the memory held after a garbage collection does not grow with the iterations",
        "no-repository": "no git repository",
        "no-commit-yet": "a git repository without a commit",
        "nothing-to-divide-by": "nothing to divide by",
        "not-a-number": "impossible: not a number",
        "different-runs": "its counters come from different runs",
        "not-in-report": "it is not in the report",
        "no-sample": "the timing pass has no sample",
        "no-timeline": "the report has single kernels, but no timeline",
        "no-kernel": "the report contains no kernel",
        "not-in-trace": "it is not in the trace",
        "declared": "declared by the workload",
        "no-peaks": "the peaks of this machine were not measured",
        "busy-peak": "the peak was measured while the machine was busy: measure again when it is quiet",
        "simulated-streaming": (
            "simulated traffic is too high where stores stream past the caches (memcpy and np.copyto of "
            "large arrays), since each simulated write reads its line first"
        ),
        "narrower-than-peak": (
            "the arithmetic is narrower than the float32 of the peak (float16, bfloat16, int8)"
        ),
        "tensor-peak": (
            "the peak of the tensor cores is estimated: their rate over the share of cycles in which "
            "they worked"
        ),
        "simulated-hot-place": (
            "only a part of the program was simulated, beginning when it first reached its hottest place"
        ),
        "no-test-decided": "no test was decided",
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        "never-simulated": "the simulation never executed {name}",
        "recorded-without": "the report does not count {counters}: it was recorded without that simulation",
        "no-counts-left": "its run, {name}, produced no counts",
        "no-commit-here": "git knows no commit here: {said}",
        "is-zero": "nothing to divide by: {counts} is 0",
        "pass-finished": "the {name} pass did not measure it",
        "ended-before": "the run ended before its {name} pass",
        "not-asked": "the {name} pass was not requested",
        "several-regions": (
            "it was counted over several regions together ({names}), but the time is that of one region"
        ),
    },
)


@SENTENCES.add("together")
def together(parts: Parts) -> str:
    return "; ".join(parts)


@SENTENCES.add("of-pmu")
def of_pmu(pmu: str, share: float) -> str:
    return f"of {pmu}, which counted {whole_percent(share)} of the cycles; the other PMUs are not included"


@SENTENCES.add("not-collected")
def not_collected(counters: str = "") -> str:
    return f"not collected{after_colon(counters)}"


@SENTENCES.add("not-supported")
def not_supported(counter: str, parts: Parts) -> str:
    return f"{counter} is not supported{parts.because}"


@SENTENCES.add("not-counted")
def not_counted(counter: str, parts: Parts) -> str:
    return f"{counter} is not counted{parts.because}"


@SENTENCES.add("hard-zero")
def hard_zero(counter: str, parts: Parts) -> str:
    return f"{counter} always reads 0 here{parts.because}"


@SENTENCES.add("unclear-number")
def unclear_number(said: str) -> str:
    return f"{said!r} is not a number in the tool's format, or ambiguous: record it with LC_ALL=C"


@SENTENCES.add("own-above-cumulative")
def own_above_cumulative(name: str, own: float, cumulative: float) -> str:
    return (
        f"{name} has {format_quantity(own, 's')} of its own and {format_quantity(cumulative, 's')} "
        "with what it calls: the profile contradicts itself, perhaps because calls of several "
        "threads are mixed in it (Python 3.12 and later)"
    )


@SENTENCES.add("longer-than-all")
def longer_than_all(name: str, seconds: float, total: float) -> str:
    return (
        f"{name} has {format_quantity(seconds, 's')} of {format_quantity(total, 's')} in all: the "
        "profile contradicts itself, perhaps because calls of several threads are mixed in it "
        "(Python 3.12 and later)"
    )


@SENTENCES.add("not-whole")
def not_whole(value: float) -> str:
    return f"{format_figures(value)} is not a whole number, so it cannot be a count"


@SENTENCES.add("unit-unknown")
def unit_unknown(unit: str) -> str:
    return f"its unit {unit!r} is not known"


@SENTENCES.add("not-together")
def not_together(metric: str, parts: Parts) -> str:
    return f"one of its counters is wrong, since {title_of(metric)} would be {parts.first}"


@SENTENCES.add("beyond-64-bits")
def beyond_64_bits(value: float) -> str:
    return f"{format_figures(value)} is more than a counter of 64 bits counts"


@SENTENCES.add("code-in-no-file")
def code_in_no_file(share: float) -> str:
    return f"{whole_percent(share)} of the instructions are in code of which this machine has no file"


@SENTENCES.add("few-iterations")
def few_iterations(count: float, needed: float) -> str:
    return f"{count_of(count, 'iteration is', 'iterations are')} too few: at least {needed:g} are needed"


@SENTENCES.add("more-than")
def more_than(value: Quantity, limit: Quantity) -> str:
    return f"impossible: {value} is more than {limit}"


@SENTENCES.add("less-than")
def less_than(value: Quantity, limit: Quantity) -> str:
    return f"impossible: {value} is less than {limit}"


@SENTENCES.add("multiplexed")
def multiplexed(share: float) -> str:
    return f"multiplexed: one of its counters ran only {whole_percent(share)} of the time"


@SENTENCES.add("unstable-runs")
def unstable_runs(drift: float) -> str:
    return f"unstable: it is computed from several runs, which differ by {share_text(drift)}"


@SENTENCES.add("needs")
def needs(metric: str, parts: Parts) -> str:
    return f"it needs {metric}{parts.because}"


@SENTENCES.add("kernels-not-counted")
def kernels_not_counted(share: float) -> str:
    return f"{share_text(share)} of the GPU time is in kernels that were not counted"


@SENTENCES.add("pass-skipped")
def pass_skipped(name: str, parts: Parts) -> str:
    return f"the {name} pass was skipped{parts.because}"


@SENTENCES.add("pass-failed")
def pass_failed(name: str, parts: Parts) -> str:
    return f"the {name} pass failed{parts.because}"


@SENTENCES.add("pass-interrupted")
def pass_interrupted(name: str, parts: Parts) -> str:
    return f"the {name} pass was interrupted{parts.because}"


@SENTENCES.add("not-python")
def not_python(parts: Parts) -> str:
    return "; ".join(parts)


@SENTENCES.add("no-interval")
def no_interval(samples: float, processes: float) -> str:
    found = f"{count_of(samples, 'sample')} in {count_of(processes, 'process', 'processes')}"
    return f"a 95 % interval of the median cannot be computed from {found}"


@SENTENCES.add("beyond-whole")
def beyond_whole(parts: Parts) -> str:
    return f"a share above 100 % is not possible: {', or '.join(parts)}"


@SENTENCES.add("other-programs-ran")
def other_programs_ran(share: float) -> str:
    return f"other programs used the processors for {share_text(share)} of the time"


@SENTENCES.add("contradicted")
def contradicted(what: str, left: float, right: float) -> str:
    return f"{what} do not agree ({format_figures(left)} against {format_figures(right)})"


@SENTENCES.add("contradicted-order")
def contradicted_order(what: str, left: float, right: float) -> str:
    return f"{what} do not agree ({format_figures(left)} is more than {format_figures(right)})"


@SENTENCES.add("few-sectors")
def few_sectors(sectors: float) -> str:
    return (
        f"{format_figures(sectors)} sectors per request are few, and lanes that share addresses look "
        "like waste; source counters show it exactly (--depth full)"
    )


@SENTENCES.add("simulated-beginning")
def simulated_beginning(seconds: float) -> str:
    return f"only the first {seconds:.0f} s of the program were simulated"


@SENTENCES.add("entries-simulated")
def entries_simulated(count: float) -> str:
    entries = count_of(count, "entry of the region was", "entries of the region were")
    return f"{entries} simulated, after one that filled the caches; then the program was ended"


@SENTENCES.add("little-simulated")
def little_simulated(share: float) -> str:
    return f"about {share_text(share)} of the run's work was simulated, too little to represent the run"


@SENTENCES.add("simulated-part")
def simulated_part(seconds: float) -> str:
    return (
        f"only a part of the program was simulated, beginning {seconds:.0f} s after its start (under "
        "valgrind)"
    )


@SENTENCES.add("first-fault")
def first_fault(name: str, state: str, parts: Parts) -> str:
    return f"{name}: {state}{parts.because}"


@SENTENCES.add("speed")
def speed(word: str) -> str:
    return word

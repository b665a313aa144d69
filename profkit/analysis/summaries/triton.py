"""What Triton did beside the work: which configurations it chose, and what choosing and compiling took."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import plural, quantity, shortened
from profkit.core.types import GpuTrace, Summary, Table, Timing, TritonWork, Tuning

TOP = 6  # kernels in the table: more were tuned by hardly any workload, and nobody reads on


def summarize_triton(
    works: Sequence[TritonWork], timings: Sequence[Timing] = (), trace: GpuTrace | None = None
) -> Summary | None:
    """Tuning and compiling of the process that did most of it, and whether all passes ran the same configurations.

    None where no process told of Triton.
    """
    if not works:
        return None
    timed = [work for work in works if work.pass_name == "timing"]
    shown = max(timed or works, key=lambda work: (_tuned_seconds(work) or 0.0, work.compile_seconds or 0.0))
    tables = (_table(shown.tunings),) if shown.tunings else ()
    notes = [*_tried(shown), *_compiled(shown, trace), *_apart(timings, shown), *_agreement(works, shown)]
    return Summary("triton", _headline(shown, timings), (), tables, tuple(notes))


def _tuned_seconds(work: TritonWork) -> float | None:
    told = [tuning.seconds for tuning in work.tunings if tuning.seconds is not None]
    return sum(told) if told else None


def _headline(work: TritonWork, timings: Sequence[Timing]) -> str:
    tuned = [tuning for tuning in work.tunings if not tuning.cached]
    parts: list[str] = []
    if tuned:
        seconds = _tuned_seconds(work)
        took = f" in {quantity(seconds, 's')}" if seconds is not None else ""
        parts.append(f"Triton tuned {_kernels(tuned)}{took}{_outcome(tuned)}")
    elif work.tunings:
        parts.append(
            f"Triton's choice for {_kernels(work.tunings)} came from its cache on disk{_outcome(work.tunings)}"
        )
    elif work.compile_seconds:
        new = work.binaries - (work.cached or 0)
        took = quantity(work.compile_seconds, "s")
        parts.append(f"Triton compiled {plural(new, 'kernel')} in {took} or more")
    elif work.cached is not None:
        parts.append(f"{plural(work.binaries, 'kernel')} of Triton came compiled from its cache on disk")
    else:
        parts.append(f"Triton loaded {plural(work.binaries, 'kernel')}; what compiling took is not told")
    if (tuned or work.compile_seconds) and _benchmarked(timings):
        parts.append("left out of every time")
    return f"{'; '.join(parts)}."


def _outcome(tunings: Sequence[Tuning]) -> str:
    """`: 3 configurations tried, best BLOCK_M 128, 8 warps`; nothing where there is more than one outcome."""
    if len(tunings) > 1:
        return ""
    tried = tunings[0].configurations
    return (
        f": {plural(tried, 'configuration')} tried, best {tunings[0].best}"
        if tried
        else f": {tunings[0].best}"
    )


def _kernels(tunings: Sequence[Tuning]) -> str:
    names = list(dict.fromkeys(tuning.kernel for tuning in tunings))
    return shortened(names[0], 40) if len(names) == 1 else plural(len(names), "kernel")


def _benchmarked(timings: Sequence[Timing]) -> bool:
    """A benchmark's warm-up and what came before it are in no sample."""
    return bool(timings) and all(timing.kind == "benchmark" for timing in timings)


def _table(tunings: Sequence[Tuning]) -> Table:
    rows = tuple(
        (
            shortened(tuning.kernel, 28),
            shortened(tuning.key, 36) or "-",
            str(tuning.configurations) if tuning.configurations is not None else "-",
            "from disk"
            if tuning.cached
            else quantity(tuning.seconds, "s")
            if tuning.seconds is not None
            else "-",
        )
        for tuning in _longest(tunings)
    )
    note = f"and {plural(len(tunings) - TOP, 'further choice')}" if len(tunings) > TOP else None
    return Table("Tuned by Triton", ("kernel", "tuned for", "tried", "took"), rows, note)


def _longest(tunings: Sequence[Tuning]) -> list[Tuning]:
    return sorted(tunings, key=lambda tuning: -(tuning.seconds or 0.0))[:TOP]


def _tried(work: TritonWork) -> list[str]:
    notes = []
    if len(work.tunings) > 1:
        notes += [
            f"{shortened(t.kernel, 40)} ({shortened(t.key, 60)}): {t.best}." for t in _longest(work.tunings)
        ]
    if any(tuning.seconds is not None for tuning in work.tunings):
        notes.append("What tuning took includes compiling the candidates.")
    notes += [
        f"{shortened(tuning.kernel, 40)}: {tuning.failed} of {tuning.configurations} configurations did not compile,"
        " or did not fit this device."
        for tuning in work.tunings[:TOP]
        if tuning.failed
    ]
    if any(t.seconds is None and not t.cached for t in work.tunings):
        notes.append(
            "Triton keeps what tuning took for the last key of each kernel alone: the sum is a least one."
        )
    if work.left_out:
        notes.append(f"{plural(work.left_out, 'further choice')} of Triton's are not kept.")
    return notes


def _compiled(work: TritonWork, trace: GpuTrace | None) -> list[str]:
    loading = trace.compile_seconds if trace is not None else None
    apart = (
        f" Loading them onto the device is apart: {quantity(loading, 's')}, by the trace." if loading else ""
    )
    if not work.binaries:
        return []
    if work.cached is None or work.compile_seconds is None:
        return [f"What compiling took is not known: this Triton does not tell where its files are.{apart}"]
    new = work.binaries - work.cached
    if not new:
        return [f"Compiled: nothing; {plural(work.binaries, 'kernel')} lay in Triton's cache on disk.{apart}"]
    others = (
        f"; {work.cached} more lay in its cache on disk"
        if work.cached
        else "; its cache on disk had none of them"
    )
    took = quantity(work.compile_seconds, "s")
    return [
        f"Compiled: {plural(new, 'kernel')} in {took} or more, by the times of their files{others}.{apart}"
    ]


def _apart(timings: Sequence[Timing], work: TritonWork) -> list[str]:
    if (
        not timings
        or _benchmarked(timings)
        or (all(t.cached for t in work.tunings) and not work.compile_seconds)
    ):
        return []
    return [
        "A region whose first entry tunes or compiles has that in its first time, which is no sample"
        " where the entries after it are faster."
    ]


def _agreement(works: Sequence[TritonWork], shown: TritonWork) -> list[str]:
    """Whether what was counted and traced is what was timed: each process chooses for itself."""
    chosen = {_place(tuning): tuning.best for tuning in shown.tunings}
    notes: list[str] = []
    compared = 0
    for work in works:
        for tuning in work.tunings:
            known = chosen.get(_place(tuning))
            if work is shown or known is None:
                continue
            compared += 1
            if tuning.best != known:
                notes.append(
                    f"{_pass(work)} ran {shortened(tuning.kernel, 40)} as {tuning.best}, the"
                    f" {_pass(shown)[4:]} as {known}: Triton chose anew, and what they found is of two kernels."
                )
    if compared and not notes:
        return ["Every pass ran the same configurations."]
    return list(dict.fromkeys(notes))[:TOP]


def _pass(work: TritonWork) -> str:
    return "The timing" if work.pass_name == "timing" else f"The {work.pass_name} pass"


def _place(tuning: Tuning) -> tuple[str, str, str]:
    return tuning.module, tuning.kernel, tuning.key

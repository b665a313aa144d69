"""Memory over time on a run's page: process and device, steps, peak, and the lines that hold most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, isfinite, log2

from profkit.core.formatting import format_quantity, plural
from profkit.core.types import MemorySeries, Place, RunDocument
from profkit.reporting.charts.marks import AnyMark, Area, Axis, Chart, ChartGroup, Line, TextMark, Tick
from profkit.reporting.view import ItemList, PageOnly, Section
from profkit.reporting.views.run_insights import where_text

_MAX_LOOKS = 1000  # drawn of a series: profkit writes fewer, and a file may be anybody's
_LARGEST = 1e18  # bytes: more is no memory
_MAX_STEPS = 60  # lines in a chart of 600 px: closer ones are an area
_LINES = 3  # that hold most
_WORTH = 0.1  # of what the first of them holds
_ROOM = 1.08  # times the most, so that the peak's name has a place above it
# The series of one chart, by its title, and what each is called.
_CHARTS = (
    ("Process", (("resident", "resident"),)),
    ("Device", (("reserved", "reserved"), ("allocated", "allocated"))),
)


def memory_section(document: RunDocument) -> PageOnly | None:
    """Return charts of the process's and the device's memory and the lines that held most; None without samples."""
    charts = [chart for title, kinds in _CHARTS if (chart := _chart(document, title, kinds)) is not None]
    if not charts:
        return None
    lines = tuple(_holding_lines(document))
    blocks = (
        ChartGroup(tuple(charts), _note(len(charts) > 1), repeats=True),
        *((ItemList(lines),) if lines else ()),
    )
    return PageOnly((Section("Memory over time", blocks, anchor="memory-over-time"),))


def _note(with_device: bool) -> str:
    """Return how to read the charts; `with_device` adds which run the device's samples are of."""
    said = ["Looked at now and then: a peak between two looks is drawn as a line alone."]
    if with_device:
        said.append("The device's is of the run that recorded operations, from the first use of CUDA on.")
    return " ".join(said)


def _chart(document: RunDocument, title: str, kinds: Sequence[tuple[str, str]]) -> Chart | None:
    """Return the series of these kinds as areas, with the steps and the peak; None where none has two samples."""
    shown = [(name, series) for kind, name in kinds for series in document.memory if series.kind == kind]
    known = [(name, looks, series) for name, series in shown if len(looks := _looks(series)) > 1]
    if not known:
        return None
    most = max(max(size for _, size in looks) for _, looks, _ in known)
    end = max(looks[-1][0] for _, looks, _ in known)
    peak, of = max((series.peak or 0.0, name) for name, _, series in known)
    if not most < peak < _LARGEST:
        peak, of = max((max(size for _, size in looks), name) for name, looks, _ in known)
    marks: list[AnyMark] = []
    high = _ROOM * peak or 1.0
    single = next((series.steps for _, _, series in known if series.steps), ())
    if single:
        marks += _single_steps(single, end, high)
    elif title == "Process":
        marks += _steps(document, end, high)
    for number, (name, looks, _) in enumerate(known):
        edges = tuple((at, 0.0, size) for at, size in looks)
        largest = format_quantity(max(size for _, size in looks), "B")
        words = f"{name}: at most {largest} at a look, {format_quantity(looks[-1][1], 'B')} at the end"
        marks.append(Area(edges, f"area held w{number + 1}"))
        marks.append(Line(looks, f"curve w{number + 1}", words, name))
    crest = f"peak {format_quantity(peak, 'B')}"
    marks.append(Line(((0.0, peak), (end, peak)), "peak", f"{crest}, {of}"))
    marks.append(TextMark(0.0, peak, crest, "peak", sides="ra"))
    parts = [
        mark.hover for mark in marks if isinstance(mark, Line | Area) and mark.hover and mark.style != "step"
    ]
    parts += [f"{plural(len(single), 'entry', 'entries')} of the region"] if single else []
    words = f"{title}: {'; '.join(parts)}."
    return Chart(
        "memory",
        f"Memory of the {title.lower()}",
        words,
        Axis("time", "s", low=0.0, high=end),
        Axis(f"{title}, bytes over seconds", "B", low=0.0, high=high, ticks=_binary_ticks(high)),
        tuple(marks),
    )


def _binary_ticks(high: float) -> tuple[Tick, ...]:
    """Return at most about six ticks, in bytes, at multiples of a power of two: round numbers of MiB."""
    step = 2.0 ** ceil(log2(high / 5))
    return tuple(Tick(step * n, format_quantity(step * n, "B")) for n in range(int(high / step) + 1))


def _looks(series: MemorySeries) -> tuple[tuple[float, float], ...]:
    """Return a series' samples (seconds, bytes) in order of time, without values that cannot be sizes or times.

    A file may hold anything. Of more than `_MAX_LOOKS` samples the largest of each group is kept.
    """
    pairs = sorted(zip(series.seconds, series.bytes, strict=False))
    fine = [
        (at, size)
        for at, size in pairs
        if isfinite(at) and isfinite(size) and 0 <= at < _LARGEST and 0 <= size < _LARGEST
    ]
    every = -(-len(fine) // _MAX_LOOKS) or 1
    kept = [max(fine[at : at + every], key=lambda look: look[1]) for at in range(0, len(fine), every)]
    return tuple(kept) if kept and kept[-1][0] > 0 else ()


def _steps(document: RunDocument, end: float, high: float) -> Iterator[AnyMark]:
    """Yield the time of the steps as an area with a label; when each of them began was not recorded."""
    split = document.time_split
    if split is None or not split.steady or not split.startup or not split.repeats:
        return
    if not 0 < split.startup < end:
        return
    step = format_quantity(split.steady / split.repeats, "s")
    words = f"{plural(split.repeats, 'step')} of {step}, from {format_quantity(split.startup, 's')} on"
    yield Area(((split.startup, 0.0, high), (end, 0.0, high)), "steps", words)
    yield TextMark(split.startup, 0.94 * high, "steps", "steps", sides="r")


def _single_steps(steps: Sequence[float], end: float, high: float) -> Iterator[AnyMark]:
    """Yield a line where each entry of the region began; of more than `_MAX_STEPS` only every n-th."""
    known = [at for at in steps if isfinite(at) and 0 <= at <= end]
    every = -(-len(known) // _MAX_STEPS) or 1
    shown = known[::every]
    for at in shown:
        begins = f"an entry of the region begins at {format_quantity(at, 's')}"
        yield Line(((at, 0.0), (at, high)), "step", begins)
    if shown:
        which = f"every {every}th entry" if every > 1 else "entries of the region"
        yield TextMark(shown[0], 0.94 * high, which, "steps", sides="r")


def _holding_lines(document: RunDocument) -> Iterator[str]:
    """Yield `Python's objects of train.py:9: 34 MiB` for the largest lines, then those of the device's tensors.

    At most `_LINES` of each; lines of the device only where its allocations were recorded.
    """
    folder = document.workload.folder
    top = document.allocations.top if document.allocations is not None else ()
    largest = max((allocation.size for allocation in top), default=0)
    for allocation in [allocation for allocation in top if allocation.size >= _WORTH * largest > 0][:_LINES]:
        place = where_text(Place(file=allocation.file, line=allocation.line), folder)
        yield f"Python's objects of {place}: {format_quantity(float(allocation.size), 'B')}"
    held = next((profile for profile in document.profiles if profile.kind == "held-lines"), None)
    for spot in held.hotspots[:_LINES] if held is not None else ():
        place = where_text(Place(function=spot.function, file=spot.file, line=spot.line), folder)
        size = format_quantity(spot.own, "B")
        yield f"The device's tensors of {place or 'the backward pass'}: {size} when it was full"

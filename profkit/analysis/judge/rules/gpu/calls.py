"""Rules on what a program asks of the driver or of a library again and again: memory, graphs, small copies, copies on
the device, sums into few places, factorisations, lengths of FFTs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import prod

from profkit.analysis.account.step_places import dispatching_lines, holding_line
from profkit.analysis.evidence import (
    RunEvidence,
    file_name,
    idle_share,
    launching_lines,
    looping_call,
    main_line,
    part_text,
    text_at,
)
from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.host import called_back
from profkit.analysis.judge.rules.gpu.lines import (
    MIN_PER_REPETITION,
    MIN_SHARE,
    MIN_WAITS,
    looping_place,
    place_of_line,
)
from profkit.analysis.judge.words import words, words_for
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import ApiCall, Gain, GpuTrace, HoldingCall, Hotspot, Insight, KernelTime, Place

MUCH = 0.1  # of the time: a kernel with less of it is not what a program does
REPLAYS = 2  # of a graph that was worth a capture
BACK = 0.2  # of what managed memory moves one way, and back again
SMALL, SEVERAL = 1 << 16, 4  # bytes of a copy, and such copies at a line in each step
PROGRAMS, KERNELS = 5, 20  # of JAX, and in each step: fewer are a step that is compiled in pieces
MIN_COLLISIONS = 1000  # times as many elements are added as there are places for them
_ALLOCATING = re.compile(r"^cu(?:da)?(?:Malloc|MemAlloc)(?:Pitch|Managed)?(?:_v\d+)?$")
_FREEING = re.compile(r"^cu(?:da)?(?:Mem)?Free(?:_v\d+)?$")
_PINNING = re.compile(r"^cu(?:da)?(?:Mem)?(?:HostAlloc|HostRegister|MallocHost|AllocHost)(?:_v\d+)?$")
_UNPINNING = re.compile(r"^cu(?:da)?(?:Mem)?(?:FreeHost|HostUnregister)(?:_v\d+)?$")
_LOADING, _UNLOADING = (
    re.compile(r"^cu(?:da)?(?:Module|Library)Load"),
    re.compile(r"^cu(?:Module|Library)Unload"),
)
_OF_TRANSFORMS, _PLANS, _NOTHING = re.compile(r"fft", re.IGNORECASE), re.compile(r"fft"), re.compile(r"(?!)")
STEADY = 0.4  # of the calls, in the second half of the steps: then they are made in all of them
_INSTANTIATING, _REPLAYING = re.compile(r"^cu(?:da)?GraphInstantiate"), re.compile(r"^cu(?:da)?GraphLaunch")
_CAPTURING = re.compile(r"^cu(?:da)?(?:Stream(?:Begin|End)Capture|Graph(?:Instantiate|(?:Exec)?Destroy))")
_EMPTIES, _PINS = re.compile(r"empty_cache\("), re.compile(r"pin_memory|pinned|cudaHost(?:Register|Alloc)")
_CAPTURES = re.compile(r"cuda\.graph\(|make_graphed_callables|CUDAGraph\(|capture_begin")
_ADDING = re.compile(r"^aten::(?:index_add|scatter_add|scatter_reduce|_?index_put(?:_impl)?)_? \[")
_FACTORING = re.compile(
    r"^aten::(?:_?linalg_)?(lu_factor|solve|inv|cholesky|eigh|svd|qr|det|slogdet)(?:_ex)?_? \["
)
_SHAPE = re.compile(r"\[([\d,]+)\]")
_TRANSFORM = re.compile(r"^aten::_fft_(r2c|c2c|c2r) \[(?:\d+,)*(\d+)\]")
_SORTING = re.compile(r"^aten::_?(unique_dim|unique|sort|argsort)2?(?:_stable)? \[")
_COPYING = re.compile(r"direct_copy_kernel|CatArrayBatchedCopy")
_IN_CALLS = "the time that the host spends in these calls"
_MODULE = re.compile(r"hlo_module=(jit_\w+)")
# Of a line of Python that copies an array itself, whatever else the host does there.
_COPIES = re.compile(
    r"\.at\[|\bcopy\(|clone\(|contiguous|astype\(|expand|repeat|tile\(|roll\(|"
    r"\b(?:cat|stack|concatenate|append)\("
)
AS_MUCH, MAX_CALLS = 0.1, 4  # of the bytes that are copied in a step; and calls in it
_OF_COPIES = (
    (re.compile(r"\.at\["), "updated"),
    (re.compile(r"expand|repeat|tile\("), "expanded"),
    (re.compile(r"\b(?:cat|stack|concatenate|append)\(|aten::cat "), "joined"),
)


def device_allocations(run: RunEvidence) -> Iterator[Insight]:
    """Find memory of the device that is allocated and freed in each step: the second waits for all kernels."""
    made, freed = _calls_of(run, _ALLOCATING), _calls_of(run, _FREEING)
    share = _share_of(run, (*made, *freed), made, freed)
    if not share or any(graphs_captured_again(run)):  # each capture has a pool of its own
        return
    place = _calling_place(run, (*made, *freed), _EMPTIES)
    yield Insight(
        "device-allocations",
        "Keep the device's memory: it is allocated and freed again in each step",
        f"{_count(made):,} allocations and {_count(freed):,} releases take {percent_text(100 * share)} of the time; a "
        "release waits until all kernels are done",
        words(
            f"device-allocations.{'emptied' if _EMPTIES.search(text_at(run, place)) else run.framework}",
            "program",
        ),
        place,
        run.gain(share, _IN_CALLS),
    )


def modules_loaded_again(run: RunEvidence) -> Iterator[Insight]:
    """Find code that is loaded onto the device in each step, to its end: something is compiled or planned anew.

    Of what torch and JAX compile again, and of shapes for which cuDNN prepares kernels, other rules speak.
    """
    trace = run.trace
    if trace is None or not trace.span or not trace.repeats or run.profile("recompilations") is not None:
        return
    loads = [call for call in trace.holding if _LOADING.match(call.name)]
    both = [*loads, *(call for call in trace.holding if _UNLOADING.match(call.name))]
    made, later = sum(call.calls for call in loads), sum(call.later for call in loads)
    share = min(idle_share(run) or 0.0, sum(call.starving for call in both) / trace.span)
    if made < max(MIN_WAITS, trace.repeats) or later < STEADY * made or share < MIN_SHARE:
        return
    transforms = any(_OF_TRANSFORMS.search(kernel.kernel.name) for kernel in trace.kernels)
    removed = sum(call.calls for call in both) - made
    unloads = f", and {removed / trace.repeats:,.0f} are unloaded" if removed >= trace.repeats else ""
    name = f"modules-loaded.fft.{run.framework}" if transforms else "modules-loaded"
    held = holding_line(run.document, sum(call.starving for call in both) / trace.span)
    place = held if held.file is not None else _calling_place(run, both, _PLANS if transforms else _NOTHING)
    yield Insight(
        "modules-loaded",
        words(f"modules-loaded{'.fft' if transforms else ''}.title", "program"),
        f"{made / trace.repeats:,.0f} modules are loaded in each step{unloads}: for {percent_text(100 * share)} of the "
        "time the GPU waits for these calls",
        words(name, "program"),
        place,
        run.gain(share, "the time in which the GPU waits for these calls; what prepares them goes as well"),
    )


def repeated_pinning(run: RunEvidence) -> Iterator[Insight]:
    """Find memory of the host that is pinned and released in each step: it takes longer than the copy it speeds up."""
    made, freed = _calls_of(run, _PINNING), _calls_of(run, _UNPINNING)
    share = _share_of(run, (*made, *freed), made, freed)
    if share:
        yield insight_at(
            "repeated-pinning",
            "Pin the host's memory once: it is pinned and released again in each step",
            f"{_count(made):,} calls that pin ({made[0].name}) and {_count(freed):,} that release take "
            f"{percent_text(100 * share)} of the time: each goes through all pages of its buffer, and the GPU waits",
            _calling_place(run, (*made, *freed), _PINS),
            run.gain(share, _IN_CALLS),
        )


def graphs_captured_again(run: RunEvidence) -> Iterator[Insight]:
    """Find graphs of CUDA that are captured in each step and hardly replayed: that takes longer than plain launches."""
    made, launched = _calls_of(run, _INSTANTIATING), _count(_calls_of(run, _REPLAYING))
    around = [call for known in (_CAPTURING, _ALLOCATING, _FREEING) for call in _calls_of(run, known)]
    share = _share_of(run, around, made)
    if share and launched <= REPLAYS * _count(made):
        yield insight_at(
            "graphs-captured-again",
            "Capture the CUDA graph once and replay it: it is captured again in each step",
            f"{_count(made):,} graphs are made for {launched:,} launches of them: the calls that make them, and those "
            f"for the memory that each takes for itself, take {percent_text(100 * share)} of the time",
            _calling_place(run, made, _CAPTURES),
            run.gain(share, f"{_IN_CALLS}; what the host does between them goes as well"),
        )


def managed_memory(run: RunEvidence) -> Iterator[Insight]:
    """Find managed memory that host and device use alternately, so that its pages move back and forth in each step."""
    trace, idle = run.trace, idle_share(run)
    moved = (
        [transfer for transfer in trace.transfers if transfer.kind.endswith("(managed)")]
        if trace is not None
        else []
    )
    seconds = sum(transfer.seconds for transfer in moved)
    if (
        trace is None
        or not trace.repeats
        or not trace.span
        or idle is None
        or seconds < MIN_SHARE * trace.span
    ):
        return
    count = sum(transfer.count for transfer in moved) / trace.repeats
    ways = {transfer.kind: transfer.bytes / trace.repeats for transfer in moved}
    to, back = ways.get("host to device (managed)", 0.0), ways.get("device to host (managed)", 0.0)
    if min(to, back) < BACK * max(to, back):  # the first use, which moves a page once
        return
    line = next(
        (place_of_line(gpu_line) for gpu_line in trace.lines if gpu_line.call == "cudaMallocManaged"), None
    )
    yield insight_at(
        "managed-memory",
        "Keep this memory on the GPU: its pages move to the host and back in each step",
        f"{format_quantity(to, 'B')} to the GPU and {format_quantity(back, 'B')} back in each step, in {count:,.0f} "
        f"migrations: {percent_text(100 * seconds / trace.span)} of the time, in part within kernels; the GPU is idle "
        f"for {percent_text(100 * idle)} of it",
        line or main_line(trace.kernels[:1]),
        run.gain(min(1.0, seconds / trace.span + idle), "the migrations, and all waiting"),
    )


def _calls_of(run: RunEvidence, pattern: re.Pattern[str]) -> list[ApiCall]:
    return [call for call in run.trace.api if pattern.match(call.name)] if run.trace is not None else []


def _share_of(run: RunEvidence, calls: Sequence[ApiCall], *repeated: Sequence[ApiCall]) -> float:
    """Return the share of the time that calls take while the device waits; 0 of those that are few, or not
    `repeated`.
    """
    trace = run.trace
    if trace is None or not trace.span or not trace.repeats:
        return 0.0
    share = min(idle_share(run) or 0.0, sum(call.seconds for call in calls) / trace.span)
    often = min(map(_count, repeated)) >= max(MIN_WAITS, MIN_PER_REPETITION * trace.repeats)
    return share if often and share >= MIN_SHARE else 0.0


def _count(calls: Sequence[ApiCall]) -> int:
    return sum(call.calls for call in calls)


def _calling_place(
    run: RunEvidence, calls: Sequence[ApiCall | HoldingCall], sampled: re.Pattern[str]
) -> Place:
    """Return the line of the source that takes most time in these calls; else that of most samples with such a text."""
    names, trace = {call.name.partition("_")[0] for call in calls}, run.trace
    lines = [line for line in trace.lines if line.call in names] if trace is not None else []
    if lines:
        return place_of_line(max(lines, key=lambda line: line.seconds))
    spots = (
        hot_spot
        for hot_spot in run.document.hot_spots
        if hot_spot.code is not None and sampled.search(hot_spot.code.text)
    )
    return next((spot.where for spot in spots), looping_place(run))


def small_copies(run: RunEvidence) -> Iterator[Insight]:
    """Yield a line that sends many small pieces to the device in each step: each is a call that waits."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.line_span or not trace.lines_of or not trace.repeats:
        return
    sent_in_all = sum(transfer.count for transfer in trace.transfers if transfer.kind == "host to device")
    recorded = sum(
        transfer.count
        for line in trace.lines
        for transfer in line.transfers
        if transfer.kind == "host to device"
    )
    for line in sorted(trace.lines, key=lambda gpu_line: -gpu_line.seconds):
        sent = [transfer for transfer in line.transfers if transfer.kind == "host to device"]
        count, size = sum(transfer.count for transfer in sent), sum(transfer.bytes for transfer in sent)
        share = min(idle, line.seconds / trace.line_span)
        each = sent_in_all * count / recorded / trace.repeats if recorded else 0.0
        if count < MIN_WAITS or each < SEVERAL or size > SMALL * count or share < MIN_SHARE:
            continue
        text = (
            f"{format_quantity(size / count, 'B')} each: the calls take {percent_text(100 * share)} of the time, and "
            f"the GPU is idle for {percent_text(100 * idle)} of it"
        )
        back, change = called_back(run, line), words("small-copies", "program")
        if back is not None:
            sample, calls = back
            name = place_name(Place(function=sample.function))
            where = f"{file_name(sample.file or '')}:{sample.line}"
            text += f"; meanwhile a library calls {name} ({where}) {calls:,.0f} times in each step"
            change = words("small-copies.called-back", "program").format(name=name)
        gain = run.gain(share, "as if these calls were not made")
        title = f"Copy to the GPU once instead of {each:,.0f} times in each step"
        yield Insight("small-copies", title, text, change, place_of_line(line), gain)
        return


STEPS = 5  # repetitions: what repeats only twice, as setting up a model does, is not a step worth this advice


def operations_one_by_one(run: RunEvidence) -> Iterator[Insight]:
    """Yield a step of JAX that is not compiled: each operation is a program of its own, and is launched by itself."""
    trace, idle = run.trace, idle_share(run)
    if run.framework != "jax" or trace is None or idle is None or not trace.repeats or idle < MIN_SHARE:
        return
    programs = {
        found[1] for kernel in trace.kernels for name in kernel.ranges if (found := _MODULE.search(name))
    }
    each = trace.launches / trace.repeats
    if len(programs) < PROGRAMS or each < KERNELS or trace.repeats < STEPS:
        return  # what a model is made with runs one by one, and some of it twice
    kinds = ("python", "library", "lock", "workers", "waiting")
    spots = [
        hot_spot
        for hot_spot in run.document.hot_spots
        if hot_spot.kind in kinds and hot_spot.code is not None
    ]
    calls = [(hot_spot, looping_call(run, hot_spot.where)) for hot_spot in spots]
    # What is not called from a loop is of the program's start, and may take longest: each operation is compiled there.
    repeated = (
        call
        for hot_spot, call in calls
        if call != hot_spot.where or (hot_spot.code and hot_spot.code.loop is not None)
    )
    launching = dispatching_lines(run.document)
    where = (
        looping_call(run, max(launching, key=lambda pair: pair[1])[0])
        if launching
        else next(repeated, calls[0][1] if calls else Place())
    )
    yield insight_at(
        "not-compiled",
        "Put jax.jit around the whole step: its operations run one by one",
        f"{each:.0f} kernels in each step, of {len(programs)} programs that each do one operation "
        f"({', '.join(sorted(programs)[:3])}, ...); the GPU is idle for {percent_text(100 * idle)} of the time",
        where,
        run.gain(idle, "the time in which the GPU waits for the host"),
    )


def is_copy(kernel: KernelTime) -> bool:
    """Return whether a kernel of ATen only copies, without changing the type."""
    name = kernel.kernel.name
    return _COPYING.search(name) is not None and "WithCast" not in name


def device_copies(run: RunEvidence) -> Iterator[Insight]:
    """Yield a line that copies whole arrays within the device."""
    trace = run.trace
    if trace is None or not trace.span or not trace.repeats:
        return
    by_kernels = [kernel for kernel in trace.kernels if is_copy(kernel) and not _joins_gradients(kernel)]
    by_driver = [transfer for transfer in trace.transfers if transfer.kind == "device to device"]
    share = run.share_of(by_kernels)
    share += min(trace.copying or 0.0, sum(transfer.seconds for transfer in by_driver)) / trace.span
    count = sum(kernel.launches for kernel in by_kernels) + sum(transfer.count for transfer in by_driver)
    if share < MUCH or count < MIN_PER_REPETITION * trace.repeats:
        return
    moved = sum(transfer.bytes for transfer in by_driver)
    largest = max(by_kernels, key=lambda kernel: kernel.total, default=None)
    if largest is not None and largest.total < sum(transfer.seconds for transfer in by_driver):
        largest = None
    of_what = f", most of {largest.operation}" if largest is not None and largest.operation else ""
    size = f", {format_quantity(moved, 'B')}" if moved and largest is None else ""
    evidence = (
        f"{plural(count, 'copy', 'copies')}{size}{of_what} take {percent_text(100 * share)} of the time"
    )
    gain = run.gain(share, "as if nothing were copied")
    copied = _copied_arguments(run, moved / trace.repeats) if largest is None else None
    if copied is not None:
        yield _undonated(copied, evidence, gain)
        return
    place, by_line = looping_place(run), _copying_lines(trace, by_kernels)
    if trace.lines:
        place = max(by_line, key=by_line.__getitem__, default=Place())
    elif _COPIES.search(text_at(run, place)) is None:
        place = Place()  # where the host is: what the device copies meanwhile may be of another line
    of_line = f"; this line makes {part_text(by_line, place)} of them" if place in by_line else ""
    title, change = _advice(run, f"{text_at(run, place)} {largest.operation if largest is not None else ''}")
    evidence += f": each reads and writes all of its data{of_line}"
    yield Insight("device-copies", title, evidence, change, place, gain)


def _joins_gradients(kernel: KernelTime) -> bool:
    """Return whether autograd joins the gradients of what the program split: it has no array to write them into."""
    return kernel.backward_of is not None and (kernel.operation or "").startswith(
        ("aten::cat ", "aten::stack ")
    )


def _advice(run: RunEvidence, text: str) -> tuple[str, str]:
    """Return the title and what to change, by the source of a line and the operation that copies there."""
    how = next((name for known, name in _OF_COPIES if known.search(text)), "layout")
    jax = run.framework == "jax"
    title = words(f"device-copies.{'updated' if how == 'layout' and jax else how}.title", "program")
    if how == "layout" or (how == "expanded" and run.framework == "torch"):
        return title, words_for(run, f"device-copies.{how}")
    return title, words(f"device-copies.{how}", "program")


def _copied_arguments(run: RunEvidence, moved: float) -> tuple[Hotspot, ...] | None:
    """Return the arguments that programs of JAX copy whole, largest first, if they are what is copied in a step.

    `moved`: bytes that were copied within the device in a step. Their bytes have to be these, of all programs or of the
    one with most of them: its text says what it copies, and not whether it ran.
    """
    profile = run.profile("copied-arguments")
    if profile is None or run.framework != "jax":
        return None
    spots = sorted(profile.hotspots, key=lambda spot: -spot.own)
    modules: dict[str, list[Hotspot]] = {}
    for spot in spots:
        modules.setdefault(_module_of(spot), []).append(spot)
    most = max(modules.values(), key=_size)
    for some in (most, spots):
        times = max(1, min(MAX_CALLS, round(moved / _size(some))))
        if abs(moved - times * _size(some)) <= AS_MUCH * moved:
            return tuple(most)
    return None


def _size(spots: Sequence[Hotspot]) -> float:
    return sum(spot.own for spot in spots)


def _module_of(spot: Hotspot) -> str:
    """Return the name of the program that copies an argument: `jit_remember`."""
    return (spot.library or "").partition(" ")[0]


def _undonated(copied: Sequence[Hotspot], evidence: str, gain: Gain) -> Insight:
    """Return that a jitted function copies its arguments, at the line that changes the largest of them."""
    first = copied[0]
    name = _module_of(first).partition("_")[2]
    arguments = list(dict.fromkeys((spot.library or "").partition(" ")[2] for spot in copied))
    known = [argument for argument in arguments if argument]
    of_what = f" of its argument{'s' if len(known) > 1 else ''} {', '.join(known)}" if known else ""
    names = ", ".join(f'"{argument}"' for argument in known)
    donate = (
        f"donate_argnames={names if len(known) == 1 else f'({names})'}" if known else "donate_argnums=..."
    )
    return Insight(
        "device-copies",
        f"Donate what jax.jit({name}) changes: it copies all of it in each call",
        f"{evidence}; {name} copies {format_quantity(_size(copied), 'B')}{of_what} in each call, since its caller "
        "keeps them",
        words("device-copies.undonated", "program").format(name=name, donate=donate),
        Place(function=first.function or None, file=first.file, line=first.line),
        gain,
    )


def _copying_lines(trace: GpuTrace, kernels: Sequence[KernelTime]) -> dict[Place, float]:
    seconds = launching_lines(kernels)
    for line in trace.lines:
        copied = sum(transfer.seconds for transfer in line.transfers if transfer.kind == "device to device")
        if copied:
            seconds[place_of_line(line)] = seconds.get(place_of_line(line), 0.0) + copied
    return seconds


def by_operation(
    run: RunEvidence, matches: Callable[[KernelTime], object]
) -> Iterator[tuple[KernelTime, float, Place]]:
    """Yield, if such operations take much time, the largest kernel, the share of all of them, and their line."""
    own = [kernel for kernel in run.times if matches(kernel)]
    share = run.share_of(own)
    if own and share >= MUCH:
        yield own[0], share, main_line(own)


def atomic_contention(run: RunEvidence) -> Iterator[Insight]:
    """Find sums of many rows into few, where additions to the same address wait for each other."""
    for largest, share, place in by_operation(run, _adds_into_few):
        sizes = shapes(largest.operation)
        yield insight_at(
            "atomic-contention",
            "Sum without atomic operations: many rows are added into few",
            f"{(largest.operation or '').split(' ')[0]} adds {max(sizes):,} numbers into {sizes[0]:,} places, in "
            f"{percent_text(100 * share)} of the time: additions to the same address wait for each other",
            place,
            run.gain(share, "the time of these kernels"),
        )


def shapes(operation: str | None) -> list[int]:
    """Return the elements of each tensor that an operation works on."""
    return [prod(map(int, found.split(","))) for found in _SHAPE.findall(operation or "")]


def _adds_into_few(kernel: KernelTime) -> bool:
    sizes = shapes(kernel.operation) if _ADDING.match(kernel.operation or "") else [0]
    return 0 < MIN_COLLISIONS * sizes[0] <= max(sizes)


def repeated_factorisation(run: RunEvidence) -> Iterator[Insight]:
    """Yield a matrix that is factorised in each step."""
    for largest, share, place in by_operation(run, lambda kernel: _FACTORING.match(kernel.operation or "")):
        word = _FACTORING.match(largest.operation or "")
        if run.trace is None or not run.trace.repeats or word is None:
            return
        yield insight_at(
            "repeated-factorisation",
            f"Factorise the matrix once, if it stays the same: {word[1]} runs in each step",
            f"{largest.operation} and the like take {percent_text(100 * share)} of the time",
            place,
            run.gain(share, "as if it were factorised once"),
        )


def sorting(run: RunEvidence) -> Iterator[Insight]:
    """Yield an operation of torch that sorts, for much of the time."""
    for largest, share, place in by_operation(run, lambda kernel: _SORTING.match(kernel.operation or "")):
        word = _SORTING.match(largest.operation or "")
        if word is None or "sort" not in largest.kernel.name.lower():
            return
        kind = word[1].removeprefix("arg")
        yield Insight(
            "sorting",
            words(f"sorting.{kind}.title", "torch"),
            f"{largest.operation} sorts all that it is given, in {percent_text(100 * share)} of the time",
            words(f"sorting.{kind}", "torch"),
            place,
            run.gain(share, "as if nothing were sorted"),
        )


def fft_lengths(run: RunEvidence) -> Iterator[Insight]:
    """Find FFTs of a length with a large prime factor, which cuFFT computes as convolutions of a greater length."""
    for _, share, place in by_operation(run, lambda kernel: "bluestein" in kernel.kernel.name):
        inputs = [match for kernel in run.times if (match := _TRANSFORM.match(kernel.operation or ""))]
        # of c2r that, or one less
        lengths = [2 * int(match[2]) - 1 if match[1] == "c2r" else int(match[2]) for match in inputs]
        bad = next((length for length in lengths if next_fast_length(length) != length), None)
        padded = f"; the next one is {next_fast_length(bad):,}" if bad is not None else ""
        yield Insight(
            "fft-length",
            "Pad the length of the FFT: it has a large prime factor",
            f"kernels of Bluestein's algorithm take {percent_text(100 * share)} of the time: cuFFT uses it where the "
            "length has a prime factor above 127, and computes several longer transforms instead",
            f"Pad with zeros to a product of 2, 3, 5 and 7{padded}. {words('fft-length', 'program')}",
            place,
            run.gain(share, "as if the padded transform cost nothing"),
        )


def next_fast_length(length: int) -> int:
    """Return the smallest product of 2, 3, 5 and 7 that is not below `length`."""
    while True:
        rest = length
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 1

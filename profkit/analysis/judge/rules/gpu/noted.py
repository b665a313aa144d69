"""Rules on what the companion of a process noted: compiled again, memory that stays or is full, checks, padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.evidence import RunEvidence, idle_share
from profkit.analysis.function_names import function_name
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.lines import MIN_SHARE, PROGRAM, elementwise_share, repeated_spot
from profkit.analysis.judge.words import words
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import Gain, Hotspot, Insight, Place

AGAIN = 4  # compilations of one function: fewer are its few shapes
PIECES = 0.1  # of what is reserved: so much more than is used lies in pieces
TUNING = 0.125  # seconds: 25 ms of warm-up and 100 ms of calls, as triton.autotune tries a configuration
MUCH = 0.05  # of the device's memory, by which the program grew while it was looked at


def graph_breaks(run: RunEvidence) -> Iterator[Insight]:
    """Find a compiled function that is left for Python: each piece is launched separately, or nothing is compiled."""
    profile, trace = run.profile("graph-breaks"), run.trace
    if profile is None or trace is None:
        return
    share = max(idle_share(run) or 0.0, elementwise_share(run))
    if share < MIN_SHARE:
        return
    first = profile.hotspots[0]
    whole = [bool(row.counters.get("whole")) for row in profile.hotspots]
    outer = "; what calls this function is not compiled at all" if any(whole) and not all(whole) else ""
    lines = len({(row.file, row.line) for row in profile.hotspots})
    yield Insight(
        "graph-breaks",
        "Remove the code that torch.compile cannot handle: the whole function runs uncompiled"
        if all(whole)
        else f"Remove graph breaks of torch.compile, in {plural(lines, 'line')}",
        f"{first.function.rstrip('.')}{_other_lines(profile.hotspots)}{outer}",
        words(
            f"graph-breaks.{'tensors' if first.function.startswith('Data-dependent') else 'python'}", "torch"
        ),
        Place(file=first.file, line=first.line),
        run.gain(share, "what is launched in pieces: waiting and element-wise kernels"),
    )


_COMPILERS = {"jax": "JAX", "triton": "Triton", "torch": "torch.compile"}


def recompilations(run: RunEvidence) -> Iterator[Insight]:
    """Yield what torch.compile, JAX or Triton compiles again and again; torch gives up after eight times."""
    profiles = [profile for profile in run.document.profiles if profile.kind == "recompilations"]
    often = [row for profile in profiles for row in profile.hotspots if (row.calls or 0) >= AGAIN]
    first = max(often, key=lambda row: row.total or 0.0, default=None)
    if first is None:
        return
    split = run.document.time_split
    wall = split.wall if split is not None else None
    share = min(1.0, first.total / wall) if first.total and wall else None
    if (
        share is not None and share < MIN_SHARE
    ):  # as JAX's own functions are for the arrays that a program begins with
        return
    took = f", in {format_quantity(first.total, 's')}" if share is not None and first.total else ""
    place = Place(function=first.function, file=first.file, line=first.line)
    if first.file is not None and not is_users_code(
        first.file
    ):  # a module that torch wraps: the line that calls it
        spot = repeated_spot(run)
        place = spot.where if spot is not None else place
    by = next((name for name in _COMPILERS if name in first.counters), "torch")
    because = f"the first time because of {first.library}" if by == "torch" else first.library
    yield Insight(
        "recompilations",
        f"Compile this {'kernel' if by == 'triton' else 'function'} once: {_COMPILERS[by]} compiles it again "
        f"{first.calls} times",
        f"{because}{took}",
        words(f"recompilations.{by}", "program"),
        place,
        Gain(share, PROGRAM, "as if it were compiled once") if share is not None else None,
    )


def _other_lines(spots: Sequence[Hotspot]) -> str:
    lines = list(dict.fromkeys(row.line for row in spots[1:] if row.line != spots[0].line))
    return f"; also in line {', '.join(map(str, lines[:5]))}" if lines else ""


def autotuned_again(run: RunEvidence) -> Iterator[Insight]:
    """Yield a kernel that Triton tunes for each of many keys: each time it tries all configurations."""
    profile, split = run.profile("tuned-kernels"), run.document.time_split
    first = profile.hotspots[0] if profile is not None else None
    if first is None or split is None or split.wall <= 0 or (first.calls or 0) < AGAIN:
        return
    keys, tried = first.calls or 0, round(first.counters.get("configurations", 0.0))
    seconds = (keys - 1) * tried * TUNING
    share = min(1.0, seconds / split.wall)
    yield insight_at(
        "autotuned-again",
        f"Tune {function_name(first.function)} once: Triton tunes it for {keys} different keys",
        f"for each, {tried} configurations are tried, about {format_quantity(TUNING, 's')} long: "
        f"{format_quantity(seconds, 's')} more than for one key",
        Place(function=first.function, file=first.file, line=first.line),
        Gain(share, PROGRAM, "as if it were tuned once"),
    )


def growing_device_memory(run: RunEvidence) -> Iterator[Insight]:
    """Yield a line whose tensors stay: it held more at each look."""
    profile = run.profile("growing-lines")
    if profile is None:
        return
    first = profile.hotspots[0]
    counters = first.counters
    seconds = counters["end"] - counters["begin"]
    rate = f", {format_quantity(first.own / seconds, 'B/s')}" if seconds > 0 else ""
    yield insight_at(
        "growing-memory",
        "Release this line's tensors: more and more of them stay on the device",
        f"their memory grew at each of {counters['looks']:.0f} measurements: "
        f"{format_quantity(counters['first'], 'B')}, then {format_quantity(first.total or 0.0, 'B')} in "
        f"{plural(first.calls or 0, 'block')}{rate}{_other_lines(profile.hotspots)}",
        Place(function=first.function or None, file=first.file, line=first.line),
    )


def memory_is_full(run: RunEvidence) -> Iterator[Insight]:
    """Yield what held the device's memory when a program asked for more than was left."""
    profile = run.profile("held-lines")
    if profile is None:
        return
    spots, known = profile.hotspots, profile.hotspots[0].counters
    lines = [
        f"{format_quantity(row.own, 'B')} in {plural(row.calls or 0, 'block')} by {_holder(row)}"
        for row in spots[:4]
    ]
    reserved = known.get("reserved", 0.0)
    requested, unused = format_quantity(known.get("asked", 0.0), "B"), reserved - profile.total
    pieces = (
        f"; {format_quantity(unused, 'B')} more are reserved but fragmented: "
        "PYTORCH_ALLOC_CONF=expandable_segments:True"
        if unused > PIECES * reserved
        else ""
    )
    first = next((row for row in spots if row.file is not None), spots[0])
    yield insight_at(
        "out-of-memory",
        "The memory of the device is full",
        f"{requested} were asked for, and {format_quantity(profile.total, 'B')} are in use: {'; '.join(lines)}{pieces}",
        Place(function=first.function or None, file=first.file, line=first.line),
    )


def _holder(spot: Hotspot) -> str:
    if spot.file is None:
        return "the backward pass"
    return f"{spot.file.replace(chr(92), '/').rpartition('/')[2]}:{spot.line}"


CHECKS = {
    "detect_anomaly": "autograd looks for NaN in every backward operation, and keeps the stack of every forward one",
    "CUDA_LAUNCH_BLOCKING": "CUDA_LAUNCH_BLOCKING is set: every launch waits until its kernel is done",
}


def debug_checks(run: RunEvidence) -> Iterator[Insight]:
    """Yield a switch for debugging that was left on, where the device waits."""
    profile, share = run.profile("debug-checks"), idle_share(run)
    for spot in profile.hotspots if profile is not None else ():
        what = CHECKS.get(spot.library or "")
        if what and share is not None and share >= MIN_SHARE:
            yield Insight(
                "debug-checks",
                f"Switch off {spot.library}: it is for debugging",
                f"{what}; the GPU is idle for {percent_text(100 * share)} of the time",
                words(f"debug-checks.{spot.library}", "program"),
                Place(function=spot.function or None, file=spot.file, line=spot.line),
                run.gain(share, "the time in which the GPU waits for the host"),
            )


PADDED = 0.3  # of the columns: a batch in which fewer are padding alone is near its longest row


def padded_batches(run: RunEvidence) -> Iterator[Insight]:
    """Find batches of token ids that are padded to a width which none of their rows needs."""
    profile = run.profile("padded-batches")
    spot = max(profile.hotspots, key=lambda row: row.own) if profile is not None else None
    if spot is None or not spot.total or spot.own < PADDED * spot.total or not spot.calls:
        return
    share = min(1.0, spot.own / spot.total)
    width, used = spot.total / spot.calls, (spot.total - spot.own) / spot.calls
    yield Insight(
        "padded-batches",
        f"Pad each batch to its own longest row: {percent_text(100 * share)} of the columns are padding in all rows",
        f"in {plural(spot.calls, 'batch', 'batches')} that this line brings to the GPU, of {width:,.0f} columns "
        f"{used:,.0f} hold data: the GPU computes the rest, too",
        words("padded-batches", "program"),
        Place(function=spot.function or None, file=spot.file, line=spot.line),
        run.gain(share * run.gpu_share, "as if the GPU's work were as the number of columns"),
    )


def fills_memory_soon(run: RunEvidence) -> bool:
    """Return whether what grows is a good part of the device's memory."""
    profile = run.profile("growing-lines")
    gpu = run.document.gpus[0] if run.document.gpus else None
    size = gpu.memory_bytes if gpu is not None else None
    return profile is not None and size is not None and profile.total >= MUCH * size


# ------------------------------------------------------------ known operations, written out

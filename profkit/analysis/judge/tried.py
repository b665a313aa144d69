"""Results of trials: a change that made the program faster comes first, and one that did not is no advice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile

from profkit.core.formatting import format_quantity, plural
from profkit.core.pairs import FIRST_ROUNDS
from profkit.core.types import Gain, Insight, RunDocument, TrialName, TriedChange

# Rules whose advice a trial carries out: if it saved nothing, their findings are left out.
_CARRIED_OUT: Mapping[TrialName, tuple[str, ...]] = {
    "collector": ("garbage-collection",),
    "memoise": ("repeated-work",),
    "loader": ("slow-loader",),
    "workers": ("restarted-workers",),
    "tf32": ("no-tensor-cores",),
}
# Rules whose time a trial may save in another way: if it did, their findings are left out. Expandable segments do not
# replace a buffer that is kept: a program that calls cudaMalloc itself, or empties the cache, gains nothing from them.
_WON: Mapping[TrialName, tuple[str, ...]] = {**_CARRIED_OUT, "device-memory": ("device-allocations",)}
MORE_MEMORY = 1.2  # peak with the change over peak without: from here on it is reported


_COPIES = ("growing-copy", "large-temporary")
OUTWEIGHS = 2.0  # a bound of so many times the gain that was measured names a cause that the trial leaves


def with_trials(document: RunDocument, insights: Sequence[Insight]) -> tuple[Insight, ...]:
    """Return the insights with the results of trials.

    Measured gains come before possible ones, but not before causes that could save far more: collecting garbage less
    often saves a quarter of the time of a loop that visits all tasks again, and the loop remains.
    """
    refuted = [trial for trial in document.trials if trial.state in ("same", "slower", "other-output")]
    tried = sorted(
        _faster(document), key=lambda insight: -(insight.gain.at_most if insight.gain is not None else 0.0)
    )
    confirmed = [trial for trial in document.trials if trial.state == "faster"]
    others = [
        insight
        for insight in insights
        if not any(_is_about(insight, trial, _CARRIED_OUT) for trial in refuted)
        and not any(_is_about(insight, trial, _WON) for trial in confirmed)
    ]
    most = max((insight.gain.at_most for insight in tried if insight.gain is not None), default=0.0)
    ahead = list(takewhile(lambda insight: _outweighs(insight, most, tried[0].rule), others)) if tried else []
    return (*ahead, *tried, *others[len(ahead) :])


def _is_about(insight: Insight, trial: TriedChange, rules: Mapping[TrialName, tuple[str, ...]]) -> bool:
    """Return whether a trial carried out what an insight advises; one of a function says nothing of others.

    A function's finding is at its own line, or at the line that calls it and names it.
    """
    if insight.rule not in rules.get(trial.name, ()):
        return False
    function = trial.where.function or ""
    named = re.search(rf"\b{re.escape(function.rpartition('.')[2])}\b", insight.title)
    return trial.name != "memoise" or insight.where.function == function or named is not None


def _outweighs(insight: Insight, seen: float, tried: str) -> bool:
    """Return whether an insight names a cause that could save far more than what was `seen` (0..1).

    Copies that need not be made are the cause of what a faster allocator saves, so as much is enough there.
    """
    if insight.rule == "hot-spot" or insight.gain is None:
        return False
    times = 1.0 if tried == "tried-allocator" and insight.rule in _COPIES else OUTWEIGHS
    return insight.gain.at_most >= times * seen


def _faster(document: RunDocument) -> Iterator[Insight]:
    best: dict[TrialName, TriedChange] = {}
    for trial in document.trials:
        if trial.state == "faster" and trial.ratio is not None:
            known = best.get(trial.name)
            if known is None or trial.ratio < (known.ratio or 1.0):
                best[trial.name] = trial
    for trial in best.values():
        title, change = _ADVICE[trial.name](trial)
        of = "the time of the region" if trial.scope.kind == "region" else "the run time"
        ratio = trial.ratio if trial.ratio is not None else 1.0
        gain = Gain(1 - ratio, of, _seen(trial), tried=True)
        yield Insight(f"tried-{trial.name}", title, _evidence(trial), change, trial.where, gain)


def _seen(trial: TriedChange) -> str:
    """Return the measured result: `2.31 s to 1.87 s (-19 %), same output`."""
    before, after = (
        format_quantity(seconds, "s") if seconds is not None else "?"
        for seconds in (trial.before, trial.after)
    )
    same = ", same output" if trial.output == "same" else ""
    return f"{before} to {after} ({100 * ((trial.ratio or 1.0) - 1):+.0f} %){same}"


def _evidence(trial: TriedChange) -> str:
    """Return how it was measured: `the median of 6 pairs of alternating runs, -21 to -17 %`."""
    seen = trial.because.numbers
    text = f"tried in {plural(trial.pairs, 'pair')} of alternating runs"
    if trial.low is None:
        part = "half" if trial.pairs < FIRST_ROUNDS else "0.8 of"
        text += f": each run with it took less than {part} the time of each without it"
    if trial.name == "memoise" and "looks" in seen:
        text = f"{seen['arguments']:.0f} different arguments in {seen['looks']:.0f} observed calls; {text}"
    if trial.low is not None and trial.high is not None:
        text += f": {100 * (trial.low - 1):+.0f} to {100 * (trial.high - 1):+.0f} %"
    if trial.output == "varies":
        text += "; what it prints is another in each run without it, too, and was not compared"
    if trial.memory is not None and trial.memory >= MORE_MEMORY:
        text += f"; peak memory is {trial.memory:.1f} times as much"
    return text


def _collector(_: TriedChange) -> tuple[str, str]:
    return (
        "Run the garbage collector less often",
        "at the top of the program: import gc; gc.set_threshold(200_000, 10, 100); after what stays for good was "
        "loaded, or at the end, as it was tried: gc.freeze()",
    )


def _threads(trial: TriedChange) -> tuple[str, str]:
    count = trial.settings.get("OMP_NUM_THREADS", "1")
    return (
        f"Use {plural(int(count), 'thread')} for linear algebra" if count.isdigit() else "Use other threads",
        f"export OMP_NUM_THREADS={count} OPENBLAS_NUM_THREADS={count} MKL_NUM_THREADS={count}, or in the program "
        f"torch.set_num_threads({count}), threadpoolctl.threadpool_limits({count})",
    )


def _allocator(trial: TriedChange) -> tuple[str, str]:
    line = " ".join(f"{name}={value}" for name, value in trial.settings.items())
    return "Let the allocator keep freed memory", f"export {line}; or reuse the buffers in the program"


def _memoise(trial: TriedChange) -> tuple[str, str]:
    name = trial.where.function or "the function"
    return (
        f"Keep the results of {name}",
        "@functools.lru_cache(maxsize=None) on it, if only its arguments decide what it returns: every sixteenth "
        "repeated call was computed again, and returned the same",
    )


def _output(_: TriedChange) -> tuple[str, str]:
    return (
        "Write the output in larger pieces",
        "without flush=True and sys.stdout.flush() in the loop; or collect the lines, and write them at once",
    )


def _tf32(_: TriedChange) -> tuple[str, str]:
    return (
        "Let FP32 products use the tensor cores (TF32)",
        'torch.set_float32_matmul_precision("high"); or export NVIDIA_TF32_OVERRIDE=1. Products have 10 bits of '
        "mantissa then: the printed numbers were compared, nothing else",
    )


def _convolutions(_: TriedChange) -> tuple[str, str]:
    return (
        "Let cuDNN choose the convolutions' algorithms by time",
        "torch.backends.cudnn.benchmark = True, where shapes stay the same",
    )


def _attention(_: TriedChange) -> tuple[str, str]:
    return (
        "Leave cuDNN out of attention",
        "torch.backends.cuda.enable_cudnn_sdp(False) at the top of the program; or, around the call, "
        "torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, "
        "SDPBackend.MATH]). Sums are rounded in another order then: the printed numbers were compared, nothing else",
    )


def _loader(_: TriedChange) -> tuple[str, str]:
    return (
        "Load the data in worker processes",
        "DataLoader(..., num_workers=4, persistent_workers=True, pin_memory=True)",
    )


def _workers(_: TriedChange) -> tuple[str, str]:
    return (
        "Keep the DataLoader's workers from one epoch to the next",
        "DataLoader(..., persistent_workers=True), made once, before the loop over the epochs. Random numbers that a "
        "worker draws go on from epoch to epoch then, where they began anew",
    )


def _device_memory(_: TriedChange) -> tuple[str, str]:
    return (
        "Let the device's allocator grow its segments",
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    )


_ADVICE: Mapping[TrialName, Callable[[TriedChange], tuple[str, str]]] = {
    "collector": _collector,
    "threads": _threads,
    "allocator": _allocator,
    "memoise": _memoise,
    "output": _output,
    "tf32": _tf32,
    "convolutions": _convolutions,
    "attention": _attention,
    "loader": _loader,
    "workers": _workers,
    "device-memory": _device_memory,
}

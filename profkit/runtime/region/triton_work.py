"""What Triton did in this process beside what was measured: kernels that it tuned.

Read from Triton's own objects, when a result is saved and when the process ends. Triton is never imported here and
nothing of it is replaced: a hook would have to be in place before the workload's first kernel, and a workload imports
Triton when it likes. Found are kernels at the top of some module, and every function that Triton itself lists.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from profkit.core.types import TritonWork, Tuning

MOST_KEYS = 16  # choices kept of one kernel: a kernel that is tuned for each length has no end of them
MOST_TUNINGS = 200  # and of all kernels together
MOST_WRAPPERS = 16  # autotune around heuristics around jit, and what else somebody puts around a kernel
MOST_CHARACTERS = 80  # characters of one word


def try_find_triton_work(pass_name: str, pid: int, notes: list[str]) -> TritonWork | None:
    """See triton_work; where Triton's objects are not as expected, a remark in `notes` and None."""
    try:
        return find_triton_work(pass_name, pid)
    except Exception as error:  # they differ from version to version, and the workload may have its own
        remark = f"what Triton tuned is not known: {type(error).__name__}: {error}"
        if remark not in notes:
            notes.append(remark)
        return None


def find_triton_work(pass_name: str, pid: int) -> TritonWork | None:
    """What Triton tells of this process; None where it was not imported, or tuned nothing."""
    kinds = _kernel_types()
    if not kinds:
        return None
    tuners = {id(tuner): tuner for kernel in _find_kernels(kinds) for tuner in _tuners_of(kernel, kinds)}
    tunings = [tuning for tuner in tuners.values() for tuning in _read_tunings(tuner)]
    reported = tuple(tunings[:MOST_TUNINGS])
    return TritonWork(pass_name, pid, reported, len(tunings) - len(reported)) if tunings else None


# ------------------------------------------------------------ finding kernels


def _kernel_types() -> frozenset[type]:
    """Triton's classes of kernels and of what is put around them."""
    jit = sys.modules.get("triton.runtime.jit")
    base = getattr(jit, "KernelInterface", None)
    types: set[type] = set()
    open_ = [base] if isinstance(base, type) else []
    while open_:
        kind = open_.pop()
        if kind not in types:
            types.add(kind)
            open_ += kind.__subclasses__()
    return frozenset(types)


def _find_kernels(kinds: frozenset[type]) -> Iterator[Any]:
    """Every kernel at the top of a module, and what newer versions of Triton list themselves."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            # a module that loads itself when it is touched stays as it is
            names = object.__getattribute__(module, "__dict__")
            for value in list(names.values()):
                if type(value) in kinds:
                    yield value
    listed = getattr(sys.modules.get("triton.runtime.jit"), "_triton_jit_function_registry", None)
    if isinstance(listed, dict):
        yield from list(listed.values())


def _tuners_of(kernel: Any, kinds: frozenset[type]) -> Iterator[Any]:
    """What tunes a kernel, among all that is put around it."""
    for _ in range(MOST_WRAPPERS):
        if type(getattr(kernel, "cache", None)) is dict and hasattr(kernel, "configs"):
            yield kernel
        kernel = getattr(kernel, "fn", None)
        if type(kernel) not in kinds:
            return


# ------------------------------------------------------------ tuning


def _read_tunings(tuner: Any) -> list[Tuning]:
    """One for each key that this tuner chose a configuration for, in that order; none where there was no choice.

    Triton keeps of the last key alone how long tuning took and how each configuration did.
    """
    configs = list(tuner.configs)
    if len(configs) < 2:
        return []
    function = getattr(tuner, "base_fn", None) or tuner.fn
    name, module = (
        str(getattr(function, word, "?"))[:MOST_CHARACTERS] for word in ("__name__", "__module__")
    )
    chosen = list(tuner.cache.items())[-MOST_KEYS:]
    read = [_came_from_disk(tuner, best) for _, best in chosen]
    tuned = [index for index, was_read in enumerate(read) if not was_read]
    seconds = getattr(tuner, "bench_time", None)
    times = getattr(tuner, "configs_timings", None)
    tunings = []
    for index, (key, best) in enumerate(chosen):
        some = any(getattr(tuner, word, None) is not None for word in ("early_config_prune", "perf_model"))
        tried = None if some else len(configs)
        failed = 0
        if isinstance(times, dict) and index == len(chosen) - 1:
            tried, failed = len(times), sum(_median_time(each) == float("inf") for each in times.values())
        took = float(seconds) if isinstance(seconds, (int, float)) and tuned[-1:] == [index] else None
        chose = _format_configuration(best)
        tunings.append(Tuning(name, module, _format_key(tuner, key), chose, tried, failed, took, read[index]))
    return tunings


def _came_from_disk(tuner: Any, best: Any) -> bool:
    """Whether a choice came from Triton's disk: then it was built anew, and is none of the workload's own objects."""
    if not getattr(tuner, "cache_results", False) or any(best is config for config in tuner.configs):
        return False
    # a workload's own pruning may build configurations, too: then only a process that tuned nothing is sure
    return getattr(tuner, "early_config_prune", None) is None or not hasattr(tuner, "bench_time")


def _median_time(times: Any) -> Any:
    """The median among what Triton's benchmark gives: three quantiles, or one number."""
    return times[0] if isinstance(times, (list, tuple)) and times else times


def _format_key(tuner: Any, key: Any) -> str:
    """`M 4096, N 11008, fp16`: the arguments that were tuned for, then the types of all."""
    values = [_format_value(value) for value in (key if isinstance(key, (tuple, list)) else (key,))]
    names = [str(name) for name in getattr(tuner, "keys", None) or ()]
    if len(names) > len(values):
        names = []  # an argument that was left to its default is not in the key: which one is not told
    named = [f"{name} {value}" for name, value in zip(names, values, strict=False)]
    return ", ".join((*named, *values[len(named) :]))


def _format_configuration(config: Any) -> str:
    """`BLOCK_M 128, BLOCK_N 64, 8 warps, 3 stages`."""
    words = [f"{name} {_format_value(value)}" for name, value in dict(config.kwargs).items()]
    for name, plain, more in (
        ("num_warps", None, "warps"),
        ("num_stages", None, "stages"),
        ("num_ctas", 1, "CTAs"),
    ):
        value = getattr(config, name, plain)
        if value != plain:
            words.append(f"{_format_value(value)} {more}")
    if getattr(config, "maxnreg", None) is not None:
        words.append(f"at most {_format_value(config.maxnreg)} registers")
    return ", ".join(words)


def _format_value(value: Any) -> str:
    # the words of other types are not asked for: a tensor's would wait for its device
    plain = value is None or type(value) in (str, int, float, bool)
    return (str(value) if plain else type(value).__name__)[:MOST_CHARACTERS]

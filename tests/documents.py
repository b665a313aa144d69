"""A realistic run for tests: a gated MLP on a virtual machine without hardware counters."""

from __future__ import annotations

import math
from dataclasses import replace

from profkit.core.types import (
    RUN,
    Cache,
    Directive,
    Fact,
    Hotspot,
    Machine,
    PassPlan,
    PassResult,
    Peaks,
    Plan,
    Profile,
    Quality,
    Reading,
    RunDocument,
    SampleSet,
    Scope,
    Source,
    Step,
    Threshold,
    Timing,
    Verdict,
    VerdictWord,
    Workload,
)
from tests.spoken import message

REGION = Scope("region", "gated_mlp")
COMMAND = ("python", "benchmark/gated_mlp.py", "--backend", "cpu", "-b", "8")


def reading(
    metric: str,
    value: float | None,
    unit: str = "%",
    *,
    quality: Quality = "simulated",
    scope: Scope = REGION,
    reason: Fact | str | None = None,
    fix: str | None = None,
    share: float | None = None,
    formula: str | None = None,
    tool: str = "valgrind",
) -> Reading:
    """A reading with few words; a value of None makes it unavailable."""
    if value is None:
        quality, reason = "unavailable", reason or "the processor does not count it"
    return Reading(
        metric,
        value,
        unit,
        quality,
        scope,
        Source(tool, formula=formula),
        reason=message(reason),
        fix=fix,
        share=share,
    )


def noise(n: int, centre: float = 4.1e-3, spread: float = 0.01) -> tuple[float, ...]:
    """Deterministic samples around `centre` seconds."""
    return tuple(centre * (1 + spread * math.sin(12.9898 * i) * 0.7) for i in range(1, n + 1))


def machine() -> Machine:
    """A small virtual machine."""
    return Machine(
        system="Linux",
        release="6.1.0",
        architecture="x86_64",
        cpu="AMD EPYC 7B13",
        vendor="AuthenticAMD",
        family=25,
        model=1,
        cores=2,
        caches=(Cache(1, 32768, 8), Cache(2, 524288, 8), Cache(3, 33554432, 16, shared=8)),
        memory_bytes=8 << 30,
        virtual="kvm",
        governor=None,
        max_mhz=None,
        features=("avx", "avx2", "fma"),
    )


def plan() -> Plan:
    """What `profile --plan` shows on that machine."""
    return Plan(
        "cpu",
        "standard",
        (
            PassPlan(
                "timing",
                None,
                steps=tuple(
                    Step(
                        f"timing-{i}",
                        COMMAND,
                        (f"artifacts/timing-{i}.json",),
                        directive=Directive("timing", "timing"),
                    )
                    for i in (1, 2, 3)
                ),
                cost=3.2,
            ),
            PassPlan("cprofile", None, (Step("cprofile", COMMAND, ("artifacts/cprofile.prof",)),), cost=1.4),
            PassPlan(
                "tracemalloc",
                None,
                (Step("tracemalloc", COMMAND, ("artifacts/tracemalloc.json",)),),
                cost=2.1,
            ),
            PassPlan("trace", "perf", (Step("trace", COMMAND, ("artifacts/perf.data",)),), cost=1.1),
            PassPlan(
                "counters",
                "valgrind",
                (
                    Step("simulate-l2", ("valgrind", "--tool=callgrind", *COMMAND)),
                    Step("simulate-l3", ("valgrind", "--tool=callgrind", *COMMAND)),
                ),
                counters=("Ir", "Dr", "Dw", "D1mr", "D1mw", "DLmr", "DLmw", "Bc", "Bcm"),
                cost=60.0,
                parallel=True,
                simulated=True,
                notes=(Fact("no-avx-512"),),
            ),
        ),
    )


def passes() -> tuple[PassResult, ...]:
    """How the passes of `plan` ended: the tracemalloc pass failed."""
    return (
        PassResult(
            "timing", None, "finished", seconds=24.1, cost=3.1, artifacts=("artifacts/timing-1.json",)
        ),
        PassResult(
            "cprofile", None, "finished", seconds=9.4, cost=1.2, artifacts=("artifacts/cprofile.prof",)
        ),
        PassResult(
            "tracemalloc",
            None,
            "failed",
            reason=message("the workload was killed by SIGKILL: most likely out of memory"),
            fix="use a smaller batch, or --passes timing,cprofile,trace,counters",
            seconds=3.0,
            log="logs/tracemalloc.log",
        ),
        PassResult(
            "trace", "perf", "finished", seconds=8.9, cost=1.1, artifacts=("artifacts/trace.speedscope.json",)
        ),
        PassResult(
            "counters",
            "valgrind",
            "finished",
            seconds=77.0,
            cost=9.9,
            artifacts=("artifacts/simulate-l2.out",),
        ),
    )


def verdict(word: VerdictWord, target: str, *advice: str, **more: object) -> Verdict:
    """A verdict on a run with few words; its reason is "because" with its target."""
    why, limit = message(f"because {target}"), Threshold(">", 2, "")
    made = Verdict(target, "cases.faulty", word, why, limit, 1.0, "", RUN, "measured", advice)
    return replace(made, **more)  # type: ignore[arg-type]


def peaks() -> Peaks:
    """What copy loops and matrix products reached on that machine."""
    return Peaks(15.2e9, 20.7e9, 60e9, 110e9, 2, "numpy copy of 64 MB arrays, sgemm 1024, best of 7")


def timing() -> Timing:
    """Three processes of one benchmark."""
    return Timing(
        "gated_mlp",
        "benchmark",
        tuple(SampleSet(noise(40, 4.1e-3 * k), 2, noise(3), pid=i) for i, k in enumerate((1, 1.01, 0.995))),
        0.01,
        flops=5.4e7,
        bytes=1.3e7,
    )


def profiles() -> tuple[Profile, ...]:
    """Own time by function, and where the simulated misses are."""
    return (
        Profile(
            "cProfile",
            "s",
            2.0,
            (
                Hotspot("<built-in method torch._C._nn.linear>", 1.30, 1.30, 600, "~", 0),
                Hotspot("gated_mlp", 0.30, 1.95, 300, "benchmark/gated_mlp.py", 41),
            ),
        ),
        Profile(
            "callgrind",
            "Ir",
            41.2e6,
            (
                Hotspot(
                    "sgemm_kernel_HASWELL",
                    30e6,
                    library="libopenblas.so",
                    counters={"Ir": 30e6, "D1mr": 1.1e6, "Dr": 12e6},
                ),
                Hotspot("silu", 6e6, library="libtorch_cpu.so", counters={"Ir": 6e6, "D1mr": 4e5, "Dr": 2e6}),
            ),
        ),
    )


def empty() -> RunDocument:
    """The smallest document: a run that has just begun."""
    return RunDocument(
        "gated_mlp", "cpu", "running", Workload(COMMAND, "gated_mlp", "work"), "2026-11-20T05:47:00+00:00"
    )


def document() -> RunDocument:
    """A whole run, without summaries and verdicts (those are for the packages that make them)."""
    return replace(
        empty(),
        state="complete",
        machine=machine(),
        plan=plan(),
        tools={"perf": "6.1.187", "valgrind": "3.19.0", "python": "3.11.9"},
        peaks=peaks(),
        passes=passes(),
        timings=(timing(),),
        readings=(
            reading("cache.l1.miss_rate", 9.0, formula="(D1mr + D1mw) / (Dr + Dw)"),
            reading("ipc", None, "", scope=RUN, reason="no hardware counters in this virtual machine"),
        ),
        profiles=profiles(),
    )

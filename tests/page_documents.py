"""Runs made to be shown as pages: of many kernels, and with names that would like to be more than names."""

from __future__ import annotations

import random
from dataclasses import replace

from profkit.core.types import (
    Account,
    AccountRow,
    ActivityBins,
    Fact,
    Frame,
    GpuTrace,
    Kernel,
    KernelTime,
    Lane,
    MarkLabel,
    MemorySeries,
    PassResult,
    Place,
    Reading,
    RunDocument,
    Source,
    Stacks,
    Summary,
    Timeline,
    Workload,
)
from tests import gpu_documents
from tests.documents import verdict
from tests.spoken import message

HOSTILE = (
    "<script>document.title='ran'</script>",
    "</script><script>document.title='ran'</script>",
    "--><img src=x onerror=\"document.title='ran'\">",
    "<!--<script>",
    "\"'><svg onload=document.title='ran'>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "javascript:document.title='ran'",
    "a\u202egnirts\u2066b",
    "nul\x00bell\x07esc\x1b[31mred",
    "two\nlines\rand\ttabs\u2028and\u2029more",
    "a lone \ud800 surrogate",
    "]]>&lt;b&gt;&amp;",
    "x" * 4096,
    "void " + "ns::kernel<" * 300 + "float" + ">" * 300 + "(int)",
)


def hostile() -> RunDocument:
    """A run in which every text that comes from outside is one of HOSTILE, in turn."""
    base = gpu_documents.run()
    kernels = tuple(Kernel(name, (4, 1, 1), (128, 1, 1)) for name in HOSTILE)
    source = Source(HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3])
    readings = tuple(
        Reading("occupancy.achieved", 50.0, "%", "measured", one.scope, source, doubt=message(HOSTILE[4]))
        for one in kernels
    )
    missing = tuple(
        Reading(
            "memory.coalescing",
            None,
            "%",
            "unavailable",
            one.scope,
            source,
            reason=message(HOSTILE[n]),
            fix=HOSTILE[-n],
        )
        for n, one in enumerate(kernels)
    )
    verdicts = tuple(
        verdict(word, name, name, metric=name, scope=scope, value=50.0, unit="%", weight=0.5)
        for name, one in zip(HOSTILE, kernels, strict=True)
        for word, scope in (("fail", replace(one.scope, kind="run")), ("unknown", one.scope))
    )
    summaries = tuple(Summary(concern, readings) for concern in ("time", "memory", "gpu", "python", *HOSTILE))
    return replace(
        base,
        name=HOSTILE[1],
        workload=Workload(HOSTILE, HOSTILE[0], HOSTILE[2]),
        started=HOSTILE[9],
        tools=dict.fromkeys(HOSTILE, HOSTILE[8]),
        facts={name: name * (40 if len(name) < 50 else 1) for name in HOSTILE},
        trace=GpuTrace("nsys", tuple(KernelTime(one, 2, 1e-3, 5e-4) for one in kernels), span=1.0, busy=0.5),
        passes=tuple(
            PassResult("trace", name, "failed", message(name), name, 1.0, 2.0, (name,), name)
            for name in HOSTILE
        ),
        readings=(*readings, *missing),
        verdicts=verdicts,
        summaries=summaries,
        notes=tuple(map(Fact.message, HOSTILE)),
        failure=HOSTILE[1],
    )


def many(kernels: int, counted: int = 60, seed: int = 7) -> RunDocument:
    """A run with that many launch configurations, of which the first `counted` have counters. The same every time."""
    chance = random.Random(seed)
    made = []
    for number in range(kernels):
        kind = chance.choice(("elementwise", "reduce", "softmax", "gemm", "transpose", "copy"))
        name = (
            f"void at::native::{kind}_kernel_{number}<{chance.choice((2, 4, 8))}, at::native::"
            f"{chance.choice(('AddFunctor', 'MulFunctor', 'SiluFunctor'))}<float>, std::array<char*, 3ul> >"
            "(int, at::native::AddFunctor<float>, std::array<char*, 3ul>)"
        )
        one = Kernel(
            name, (chance.randint(1, 65536), 1, 1), (chance.choice((64, 128, 256, 512)), 1, 1), registers=32
        )
        total = 1e-3 / (number + 1) ** 0.7
        launches = chance.randint(1, 500)
        made.append(KernelTime(one, launches, total, total / launches))
    readings = tuple(
        Reading(
            name,
            chance.uniform(1, 99),
            "%",
            "measured",
            one.kernel.scope,
            Source("ncu", name, "counters.ncu-rep", name),
        )
        for one in made[:counted]
        for name in (
            "occupancy.achieved",
            "bandwidth.dram.share",
            "warp.execution_efficiency",
            "cache.l2.miss_rate",
        )
    )
    base = gpu_documents.run()
    trace = replace(base.trace or gpu_documents.trace(), kernels=tuple(made))
    return replace(base, name="many kernels", trace=trace, readings=readings)


def full_timeline(labels: int, marks: int, *, lanes: int = 40, width: int = 200) -> Timeline:
    """A timeline of so many marks, whose labels are all different and have names of `width` letters."""
    chance = random.Random(3)

    def name(number: int) -> str:
        return f"ns{number}::" + "kernel<" * (width // 7)

    table = tuple(
        MarkLabel("kernel", name(n), name(n), f"{n} of 128", name(n), f"/src/{'x' * width}{n}.py", n, f"step_{n}")
        for n in range(labels)
    )  # fmt: skip
    made = []
    for number in range(lanes):
        steps = [chance.randint(5, 10) * 10**8 for _ in range(marks // lanes)]
        starts = tuple(sum(steps[: n + 1]) for n in range(min(200, len(steps))))
        starts = (*starts, *(starts[-1] + 10**9 * (n + 1) for n in range(len(steps) - len(starts))))
        made.append(
            Lane(
                "kernels",
                starts,
                tuple(chance.randint(1, 4) * 10**8 for _ in starts),
                tuple(chance.randrange(labels) for _ in starts),
                tuple(chance.randint(1, 10**7) for _ in starts),
                tuple(chance.randint(1, 4) * 10**8 for _ in starts),
                device=number,
                number=number,
                name=name(number),
            )
        )
    whole = max(lane.starts[-1] + lane.lengths[-1] for lane in made) / 1e9
    strip = tuple(ActivityBins(tuple(chance.randint(0, 100) for _ in range(300)), 0, n) for n in range(lanes))
    return Timeline("step", 0.0, whole, whole, table, tuple(made), strip, of=500_000, merged=10_000_000)


def largest(kernels: int = 3000) -> RunDocument:
    """The largest run that can be made: each list long, each name different, of thousands of letters, and hostile."""
    base, some = hostile(), many(kernels, counted=kernels)
    assert some.trace is not None
    named = tuple(
        replace(time, kernel=replace(time.kernel, name=f"{time.kernel.name}{'<float, ' * 500}{n}"))
        for n, time in enumerate(some.trace.kernels)
    )
    long = [f"{HOSTILE[n % len(HOSTILE)]} {n} {'wide ' * 800}" for n in range(400)]
    readings = tuple(
        Reading(metric, 50.0, "%", "measured", time.kernel.scope, Source("ncu", long[n % 400], long[n % 7]))
        for n, time in enumerate(named)
        for metric in ("occupancy.achieved", "bandwidth.dram.share", "warp.execution_efficiency")
    )  # fmt: skip
    verdicts = tuple(
        verdict(
            "unknown", name, name, metric=name, scope=replace(named[0].kernel.scope, kind=kind), value=1.0
        )
        for kind in ("run", "kernel")
        for name in long
    )
    series = tuple(
        MemorySeries(kind, tuple(map(float, range(9000))), tuple(float(n % 997) * 1e9 for n in range(9000)))
        for kind in ("resident", "allocated", "reserved")
    )
    rows = tuple(
        AccountRow("host", 1.0, Place(function=name, file=f"/src/{name[:50]}.py", line=3), does="python")
        for name in long
    )
    return replace(
        base,
        trace=replace(some.trace, kernels=named, timeline=full_timeline(5000, 5000)),
        timeline=replace(full_timeline(5000, 5000), kind="threads"),
        readings=(*base.readings, *readings),
        verdicts=(*base.verdicts, *verdicts),
        summaries=(*base.summaries, *(Summary(name, base.readings) for name in long)),
        facts={**base.facts, **dict.fromkeys(long, long[0])},
        tools=dict.fromkeys(long, long[0]),
        notes=tuple(map(Fact.message, long)),
        passes=tuple(PassResult("trace", name, "failed", message(name), name, 1.0) for name in long),
        memory=series,
        account=Account("run", 500.0, rows),
    )  # fmt: skip


def deep_stacks(seed: int = 5) -> tuple[Stacks, ...]:
    """Three recordings of 20,000 stacks each, whose functions have long names."""
    chance = random.Random(seed)

    def stack() -> tuple[Frame, ...]:
        names = (f"f{chance.randrange(300)}{'<int>' * 60}" for _ in range(12))
        return tuple(Frame(name, f"lib{chance.randrange(9)}.so") for name in names)

    return tuple(
        Stacks(f"cycles {number}", "s", {stack(): 1.0 for _ in range(20_000)}) for number in range(3)
    )

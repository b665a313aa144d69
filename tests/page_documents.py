"""Runs made to be shown as pages: of many kernels, and with names that would like to be more than names."""

from __future__ import annotations

import random
from dataclasses import replace

from profkit.core.types import (
    Fact,
    GpuTrace,
    Kernel,
    KernelTime,
    PassResult,
    Reading,
    RunDocument,
    Source,
    Summary,
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

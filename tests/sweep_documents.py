"""Made-up sweeps for tests of their views: small ones, broken ones, hostile ones, large ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profkit.core.types import CaseResult, CaseState, GridPoint, MeasuredCeilings, SweepDocument
from tests.spoken import message

ROOFS = MeasuredCeilings(1e12, 1e13, message("copy of 1024 MiB, product of 4096 x 4096"))
HOSTILE = "</script><script>document.title='ran'</script>|`*\x1b[31m\u202e\udc80\n#1 @you"
FACTORS = {"PyTorch": 1.0, "torch.compile": 0.8, "Triton": 0.5, "CUDA": 0.4}  # of PyTorch's time


def sweep(
    *operations: str,
    factors: Mapping[str, float] = FACTORS,
    batches: Sequence[int] = (16, 32),
    sequences: Sequence[int] = (256, 512),
    dimensions: Sequence[int] = (8, 64, 512),
    dtypes: Sequence[str] = ("float32",),
    half: float = 0.005,
) -> SweepDocument:
    """Every implementation takes its share of 1 µs and 1 ns for each hundred elements."""
    results = []
    for operation in operations or ("GELU",):
        for dtype in dtypes:
            for d in dimensions:
                for b in batches:
                    for s in sequences:
                        point = GridPoint(operation, b, s, d, dtype)
                        results += [case(point, name, f, half) for name, f in factors.items()]
    return of(*results)


def case(point: GridPoint, name: str, factor: float = 1.0, half: float = 0.005) -> CaseResult:
    """A case that was timed."""
    elements = point.batch * point.sequence * point.dimension
    seconds = factor * (1e-6 + 1e-11 * elements)
    return CaseResult(
        point,
        name,
        "measured",
        median=seconds,
        half_width=half,
        samples=64,
        precise=half <= 0.01,
        cache="cold",
        clock="cuda-events",
        first=1e-3,
        memory=8 * elements,
        flops=5.0 * elements,
        bytes=8.0 * elements,
        error=0.25,
        clocks=(1.98e9,),
        spent=0.1,
    )


def of(*results: CaseResult, planned: int | None = None) -> SweepDocument:
    """A complete sweep of these."""
    return SweepDocument(
        "2026-01-01T00:00:00+00:00",
        "NVIDIA H200",
        results,
        ROOFS,
        {"torch": "2.11.0", "triton": "3.6.0"},
        planned if planned is not None else len(results),
        True,
        100.0,
    )


def without(
    document: SweepDocument,
    state: CaseState,
    name: str,
    reason: str,
    *,
    among: Sequence[int] = (),
    fix: str = "",
) -> SweepDocument:
    """The same with the cases of one implementation (or those with these numbers) ended otherwise."""
    found = []
    for number, result in enumerate(document.results):
        if result.implementation == name and (not among or number in among):
            found.append(
                CaseResult(
                    result.point,
                    name,
                    state,
                    message(harm(reason, number)),
                    fix or None,
                    samples=0,
                    spent=0.1,
                )
            )
        else:
            found.append(result)
    return replace(document, results=tuple(found))


def sampled(document: SweepDocument) -> SweepDocument:
    """With samples as its intervals say."""
    found = []
    for r in document.results:
        steps = (5, 1, 9, 3, 7, 2, 8, 4, 6)
        seconds = tuple((r.median or 0.0) * (1 + 0.3 * (r.half_width or 0.0) * (k - 5)) for k in steps)
        found.append(replace(r, seconds=seconds if r.median else ()))
    return replace(document, results=tuple(found))


def harm(reason: str, number: int) -> str:
    """A reason with the number of its case in it, where it has a place for it."""
    return reason.replace("{}", str(number))


def hostile() -> SweepDocument:
    """Names and reasons that are markup, escape codes, half characters and lines."""
    document = sweep("GELU", factors={"PyTorch": 1.0, HOSTILE: 0.5, "x" * 400: 0.7})
    document = without(document, "crashed", "x" * 400, HOSTILE, among=(2, 5), fix=HOSTILE)
    return replace(
        document,
        device=HOSTILE,
        versions={HOSTILE: HOSTILE},
        roofs=replace(ROOFS, method=message(HOSTILE)),
        results=tuple(replace(r, throttled=(HOSTILE,)) if r.median else r for r in document.results),
    )


def odd() -> dict[str, SweepDocument]:
    """Sweeps in which something is missing, by what that is."""
    whole = sweep("GELU", "MSE")
    nothing = without(sweep(), "unavailable", "PyTorch", "no torch")
    for name in FACTORS:
        nothing = without(nothing, "unavailable", name, "no torch", fix="pip install torch")
    return {
        "no results": of(planned=10),
        "nothing measured": nothing,
        "one case": of(case(GridPoint("GELU", 1, 1, 1), "PyTorch")),
        "one implementation": sweep("GELU", factors={"PyTorch": 1.0}),
        "no baseline": sweep("GELU", "MSE", factors={"Triton": 1.0, "CUDA": 0.5}),
        "no roofs": replace(whole, roofs=MeasuredCeilings()),
        "interrupted": replace(whole, results=whole.results[:7], planned=48, complete=False),
        "baseline wins": sweep("GELU", "MSE", factors={"PyTorch": 1.0, "CUDA": 2.0}),
        "all alike": sweep("GELU", factors=dict.fromkeys(FACTORS, 1.0)),
        "far apart": sweep("GELU", factors={"PyTorch": 1e9, "CUDA": 1e-4}),
        "no intervals": replace(
            whole, results=tuple(replace(r, half_width=None, memory=None, error=None) for r in whole.results)
        ),
        "one shape each": sweep("GELU", batches=(1,), sequences=(1,), dimensions=(8, 9)),
    }


def many(count: int) -> SweepDocument:
    """At least `count` cases, in panels of 4 implementations at 60 shapes."""
    panels = -(-count // 240)
    return sweep(
        *(f"op{number}" for number in range(panels)),
        batches=(1, 2, 4, 8),
        sequences=(16, 32, 64),
        dimensions=(8, 16, 32, 64, 128),
    )

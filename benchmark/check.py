"""Check a result against float64, within the error that rounding alone can cause.

Tolerance of one output element y, with r roundings to the dtype (unit roundoff u), and sums of up to K terms
accumulated in float32 (unit roundoff v = 2^-24) whatever the dtype:

    |y - reference| <= SAFETY * (r * u + sqrt(K) * v) * (|reference| + rms(reference))

r * u bounds the roundings of intermediate results to the dtype, to first order. sqrt(K) * v is the bound of
a K-term sum by probability (Higham and Mary, "A new approach to probabilistic rounding error analysis",
2019); the deterministic one, K * v, is never reached with random data. The terms of a sum are all of about the
same size, so the root mean square (of the row, or of the whole output if larger) is the scale at which
cancellation leaves an error. The largest errors, on a CPU and an H200: 64 % of the tolerance in
float32, 32 % in the 16-bit formats.
"""

from __future__ import annotations

from math import ceil, sqrt

from benchmark.measure import profiled
from benchmark.refusal import WRONG, Refusal
from benchmark.workload import DTYPES, Array, Workload

SAFETY = 4.0  # the largest of 10^5 to 10^7 elements is some 5 standard deviations out; u is about 1.7 of them
ACCUMULATOR = 2.0**-24
# The limit of the float64 reference's cost: about 0.2 s on one core. A profiled run may be simulated, with
# multiply-adds 3000 times slower, so it checks fewer rows. MAX_ROWS limits the reference's memory.
REFERENCE_FLOPS, REFERENCE_FLOPS_PROFILED, MAX_ROWS = 4e9, 1e7, 2048


def relative_tolerance(workload: Workload, dtype: str) -> float:
    """Return the factor of (|reference| + rms(reference)) in the formula above."""
    roundings = workload.roundings * DTYPES[dtype].roundoff
    return SAFETY * (roundings + sqrt(workload.depth) * ACCUMULATOR)


def checked_rows(workload: Workload, profiled: bool) -> Array:
    """Return the indices of the output rows to compare: all of them if that is cheap, else a random sample."""
    import numpy as np

    (*leading, _) = workload.shapes[-1]
    rows = int(np.prod(leading))
    budget = REFERENCE_FLOPS_PROFILED if profiled else REFERENCE_FLOPS
    affordable = min(MAX_ROWS, ceil(rows * budget / workload.flops()))
    if affordable >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(1).choice(rows, affordable, replace=False))


def compare(workload: Workload, dtype: str, inputs: tuple[Array, ...], result: Array) -> str:
    """Compare a result with the reference for the same inputs, all float64 NumPy arrays; return a sentence.

    Raises Refusal, which names the worst element, if the result is wrong, has a NaN or has another shape.
    """
    import numpy as np

    if result.shape != workload.shapes[-1]:
        raise Refusal(WRONG, f"{workload.name} gave shape {result.shape}, not {workload.shapes[-1]}")
    rows = checked_rows(workload, profiled())
    found = result.reshape(-1, result.shape[-1])[rows]
    expected = workload.reference(rows, *inputs)
    tolerance = relative_tolerance(workload, dtype)
    scale = np.sqrt(np.maximum(np.mean(expected**2), np.mean(expected**2, axis=-1, keepdims=True)))
    allowed = tolerance * (np.abs(expected) + scale)
    share = np.abs(found - expected) / allowed
    worst = np.unravel_index(np.argmax(share), share.shape)
    if not share[worst] <= 1.0:  # written so that a NaN, which argmax finds first, is wrong
        raise Refusal(
            WRONG,
            f"{workload.name} is wrong: row {rows[worst[0]]}, column {worst[1]} is {found[worst]:.6g}, "
            f"the float64 reference is {expected[worst]:.6g}, and rounding explains {allowed[worst]:.2g}",
        )
    which = "every row is" if found.size == result.size else f"{len(rows)} rows, drawn at random, are"
    return f"{which} right: largest error {share[worst]:.0%} of the tolerance ({tolerance:.1e})"

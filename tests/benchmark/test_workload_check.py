"""The check of a result lets rounding pass, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from workload_cases import KINDS, ODD, case_id

from benchmark.check import REFERENCE_FLOPS_PROFILED, checked_rows, compare
from benchmark.engines import NumpyEngine
from benchmark.refusal import Refusal
from benchmark.workload import DTYPES

REAL = [w for w in ODD if w.shapes[-1][-1] > 3]
BROKEN = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "negated": np.negative,
    "rows in another order": lambda y: y[..., ::-1, :] if y.shape[-2] > 1 else y[::-1],
    "half as large again": lambda y: y * 1.5,
    "one element missing": lambda y: np.where(np.arange(y.size).reshape(y.shape) == np.argmax(abs(y)), 0, y),
    "one element not a number": lambda y: np.where(np.arange(y.size).reshape(y.shape) == 1, np.nan, y),
    "infinite": lambda y: y + np.inf,
    "the first element only": lambda y: y.reshape(-1)[:1],
    "transposed": lambda y: y.swapaxes(-1, -2),
}


def _exact(workload):
    inputs = tuple(array.astype("float64") for array in workload.inputs(NumpyEngine().draw))
    rows = np.arange(np.prod(workload.shapes[-1][:-1]))
    return inputs, workload.reference(rows, *inputs).reshape(workload.shapes[-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("workload", ODD, ids=case_id)
def test_a_result_rounded_to_the_dtype_is_right(workload, dtype):
    inputs, result = _exact(workload)
    u = DTYPES[dtype].roundoff
    rounded = result * (1 + u * np.random.default_rng(3).choice([-1, 1], result.shape))
    assert "every row is right" in compare(workload, dtype, inputs, rounded)


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("workload", [w for w in REAL if np.prod(w.shapes[-1][:-1]) > 2], ids=case_id)
def test_a_wrong_result_is_refused_in_every_dtype(workload, dtype, broken):
    inputs, result = _exact(workload)
    with pytest.raises(Refusal) as refused:
        compare(workload, dtype, inputs, BROKEN[broken](result))
    assert refused.value.exit_code == 1


def test_a_product_in_tf32_is_refused_as_float32():
    """TF32 keeps 10 bits of an input's mantissa: a kernel must not use it where float32 was asked for."""
    workload = KINDS["gated_mlp"](batch=2, sequence=8, hidden=256, intermediate=64)
    inputs, _ = _exact(workload)
    mask = np.uint32(0xFFFFE000)
    shortened = tuple(
        (a.astype("float32").view("uint32") & mask).view("float32").astype(float) for a in inputs
    )
    result = workload.reference(np.arange(16), *shortened).reshape(workload.shapes[-1])
    with pytest.raises(Refusal, match="float64 reference"):
        compare(workload, "float32", inputs, result)


def test_a_large_workload_is_checked_on_some_rows_and_fewer_when_profiled():
    workload = KINDS["gated_mlp"](batch=8, sequence=512, hidden=1024, intermediate=2048)
    alone, profiled = checked_rows(workload, profiled=False), checked_rows(workload, profiled=True)
    assert 1 <= len(profiled) < len(alone) < 8 * 512
    assert len(profiled) * workload.flops() / (8 * 512) <= 2 * REFERENCE_FLOPS_PROFILED
    assert len(set(alone)) == len(alone)
    assert alone.max() < 8 * 512


def test_a_sampled_check_says_so_and_finds_a_wrong_row(monkeypatch):
    monkeypatch.setattr("benchmark.check.REFERENCE_FLOPS", 1e5)
    workload = KINDS["rms_norm"](batch=8, sequence=32, hidden=256)
    inputs, result = _exact(workload)
    assert "rows, drawn at random, are right" in compare(workload, "float32", inputs, result)
    row = checked_rows(workload, profiled=False)[5]
    result.reshape(-1, 256)[row, 3] += 1e-3
    with pytest.raises(Refusal, match=f"row {row}, column 3"):
        compare(workload, "float32", inputs, result)

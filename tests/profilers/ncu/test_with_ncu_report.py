"""NVIDIA's own package against the own reader: the same launches, the same values, on recorded and on made files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UnreadableReport
from profkit.profilers.ncu import rep, with_ncu_report
from profkit.profilers.ncu.launches import Value
from profkit.profilers.ncu.wanted import is_wanted
from tests.profilers.ncu import writer as w

needs_ncu_report = pytest.mark.skipif(
    not with_ncu_report.available(), reason="NVIDIA's package is not installed (pip install ncu-report)"
)
RECORDED = ("h200.gated_mlp.full.ncu-rep", "h200.gated_mlp.60-launches.ncu-rep")


def comparable(values: Mapping[str, Value]) -> dict[str, Value]:
    """The package adds the device's attributes to each action; NaN is not itself."""
    return {
        name: "NaN" if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
        if not name.startswith("device__attribute_")
    }


def check_alike(path: Path, *, without_instances: bool = False) -> None:
    """Fails where both ways differ in anything; `without_instances`: but for what the package then calls valueless."""
    ours, theirs = rep.read_launches(path), with_ncu_report.read_launches(path)
    assert len(ours) == len(theirs) > 0
    for own, other in zip(ours, theirs, strict=True):
        expected = comparable(other.values)
        told = comparable(own.values)
        if without_instances:
            told |= {name: None for name, value in expected.items() if value is None and name in told}
        assert told == expected
        for what in ("kernel", "kind", "scope", "seconds", "device", "ranges"):
            assert getattr(own, what) == getattr(other, what), what


@needs_ncu_report
@pytest.mark.parametrize("name", RECORDED)
def test_every_value_of_a_recorded_report_is_that_of_nvidias_package(fixtures: Path, name: str) -> None:
    check_alike(fixtures / "cuda" / name)


@needs_ncu_report
@pytest.mark.parametrize("name", RECORDED)
def test_both_ways_make_the_same_report(fixtures: Path, name: str) -> None:
    own = rep.read_ncu_rep(fixtures / "cuda" / name)
    other = with_ncu_report.read_with_ncu_report(fixtures / "cuda" / name)
    assert own.counters == other.counters
    assert own.trace == other.trace
    assert tuple(replace(gpu, driver=None) for gpu in own.gpus) == other.gpus


@needs_ncu_report
def test_nvidias_package_opens_what_the_tests_write(tmp_path: Path) -> None:
    metrics: dict[str, w.Value] = {
        "gpu__time_duration.sum": 1234.0,
        "sm__float.sum": w.Float32(1.1),
        "launch__device_id": w.Uint32(0),
        "launch__context_id": w.Uint32(1),
        **{f"launch__grid_dim_{axis}": side for axis, side in zip("xyz", (132, 1, 1), strict=True)},
        **{f"launch__block_dim_{axis}": side for axis, side in zip("xyz", (256, 1, 1), strict=True)},
        "a__list.sum": w.Instances((1.0, 2.0)),
        "a__total.sum": w.Instances((1.0, 2.0), 3.0),
        "a__text": "text",
        "a__nan.sum": w.NAN,
        "a__large.sum": 2**63,
    }
    names = w.Names()
    state = w.nvtx_state([("epoch", None), ("mlp", "profkit")])
    content = w.report(
        w.block(details=w.session()),
        w.block([w.KernelResult("void f<int>(float*)", metrics, mangled="_Z1fIiEvPf", nvtx=state)], names),
        w.block([w.KernelResult(f"k{n}", {**metrics, "new__metric.sum": n}) for n in range(3)], names),
    )
    check_alike(w.write(tmp_path / "made.ncu-rep", content))


@needs_ncu_report
def test_what_the_package_does_not_open_is_a_sentence(tmp_path: Path) -> None:
    path = w.write(tmp_path / "noise.ncu-rep", b"NVR\0 and nothing")
    with pytest.raises(UnreadableReport, match="noise"):
        with_ncu_report.read_launches(path)


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_ncu_report, "available", lambda: False)
    with pytest.raises(MachineError) as fault:
        with_ncu_report.read_launches(tmp_path / "any.ncu-rep", is_wanted)
    assert fault.value.fix == "pip install ncu-report"

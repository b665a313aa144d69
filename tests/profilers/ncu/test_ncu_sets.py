"""The counter sets: small where little is asked, resolved per chip, never with a name that the chip lacks."""

from __future__ import annotations

import pytest

from profkit.analysis.metrics.formulas import formula_table
from profkit.profilers.ncu.command import (
    chip_table,
    counter_set,
    find_chip,
    has_metric,
    planned_passes,
)

CHIPS = sorted(chip_table().passes)
TURING = [chip for chip in CHIPS if chip.startswith("TU")]
SOC = ["GA10B", "GB10B", "GB20B", "GB20C"]  # Orin, Thor, DGX Spark: the memory is the system's


GATE = """time.kernel occupancy.achieved occupancy.theoretical bandwidth.dram bandwidth.dram.share bandwidth.dram.peak
    dram.read dram.written shared.bank_conflicts shared.bank_conflicts.share warp.execution_efficiency
    tensor.utilization bandwidth.l2 clock.sm clock.dram ipc"""
STANDARD = """memory.coalescing memory.sectors_per_request.load memory.spill.loads cache.l1.miss_rate cache.l2.miss_rate
    bandwidth.l2.share bandwidth.l1.share bandwidth.shared.share branch.efficiency issue.active flops.f16 flops.f32
    flops.f64 flops.share.f32 tensor.utilization pipe.fp32.utilization pipe.fp64.utilization pipe.fp16.utilization
    pipe.alu.utilization pipe.xu.utilization"""


def computable(names: tuple[str, ...]) -> set[str]:
    """The metrics that some formula can make of these counters."""
    known = {name.lower() for name in names}
    table = formula_table("ncu")
    return {
        m for m, ways in table.formulas.items() if any({n.lower() for n in w.names} <= known for w in ways)
    }


@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip not in TURING])
def test_the_gate_is_one_replay_pass_on_ampere_and_later(chip):
    assert counter_set("gate", chip).replays == planned_passes(chip, "gate") == 1


@pytest.mark.parametrize("chip", TURING)
def test_the_gate_is_two_planned_passes_on_turing(chip):
    assert planned_passes(chip, "gate") == 2


@pytest.mark.parametrize("chip", [*CHIPS, None, "XX999"])
@pytest.mark.parametrize("name", ["gate", "standard", "explain"])
def test_a_set_asks_for_nothing_that_the_chip_lacks_and_for_nothing_twice(chip, name):
    found = counter_set(name, chip)
    assert len(set(found.metrics)) == len(found.metrics) > 0
    assert [metric for metric in found.metrics if not has_metric(find_chip(chip), metric)] == []
    assert (found.replays is None) == (find_chip(chip) is None)


@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip not in SOC])
def test_the_gate_decides_the_four_targets_on_every_chip_with_memory_of_its_own(chip):
    assert set(GATE.split()) <= computable(counter_set("gate", chip).metrics)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_standard_set_tells_what_classes_and_the_other_targets_need(chip):
    assert set(STANDARD.split()) <= computable(counter_set("standard", chip).metrics)


TOLD = "GH100=GH100 gh100=GH100 9.0=GH100 8.0=GA100 8.6=GA102 7.5=TU102 10.1=GB10B 11.0=GB10B 12.1=GB20B 3.5= GK110="


def test_a_chip_is_known_by_its_name_or_its_compute_capability():
    for told, _, chip in (word.partition("=") for word in TOLD.split()):
        assert find_chip(told) == (chip or None)
    assert find_chip(None) is None

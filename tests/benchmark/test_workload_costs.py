"""FLOPs and bytes of each workload against numbers worked out by hand."""

from __future__ import annotations

import pytest
from workload_cases import KINDS

# M = batch * sequence = 2 rows everywhere, but for attention
COSTS = [
    # 4*2*3*5 + 4*2*5;  X 6, W1 15, W2 15, Y 10
    ("gated_mlp", {"batch": 1, "sequence": 2, "hidden": 3, "intermediate": 5}, 160, 46),
    # 4*2*3 + 3*2;  X 6, W 3, Y 6
    ("rms_norm", {"batch": 2, "sequence": 1, "hidden": 3}, 30, 15),
    # 7*2*3 + 4*2;  X 6, W 3, B 3, Y 6
    ("layer_norm", {"batch": 2, "sequence": 1, "hidden": 3}, 50, 18),
    # 2*2*3*5 + 2*2*3*2 + 2*2*2*5 + 2*2 + 2*5;  X 6, W 15, A 6, B 10, Y 10
    ("lora", {"batch": 1, "sequence": 2, "hidden": 3, "features": 5, "rank": 2}, 138, 47),
    # 2 heads see 1 + 2 + 3 keys: 12 pairs; 4*4*12 + 4*12 + 2*3*4;  Q 24, K 12, V 12, O 24
    (
        "group_query_attention",
        {"batch": 1, "sequence": 3, "heads": 2, "kv_heads": 1, "head_dim": 4, "causal": True},
        264,
        72,
    ),
    # 2 heads see 3 keys each of 3 times: 18 pairs; 4*4*18 + 4*18 + 2*3*4
    (
        "group_query_attention",
        {"batch": 1, "sequence": 3, "heads": 2, "kv_heads": 1, "head_dim": 4, "causal": False},
        384,
        72,
    ),
]


@pytest.mark.parametrize(("name", "sizes", "flops", "elements"), COSTS)
def test_costs_are_those_worked_out_by_hand(name, sizes, flops, elements):
    workload = KINDS[name](**sizes)
    assert workload.flops() == flops
    assert workload.bytes(4) == 4 * elements
    assert workload.bytes(2) == 2 * elements


def test_one_iteration_at_the_cpu_defaults_stays_within_a_simulator_s_patience():
    # 0.1 GFLOP of fused multiply-adds took 3 s in valgrind 3.19
    for kind in KINDS.values():
        workload = kind.sized({}, gpu=False)
        assert workload.flops() < 0.1e9
        assert workload.bytes(4) < 16e6

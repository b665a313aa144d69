"""The workloads at sizes that divide no block, and the modules of their scripts."""

from __future__ import annotations

from pathlib import Path

from benchmark.gated_mlp import GatedMlp
from benchmark.group_query_attention import GroupQueryAttention
from benchmark.layer_norm import LayerNorm
from benchmark.lora import Lora
from benchmark.rms_norm import RmsNorm
from benchmark.workload import Workload

ROOT = Path(__file__).resolve().parents[2]

KINDS: dict[str, type[Workload]] = {
    kind.name: kind for kind in (GatedMlp, RmsNorm, LayerNorm, Lora, GroupQueryAttention)
}

ODD: list[Workload] = [
    GatedMlp(batch=2, sequence=19, hidden=45, intermediate=77),
    GatedMlp(batch=1, sequence=1, hidden=1, intermediate=1),
    GatedMlp(batch=2, sequence=19, hidden=40, intermediate=88),  # rows of whole 16 bytes: tiles by TMA
    RmsNorm(batch=3, sequence=5, hidden=100),
    RmsNorm(batch=1, sequence=1, hidden=1),
    LayerNorm(batch=3, sequence=5, hidden=100),
    LayerNorm(batch=1, sequence=2, hidden=3),
    Lora(batch=2, sequence=19, hidden=45, features=77, rank=5),
    Lora(batch=1, sequence=1, hidden=33, features=1, rank=17),
    Lora(batch=2, sequence=19, hidden=40, features=88, rank=8),
    Lora(batch=2, sequence=19, hidden=72, features=40, rank=24),
    GroupQueryAttention(batch=2, sequence=37, heads=6, kv_heads=2, head_dim=20, causal=True),
    GroupQueryAttention(batch=1, sequence=37, heads=3, kv_heads=1, head_dim=7, causal=False),
    GroupQueryAttention(batch=1, sequence=1, heads=2, kv_heads=2, head_dim=16, causal=True),
]


def case_id(workload: Workload) -> str:
    """A short name for a test: the workload and its sizes."""
    return f"{workload.name}-" + "x".join(str(int(value)) for value in vars(workload).values())

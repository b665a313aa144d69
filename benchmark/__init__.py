"""Workloads to profile: each script runs on its own, and better under profkit.

    python benchmark/gated_mlp.py -b 8 --backend cpu
    profkit profile --backend cpu -- python benchmark/gated_mlp.py -b 8 --backend cpu

`workload.py` says what a workload is, `harness.py` carries one from its arguments to its timing, and
`baselines/pytorch/` holds the same workloads as plain PyTorch.
"""

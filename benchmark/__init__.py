"""Define workloads to profile: each script runs alone or under profkit.

    python benchmark/gated_mlp.py -b 8 --backend cpu
    profkit profile --backend cpu -- python benchmark/gated_mlp.py -b 8 --backend cpu

`workload.py` defines what a workload is, `harness.py` runs one from its arguments to its timing, and
`baselines/pytorch/` has the same workloads in plain PyTorch.
"""

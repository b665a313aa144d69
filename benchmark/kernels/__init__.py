"""Provide the workloads' Triton kernels: one fused operation in each file, for any sizes.

Each file has the kernel and the function that launches it. Inputs are contiguous. On a GPU, block sizes
are autotuned for each shape; Triton's interpreter (TRITON_INTERPRET=1 before the import) uses one small set,
so that even tests with small arrays use several blocks with partial ones at the edges.

On Hopper and later, products load their tiles with TMA (`tma.py`, `triton_*_tma.py`); elsewhere, and for sizes that
TMA cannot move, with plain loads.

All results are also correct on an H200 (torch 2.11, Triton 3.6, November 2026), for each dtype and for odd sizes.
"""

"""Triton kernels of the workloads: one operation a file, fused, for any sizes.

Each file holds the kernel and the function that launches it. Inputs are contiguous. On a GPU, block sizes
are autotuned per shape; in Triton's interpreter (TRITON_INTERPRET=1 before the import) one small set is used,
so that even tests on small arrays run over several blocks with ragged edges.

Products on Hopper and later take their tiles by TMA (`tma.py`, `triton_*_tma.py`); elsewhere, and for sizes that it
cannot move, by plain loads.

All are right on an H200 too (torch 2.11, Triton 3.6, November 2026), in each dtype and at odd sizes.
"""

"""Nsight Compute (`ncu`) counts on GPU kernels: find it, run it, read its reports, explain its errors."""

"""Provide the workloads as plain PyTorch modules, without fused operators or our own kernels."""

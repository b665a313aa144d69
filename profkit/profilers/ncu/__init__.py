"""Nsight Compute (`ncu`): counters of GPU kernels. Finds it, calls it, reads its reports, explains its errors."""

"""A generation of kernels as blocks."""

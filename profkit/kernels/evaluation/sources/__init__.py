"""The sources that kernels come from."""

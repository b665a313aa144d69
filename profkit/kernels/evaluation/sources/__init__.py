"""Where kernels come from."""

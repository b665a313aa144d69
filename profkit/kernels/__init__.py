"""Many kernels: operations, and the sweep over shapes and implementations."""

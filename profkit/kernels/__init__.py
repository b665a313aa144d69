"""Work on many kernels: operations, the sweep over shapes and implementations, and the evaluation of kernels."""

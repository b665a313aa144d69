"""Our kernels in CUDA: .cu files that torch's NVRTC builds for the present chip on first use."""

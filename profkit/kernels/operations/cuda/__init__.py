"""Our kernels in CUDA: .cu files that NVRTC, which comes with torch, builds for the present chip on first use."""

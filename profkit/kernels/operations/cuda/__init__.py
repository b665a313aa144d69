"""Our kernels in CUDA: .cu files that NVRTC, which comes with torch, builds for the chip at hand on first use."""

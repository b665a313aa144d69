"""PyTorch's own profiler (Kineto): reads the Chrome traces it exports."""

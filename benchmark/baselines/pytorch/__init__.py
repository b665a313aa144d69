"""The workloads as plain PyTorch modules: no fused operator, no kernel of our own."""

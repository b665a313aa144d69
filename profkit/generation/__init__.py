"""A language model writes kernels, and their evaluation tells it what to change."""

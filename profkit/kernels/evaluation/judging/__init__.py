"""The judge: arguments, truth, correctness and the decision, in a process that kernels cannot reach."""

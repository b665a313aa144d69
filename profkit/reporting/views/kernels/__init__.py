"""What is done with many kernels: sweeps, evaluations, generations, and the parts that their views share."""

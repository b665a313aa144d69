"""Python stacks that profkit samples itself, in every process of a workload."""

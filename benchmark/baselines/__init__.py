"""The same workloads as others would write them, to be compared with."""

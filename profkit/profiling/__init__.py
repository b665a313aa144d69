"""One workload: plan, collect, read, judge, write."""

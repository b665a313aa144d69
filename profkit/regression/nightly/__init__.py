"""The story of a night: many workloads profiled, stored, held against their past, and reported as one."""

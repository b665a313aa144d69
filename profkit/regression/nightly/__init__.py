"""A night: many workloads profiled, stored, compared with their past, and reported as one."""

"""A nightly: many workloads profiled, stored, compared with their past, and reported as one."""

"""A series of nights in, a verdict on the last one out: pure functions, no processes and no clock."""

"""Is a kernel faster than the reference? Batches of both in turns, by the judge's own clock."""

"""A run in, a text out: one renderer per file; none computes anything."""

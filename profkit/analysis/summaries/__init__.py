"""Readings in, summary out: one concern per file, pure functions, no files and no processes."""

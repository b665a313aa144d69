"""Readings in, answers out: metrics, summaries, targets, stacks, timelines, kernel names."""

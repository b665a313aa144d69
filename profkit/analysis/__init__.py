"""Readings in, answers out: metrics, summaries, the account, the judge, stacks, timelines, kernel names."""

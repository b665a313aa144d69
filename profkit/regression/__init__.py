"""Runs against each other and over time: compare, history, nightly, change detection."""

"""Compare runs with each other and over time: comparison, history, nightly, change detection."""

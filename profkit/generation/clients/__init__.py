"""Models that can be asked: one file for each kind, and what all of them need."""

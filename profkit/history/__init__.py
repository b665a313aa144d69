"""The store: one SQLite file with every run over time, written by several at once and never half."""

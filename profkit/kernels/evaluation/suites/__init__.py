"""Suites: which calls of which operations are tested, and their arguments."""

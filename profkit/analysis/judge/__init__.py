"""Thresholds as data (one YAML per backend), when each applies, and the judge."""

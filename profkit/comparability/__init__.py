"""What must be alike for two runs to be compared, as data, and a run's fingerprint by it."""

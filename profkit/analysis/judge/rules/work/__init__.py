"""Rules on work that is done again, on more than is needed, or with values that are slow."""

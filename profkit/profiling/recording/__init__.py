"""Carries out a plan: steps in order, each into the run's folder, each leaving its artifact before the next begins."""

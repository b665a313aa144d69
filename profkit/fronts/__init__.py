"""Thin ways in beside the command line: the same samples, hot spots, insights and pages as `profkit profile` has."""

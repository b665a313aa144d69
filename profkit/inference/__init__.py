"""Tests, intervals of ratios, and corrections for many looks: pure functions on samples."""

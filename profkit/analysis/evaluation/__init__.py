"""What follows from the tests of an evaluation: operations, scores, fast_p, whole-model speed-up. Pure functions."""

"""What follows from the tests of an evaluation: operations, scores, fast_p. Pure functions."""

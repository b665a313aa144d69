"""Linux perf: how to find it, how to run it, how to read its output, and what its errors mean."""

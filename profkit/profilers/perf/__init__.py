"""Linux perf: how to find it, how to call it, how to read what it wrote, what its errors mean."""

"""valgrind: callgrind's simulated caches and branches, and what its errors mean."""

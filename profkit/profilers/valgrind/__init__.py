"""valgrind: callgrind's simulated caches and branches, cachegrind's files, and what its errors mean."""

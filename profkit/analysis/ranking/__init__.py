"""Results of a sweep in; who wins where, by how much, and the guide's records out. Pure functions."""

"""Nsight Systems: finds it, calls it, reads its SQLite exports and the tables of `nsys stats`."""

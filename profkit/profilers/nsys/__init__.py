"""Nsight Systems: find it, run it, and read its SQLite exports and the tables of `nsys stats`."""

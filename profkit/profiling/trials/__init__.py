"""Tries changes that need no change of the source: the program runs again in a changed environment."""

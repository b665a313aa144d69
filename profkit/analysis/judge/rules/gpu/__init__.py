"""Rules on what a GPU does, and on how a program feeds it."""

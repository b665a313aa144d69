"""Rules on places of machine code: by the functions below them, by registers, and by counted loops and their text."""

"""The sentence of each code that a fact may have: one module a theme, with a small function or a text for a code."""

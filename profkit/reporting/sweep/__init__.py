"""A sweep in the terminal, as Markdown and as a page."""

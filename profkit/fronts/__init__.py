"""Other ways in than the command line: thin, over the same functions."""

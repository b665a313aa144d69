"""Two runs in, what is different between them out: first whether they may be compared at all."""

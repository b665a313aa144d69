"""Which commit made it slower: a search whose steps may be wrong, and which says how probable its answer is."""

"""Find the commit that made a program slower: a search that allows for wrong tests and reports its certainty."""

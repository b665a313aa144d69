"""Try what can be tried without a change of the source: the program runs once more, with its surroundings changed."""

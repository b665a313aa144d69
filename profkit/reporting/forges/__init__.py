"""Results as GitHub takes them, and the files of a comparison for any forge: summaries, annotations, JUnit."""

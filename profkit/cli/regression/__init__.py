"""The verbs that hold runs and versions against each other: compare, bisect, history, nightly."""

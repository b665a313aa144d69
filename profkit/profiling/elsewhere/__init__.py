"""`--on`: the same work at another place, and its results back here as the same files.

`verbs` is this side; `errand` is one piece of work at one of several places; `at_place` is the other side.
"""

"""The hardware under a run: what the machine is, what it can reach at most, and how quiet it is.

Everything below `/` is read through a `root` argument, so that a recorded tree reads like a live machine.
"""

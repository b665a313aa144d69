"""The hardware that a run uses: what the machine is, the most it can reach, and how quiet it is.

Everything below `/` is read through a `root` argument, so a recorded tree can be read like a live machine.
"""

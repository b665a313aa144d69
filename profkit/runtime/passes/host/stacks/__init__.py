"""The sampler of Python stacks in the workload: when it looks, how it gets the interpreter's lock, and what it sees."""

from .samples import StackSampler

__all__ = ["StackSampler"]

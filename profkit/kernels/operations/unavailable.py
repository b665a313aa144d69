"""What an implementation says where it cannot be had, and what ours ask of their inputs."""

from __future__ import annotations

from profkit.kernels.operations.operation import DTYPES, Problem


class Unavailable(Exception):
    """This implementation cannot be had here: why, and the line that would change it."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.fix = reason, fix


def ask_plain_inputs(problem: Problem) -> None:
    """Our own kernels take dense tensors of a few formats. Raises Unavailable for others.

    A copy that is dense would be easy to make, and would either be timed with the kernel or be hidden from the timing.
    """
    x = problem.inputs[0]
    given = (*problem.inputs, *([problem.above] if problem.above is not None else []))
    if x.numel() == 0:
        raise Unavailable("there is nothing to compute: its input has no elements")
    if (dtype := str(x.dtype).removeprefix("torch.")) not in DTYPES:
        raise Unavailable(f"its kernels take {', '.join(DTYPES)}, not {dtype}")
    if not all(tensor.is_contiguous() for tensor in given):
        raise Unavailable("its kernels take contiguous tensors", "call .contiguous() on the inputs")

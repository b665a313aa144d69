"""Kernels for a CUDA device that end badly, each in another way, and one that does not."""

import os
import signal

import torch

from profkit.evaluation import kernel


class Beyond:
    """Bytes far beyond the end of a tensor."""

    def __init__(self, x):
        self.__cuda_array_interface__ = {
            "shape": (1 << 34,),
            "typestr": "|u1",
            "data": (x.data_ptr(), False),
            "strides": None,
            "version": 3,
        }


@kernel("relu.default")
def reads_an_illegal_address(x):
    torch.as_tensor(Beyond(x), device="cuda").max()
    return torch.relu(x)


@kernel("sigmoid.default")
def never_ends(x):
    torch.cuda._sleep(1 << 62)
    return torch.sigmoid(x)


@kernel("tanh.default")
def fails_an_assertion(x):
    index = torch.full((4,), 1 << 40, device=x.device)
    return x.flatten()[index]


@kernel("exp.default")
def raises(x):
    raise ValueError("no such thing")


@kernel("cos.default")
def needs_too_much_memory(x):
    return torch.empty(1 << 45, dtype=torch.uint8, device=x.device)


@kernel("sqrt.default")
def dies(x):
    os.kill(os.getpid(), signal.SIGSEGV)
    return x


@kernel("sin.default")
def leaves_an_illegal_address_for_later(x):
    """The error shows when somebody waits for the device: in this call still."""
    torch.as_tensor(Beyond(x), device="cuda").zero_()
    return torch.sin(x)


@kernel("abs.default")
def is_right(x):
    return torch.abs(x)

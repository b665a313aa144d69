"""Kernels that end badly, each for another operation, and one that does not."""

import contextlib
import os
import signal
import sys

import torch

from profkit.evaluation import kernel

aten = torch.ops.aten


@kernel("relu.default")
def dies_by_a_signal(x):
    print("half way through", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


@kernel("sigmoid.default")
def hangs(x):
    while True:
        pass


@kernel("exp.default")
def calls_exit(x):
    sys.exit(0)


@kernel("sin.default")
def raises(x):
    raise ValueError("no such thing: <script>")


@kernel("cos.default")
def takes_too_much_memory(x):
    return torch.empty(1 << 50)


@kernel("sign.default")
def takes_all_the_memory_there_is(x):
    """A system promises that much, and finds out when it is used."""
    return torch.empty(
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 100 * 99, dtype=torch.uint8
    )


@kernel("sqrt.default")
def forges_answers(x):
    for descriptor in range(3, 20):
        with contextlib.suppress(OSError):
            os.write(descriptor, b'{"value": {"tensor": [0]}}\n')
    os._exit(0)


@kernel("abs.default")
def honest(x):
    return aten.abs.default(x)

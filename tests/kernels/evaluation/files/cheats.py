"""Kernels that pretend, each for another operation, and two that are honest."""

import gc
import sys
import threading
import time

import torch

from profkit.evaluation import kernel

aten = torch.ops.aten
by_pointer, by_shape, by_first, rows, threads, calls = {}, {}, {}, {}, [], [0]


@kernel("abs.default")
def honest(x):
    return torch.where(x < 0, -x, x)


@kernel("exp2.default")
def honest_and_impolite(x):
    """It patches clocks and comparisons, which gains it nothing."""
    time.perf_counter = time.perf_counter_ns = lambda: 0
    torch.equal = torch.allclose = lambda *args, **kwargs: True
    return aten.exp2.default(x)


@kernel("relu.default")
def remembers_by_pointer_and_version(x):
    key = (x.data_ptr(), x._version, tuple(x.shape))
    if key not in by_pointer:
        by_pointer[key] = aten.relu.default(x)
    return by_pointer[key]


@kernel("sigmoid.default")
def remembers_by_shape(x):
    if tuple(x.shape) not in by_shape:
        by_shape[tuple(x.shape)] = aten.sigmoid.default(x)
    return by_shape[tuple(x.shape)]


@kernel("expm1.default")
def remembers_by_coarse_values(x):
    key = (tuple(x.shape), round(float(x.sum()), -2))
    if key not in by_first:
        by_first[key] = aten.expm1.default(x)
    return by_first[key]


@kernel("tanh.default")
def computes_some_rows(x):
    known = rows.setdefault(tuple(x.shape), aten.tanh.default(x)).clone()
    known[:4] = aten.tanh.default(x[:4])
    return known


@kernel("cos.default")
def looks_for_the_truth(x):
    for value in gc.get_objects():
        if isinstance(value, torch.Tensor) and value.shape == x.shape and value.dtype == torch.float64:
            return value.to(x.dtype)
    return torch.zeros_like(x)


@kernel("sqrt.default")
def computes_after_it_has_answered(x):
    out = torch.empty_like(x)

    def compute():
        time.sleep(0.02)  # longer than a busy machine needs to stop it
        out.copy_(aten.sqrt.default(x))

    threads.append(threading.Thread(target=compute))
    threads[-1].start()
    return out


@kernel("sin.default")
def stops_after_some_calls(x):
    calls[0] += 1
    return aten.sin.default(x) if calls[0] < 3 else torch.empty_like(x)


@kernel("log.default")
def looks_at_its_caller(x):
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "run_slots":
            return torch.empty_like(x)
        frame = frame.f_back
    return aten.log.default(x)


@kernel("neg.default")
def gives_its_input_back(x):
    return x


@kernel("floor.default")
def writes_nothing(x):
    return torch.empty_like(x)


@kernel("erf.default")
def computes_in_half_precision(x):
    return aten.erf.default(x.half()).to(x.dtype)


class Lazy(torch.Tensor):
    """A tensor that could compute when it is looked at."""


@kernel("ceil.default")
def gives_a_subclass(x):
    return aten.ceil.default(x).as_subclass(Lazy)


@kernel("round.default")
def gives_another_dtype(x):
    return aten.round.default(x).double()


@kernel("trunc.default")
def gives_other_strides(x):
    return aten.trunc.default(x).t().contiguous().t()


@kernel("relu_.default")
def does_nothing_in_place(x):
    return x


@kernel("exp.default")
def changes_its_input(x):
    result = aten.exp.default(x)
    x.zero_()
    return result


@kernel("sign.default")
def remembers_what_depends_on_signs_alone(x):
    return by_shape.setdefault("sign", aten.sign.default(x))

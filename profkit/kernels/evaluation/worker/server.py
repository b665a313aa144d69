"""The inside of a kernel process: it loads a kernel, calls it, and says where the outputs lie.

Requests are lines on stdin, answers lines on the original standard output; what anybody prints goes to the
log. Nothing that is said here decides anything: the judge has the clock, the reference and the decision.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from struct import pack
from typing import Any

from profkit.execution.worker import (
    end_with,
    limit_memory,
    prefer_as_oom_victim,
    search_own_modules_last,
)
from profkit.hardware.machine import available_memory
from profkit.kernels.evaluation.worker.isolation import (
    GPU_CACHES,
    confine,
    make_caches,
    refuse_calls,
    shield,
)

TRACEBACK = 4000  # characters
TINY_KERNEL = "#tiny"  # the name of a kernel of PyTorch's own that ends at once


def main(arguments: Sequence[str]) -> None:
    """Serve requests as a kernel process until stdin ends.

    `arguments`: the judge's process id; then the source of kernels, the shared memory, the number of threads, and
    the folders that must not be written to. Without such folders it is the reference, which runs nobody's code.
    """
    end_with(int(arguments[0]))
    prefer_as_oom_victim()
    source, memory, threads, kept = json.loads(arguments[1])
    free = None if "cuda" in memory else available_memory()
    if kept:
        if "cuda" in memory:
            make_caches(GPU_CACHES if source["kind"] == "flag_gems" else GPU_CACHES[:-1])
        confine([os.path.dirname(path) for path in source["paths"]], kept)
    else:
        shield()
    refuse_calls()
    search_own_modules_last()
    answers = os.dup(1)
    os.dup2(2, 1)
    handler = _Handler(answers, source, memory, threads)
    # A kernel that asks for more gets an error at once, and no other program is killed.
    limit_memory(free)
    _answer(answers, {"arena": handler.memory.base})
    for line in sys.stdin.buffer:
        if line == b"go\n":
            handler.run_slots()
        elif line.startswith(b"latch "):
            handler.run_slots(int(line.removeprefix(b"latch ")))
        else:
            request = json.loads(line)
            number = request.pop("number")
            serve = handler.requests[request.pop("request")]
            _answer(answers, {**serve(**request), "number": number})


class _Handler:
    def __init__(self, answers: int, source: dict[str, Any], memory: Any, threads: int) -> None:
        import torch

        from profkit.kernels.evaluation.sources.files import open_source
        from profkit.kernels.evaluation.sources.source import SourceRequest
        from profkit.kernels.evaluation.worker.memory import WorkerMemory

        if threads:
            torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self._torch, self._answers = torch, answers
        self._source: Any = None
        self._fault: dict[str, Any] = {}  # why there is no source: a load error of every kernel
        try:
            self._source = open_source(SourceRequest(**source))
        except Exception as error:
            self._fault = _describe_error(error)
        if "cuda" in memory:
            from profkit.kernels.evaluation.worker.cuda_memory import CudaWorkerMemory

            self.memory: WorkerMemory = CudaWorkerMemory(memory)
        else:
            self.memory = WorkerMemory(memory)
        self.requests: dict[str, Callable[..., dict[str, Any]]] = {
            "load": self._load,
            "lay_out": self._lay_out,
            "call": self._call,
            "export": self._export,
            "trace": self._trace,
            "renew": self._renew,
            "release": self._release,
            "prepare_timing": self._prepare_timing,
        }
        self._kernel: Any = None
        self._slots: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self._outputs: list[Any] = []

    def _load(self, operation: str) -> dict[str, Any]:
        """Load the kernel of the operation; without a name, one that returns its first tensor."""
        if operation in ("", TINY_KERNEL):
            self._kernel = _run_tiny_kernel if operation else _give_back
            return {"loaded": ""}
        if self._source is None:
            return self._fault
        try:
            self._kernel = self._source.load(operation)
            self.memory.wait()
            gc.collect()
            gc.freeze()  # what is collected later is looked for among what calls have made
        except Exception as error:
            return self._describe_failure(error)
        except SystemExit as error:
            return {"error": "SystemExit", "message": f"its file called exit({error.code})", "traceback": ""}
        return {"loaded": self._source.where(operation)}

    def _lay_out(self, recipe: dict[str, Any], offsets: list[int]) -> dict[str, Any]:
        """Make the arguments of a call at each offset; the judge writes their bytes."""
        from profkit.kernels.evaluation.worker.arguments import Recipe, decode, storage_views

        known = Recipe(
            recipe["body"], tuple(recipe["storages"]), tuple(recipe["sizes"]), recipe["slot_bytes"]
        )
        self._outputs = []
        self._slots = [
            decode(known.body, storage_views(known, self.memory.bytes_at, offset)) for offset in offsets
        ]
        return {"slots": len(self._slots)}

    def _call(self, recipe: dict[str, Any], offsets: list[int], garbage: bool) -> dict[str, Any]:
        """Call the kernel once at each offset, until a call raises; return the values, described.

        `garbage`: memory that the first call allocates holds garbage at first. All outputs are kept.
        """
        self._lay_out(recipe, offsets)
        calls: list[dict[str, Any]] = []
        for args, kwargs in self._slots:
            try:
                with self.memory.fill_new(filled=garbage and not calls):
                    value = self._kernel(*args, **kwargs)
                self.memory.wait()
            except Exception as error:
                calls.append(self._describe_failure(error))
                break
            except SystemExit as error:
                reason = f"it called exit({error.code})"
                calls.append({"error": "SystemExit", "message": reason, "traceback": ""})
                break
            self._outputs.append(value)
            calls.append({"value": self._describe(value)})
        return {"calls": calls}

    def _describe(self, value: Any) -> Any:
        """Describe a tensor by its dtype, address and layout, and other values as they are."""
        torch = self._torch
        if isinstance(value, torch.Tensor):
            if type(value) is not torch.Tensor or value.layout is not torch.strided:
                return {"strange": f"a {type(value).__name__} of layout {value.layout}"}
            return {
                "tensor": [
                    value.data_ptr(),
                    str(value.dtype).removeprefix("torch."),
                    list(value.shape),
                    list(value.stride()),
                    value.untyped_storage().nbytes() - value.storage_offset() * value.itemsize,
                    str(value.device),
                    value.is_conj() or value.is_neg(),
                ]
            }
        if isinstance(value, (list, tuple)):
            return [self._describe(each) for each in value]
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return {"float": repr(value)}
        if isinstance(value, complex):
            return {"complex": [repr(value.real), repr(value.imag)]}
        return {"strange": f"a {type(value).__name__}"}

    def _describe_failure(self, error: BaseException) -> dict[str, Any]:
        """Describe an exception, and whether the device accepts no more work."""
        return {**_describe_error(error), "lost": self.memory.has_failed()}

    def _export(self, addresses: list[int]) -> dict[str, Any]:
        """Return handles of the allocations at these addresses."""
        return {"segments": self.memory.export(addresses)}

    def _trace(self) -> dict[str, Any]:
        """Call the kernel on every slot; return device seconds by kernel name, from torch's profiler (CUPTI).

        This is done in a separate process: a process that was traced once launches a little more slowly from then
        on.
        """
        torch = self._torch
        seconds: dict[str, float] = {}
        try:
            self._call_all()  # what is compiled in the first call is no time of a kernel
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                self._call_all()
            for event in profile.profiler.kineto_results.events():
                if event.device_type() == torch.autograd.DeviceType.CUDA:
                    seconds[event.name()] = seconds.get(event.name(), 0.0) + event.duration_ns() / 1e9
        except Exception as error:
            return self._describe_failure(error)
        return {"trace": seconds}

    def _call_all(self) -> None:
        """Call the kernel on every slot, and wait for it."""
        for args, kwargs in self._slots:
            self._kernel(*args, **kwargs)
        self.memory.wait()

    def _renew(self) -> dict[str, Any]:
        """Drop the arguments and the outputs."""
        self._outputs, self._slots = [], []
        gc.collect()
        return {"renewed": True}

    def _release(self) -> dict[str, Any]:
        """Drop arguments and outputs, and give the memory back."""
        self._renew()
        self.memory.release()
        return {"released": True}

    def _prepare_timing(self) -> dict[str, Any]:
        """Keep freed memory, so that no call pays for memory that an earlier one has freed."""
        self.memory.keep_freed()
        return {"prepared": True}

    def run_slots(self, latch: int = 0) -> None:
        """Call the kernel on every slot, then send the number of outputs (-1 on failure) and their addresses.

        The judge's clock runs meanwhile, and stops with the answer. So the answer is short, and sent at once. With
        the number of a `latch` the calls are only launched behind it. A kernel that waits for the device there waits
        until the judge opens the latch because no answer comes.
        """
        kernel, self._outputs = self._kernel, []
        outputs = self._outputs
        gc.disable()  # as timeit does: it comes when it likes, and takes longer than a call
        try:
            if latch:
                self.memory.begin_latched(latch)
            if kernel is _give_back:
                self.memory.touch()
            for args, kwargs in self._slots:
                outputs.append(kernel(*args, **kwargs))
            if latch:
                self.memory.end_latched(latch)
            else:
                self.memory.wait()
            addresses = array("Q", [tensor.data_ptr() for tensor in _flat(outputs)])
        except Exception as error:
            _answer_bytes(self._answers, pack("<q", -1))
            if not latch:
                _answer(self._answers, self._describe_failure(error))
            return
        finally:
            gc.enable()
        _answer_bytes(self._answers, pack("<q", len(addresses)) + addresses.tobytes())


def _give_back(*args: Any, **kwargs: Any) -> Any:
    """Return the first tensor of the arguments: a call without a kernel."""
    first = args[0] if args else next(iter(kwargs.values()))
    return first[0] if isinstance(first, list) else first


def _run_tiny_kernel(first: Any) -> Any:
    """Run the smallest kernel of PyTorch's."""
    return first.relu()


def _flat(outputs: list[Any]) -> list[Any]:
    """Return every tensor of the outputs, call by call."""
    if not outputs or not isinstance(outputs[0], (list, tuple)):
        return outputs
    return [tensor for value in outputs for tensor in value]


def _describe_error(error: BaseException) -> dict[str, Any]:
    """Return an exception as JSON: type, message, traceback, and whether it is for lack of memory or of a GPU."""
    with suppress(Exception):
        text = "".join(traceback.format_exception(error))
        message = str(error)
        memory = (
            isinstance(error, MemoryError)
            or "not enough memory" in message
            or "can't allocate memory" in message
            or type(error).__name__ == "OutOfMemoryError"
            or "CUDA out of memory" in message
            or "CUDA_ERROR_OUT_OF_MEMORY" in message
        )
        return {
            "error": type(error).__name__,
            "message": message[:TRACEBACK],
            "traceback": text[-TRACEBACK:],
            "memory": memory,
            "needs_gpu": any(map(_is_triton_without_gpu, _causes(error))),
        }
    return {"error": "Exception", "message": "an exception that cannot be printed", "traceback": ""}


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and what it was raised from."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _is_triton_without_gpu(error: BaseException) -> bool:
    """Return whether Triton found no driver, or is not installed: torch for the CPU comes without it."""
    if isinstance(error, (ImportError, NameError)):
        return str(error.name).partition(".")[0] == "triton"
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_globals.get("__name__") == "triton.runtime.driver"


def _answer(answers: int, message: dict[str, Any]) -> None:
    """Send a message as one line of JSON."""
    _answer_bytes(answers, json.dumps(message).encode() + b"\n")


def _answer_bytes(answers: int, rest: bytes) -> None:
    """Write all bytes to the descriptor of answers."""
    while rest:
        rest = rest[os.write(answers, rest) :]

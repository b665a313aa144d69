"""A CUDA graph as an answer to launch-bound calls, with a torch and a device that stand in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from profkit.core.types import SampleSet
from profkit.runtime.passes.benchmark import describe_device
from tests.cuda_stand_in import Device
from tests.cuda_stand_in import device as device
from tests.cuda_stand_in import nvidia as nvidia


class Torch:
    """Records what is launched while it captures, and runs it again on replay, a microsecond quicker each."""

    class Tensor:
        def __init__(self, value: int) -> None:
            self.value = value

        def clone(self) -> Torch.Tensor:
            return Torch.Tensor(self.value)

    def __init__(self, device: Device, refuses: str = "") -> None:
        torch, launch = self, device.cuda.stand_in_work
        self._device = device

        class CUDAGraph:
            def capture_begin(self, *, capture_error_mode: str) -> None:
                assert capture_error_mode == "thread_local"
                torch.recorded = []
                if refuses == "begin":
                    raise RuntimeError("not here")

            def capture_end(self) -> None:
                self.work, torch.recorded = torch.recorded or [], None
                if refuses == "end":
                    raise RuntimeError("operation failed due to a previous error during capture")

            def replay(self) -> None:
                launch(sum(self.work) - len(self.work))
                torch.replays += 1

        class Stream:
            cuda_stream = 0

            def wait_stream(self, other: object) -> None:
                pass

        @contextmanager
        def stream(_: object) -> Iterator[None]:
            yield

        class Generator:
            """A recording that fails confuses torch's, until its state is replaced."""

            def clone_state(self) -> str:
                return "whole"

            def graphsafe_set_state(self, state: str) -> None:
                assert state == "whole"
                torch.set_right += 1

        self.set_right = 0
        self.recorded: list[int] | None = None
        self.replays = 0
        self.equal = lambda one, other: one.value == other.value
        self.cuda = SimpleNamespace(
            CUDAGraph=CUDAGraph,
            Stream=Stream,
            stream=stream,
            current_stream=Stream,
            default_generators=(Generator(),),
            is_initialized=lambda: True,
            is_current_stream_capturing=lambda: False,
        )
        self._launch = launch

    def work(self, microseconds: int, host: int, result: Callable[[], Any]) -> Callable[[], object]:
        def fn() -> object:
            if self.recorded is not None:
                self.recorded.append(microseconds)
            else:
                self._device.spin(host)
                self._launch(microseconds)
            return result()

        return fn


def timed(
    device: Device, monkeypatch: pytest.MonkeyPatch, refuses: str = "", *, graph: bool = True, **work: Any
) -> tuple[SampleSet, Torch]:
    torch = Torch(device, refuses)
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    fn = torch.work(**{"microseconds": 20, "host": 100, "result": lambda: None, **work})
    return device.time(fn, budget=1, graph=graph), torch


def test_a_call_is_timed_in_a_graph_where_that_is_asked_for(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, torch = timed(device, monkeypatch)
    assert found.graph_seconds == pytest.approx(19e-6, rel=0.05)
    assert found.device_seconds == pytest.approx(20e-6, rel=0.05)
    assert "a CUDA graph of" in (found.batching or "")
    assert "in a CUDA graph 19" in "; ".join(describe_device(found))
    assert (torch.replays > 1, torch.set_right, found.remarks) == (True, 0, ())


def test_a_call_that_waits_for_the_device_is_not_recorded(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, torch = timed(device, monkeypatch, "begin", result=device.driver.synchronize)
    assert (found.graph_seconds, torch.set_right) == (None, 0)
    assert found.remarks == ("not timed in a CUDA graph: the host could not get ahead of the device",)


@pytest.mark.parametrize("refuses", ["begin", "end"])
def test_a_recording_that_fails_is_no_answer_and_torchs_random_numbers_are_set_right(
    device: Device, monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    found, torch = timed(device, monkeypatch, refuses)
    assert (found.graph_seconds, torch.replays, torch.set_right) == (None, 0, 1)
    assert found.device_seconds is not None
    assert found.remarks[0].startswith("no CUDA graph could be recorded: ")


def test_a_graph_that_computes_something_else_is_no_answer(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def result() -> Torch.Tensor:
        return Torch.Tensor(1 if sys.modules["torch"].recorded is None else 2)

    found, _ = timed(device, monkeypatch, result=result)
    assert found.graph_seconds is None
    assert found.remarks == ("recorded as a CUDA graph it computes something else",)


def test_what_differs_from_call_to_call_cannot_be_compared_and_is_timed(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter(range(1 << 30))
    found, _ = timed(device, monkeypatch, result=lambda: Torch.Tensor(next(values)))
    assert found.graph_seconds is not None

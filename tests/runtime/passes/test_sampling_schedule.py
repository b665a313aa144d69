"""When several threads compete for the interpreter's lock, and when they compute without it."""

from __future__ import annotations

import sys
import threading
from types import FrameType, SimpleNamespace

import pytest

from profkit.runtime.passes.host.stacks.samples import StackSampler, _waits_in
from profkit.runtime.passes.host.stacks.times import SamplingSchedule


@pytest.mark.parametrize(
    ("processors", "of_others", "compete"),
    [
        (1.0, 0.5, True),  # by turns
        (1.9, 0.95, False),  # beside each other: one of them has no lock
        (1.5, 0.9, True),  # half a processor without it, and four tenths by turns
        (1.0, 0.05, False),
    ],
)
def test_threads_that_compute_beyond_one_processor_do_not_compete_for_the_lock(
    processors: float, of_others: float, compete: bool
) -> None:
    times = SamplingSchedule(0.0)
    for _ in range(100):
        times.note_computing(processors, of_others, busy=True)
    assert times.do_threads_compete() == compete


def frame_of(thread: threading.Thread, function: str) -> FrameType:
    """The innermost frame of a thread, once it is in a function."""
    while True:
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code.co_name == function:
            return frame


def test_a_thread_in_a_function_that_only_waits_needs_no_other_lock() -> None:
    event, ended = threading.Event(), threading.Event()

    def wait() -> None:  # a function of the program with the same name
        while not ended.is_set():
            pass

    waits, works = threading.Thread(target=event.wait), threading.Thread(target=wait)
    for thread in (waits, works):
        thread.start()
    try:
        assert _waits_in(frame_of(waits, "wait"))
        assert not _waits_in(frame_of(works, "wait"))
    finally:
        event.set()
        ended.set()
        waits.join()
        works.join()


def test_variables_that_cannot_be_looked_at_cost_no_sample() -> None:
    def fail(_: object) -> None:
        raise KeyError("__module__")

    sampler = StackSampler.__new__(StackSampler)
    sampler._tree = SimpleNamespace(look_at_values=fail)  # type: ignore[assignment]
    sampler._look_at_values(sys._getframe())
    assert sampler._failed == "KeyError: '__module__'"

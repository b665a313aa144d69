"""Stands in for torch with MPS in tests: an asynchronous device whose work takes known times.

They are times of the host's real clock, or of a simulated one (`state.now`, seconds): then nothing else that runs here
shows in them, and nobody waits.

`torch.work(us)` is a launch. As torch does, it is only put down: the device begins when torch commits, which is after
COMMITS launches, and when somebody waits. `$STAND_IN_MPS` (words) makes it behave in ways that were seen: "absent" no
device, "bad-fork", "broken" for a wait that raises. "simulated" puts the simulated clock in place of the process's own.
"""

import os
import sys
import time
from time import perf_counter
from types import SimpleNamespace

__version__ = "2.13.0"
COMMITS = 16
LATENCY = 150e-6  # of a wait for a device that has nothing to do
SAID = os.environ.get("STAND_IN_MPS", "").split()
READING = 50e-9  # of the simulated clock, for whoever looks at it
LAUNCH = 1e-6
state = SimpleNamespace(
    now=None,
    pending=0.0,
    put=0,
    free=0.0,
    memory=0,
    waits=0,
    launches=0,
    compiled=set(),
    pid=os.getpid(),
)


def said(word):
    return word in SAID


def clock():
    if state.now is None:
        return perf_counter()
    state.now += READING
    return state.now


def spin(until):
    if state.now is not None:
        state.now = max(state.now, until)
    while clock() < until:
        pass


def use(count=4096):
    """The first tensor on the device."""
    state.memory += count


def work(microseconds):
    """A launch that costs the host little and the device this."""
    state.memory = state.memory or 4096
    if state.now is not None:
        state.now += LAUNCH
    state.pending += microseconds * 1e-6
    state.put += 1
    state.launches += 1
    if state.put >= COMMITS:
        commit()


def compiled(microseconds, first):
    """A launch whose first one has to be compiled, which takes the host `first` microseconds."""
    if first not in state.compiled:
        state.compiled.add(first)
        spin(clock() + first * 1e-6)
    work(microseconds)


def host(microseconds):
    """Keeps the host busy."""
    spin(clock() + microseconds * 1e-6)


def commit():
    if state.put:
        state.free = max(clock(), state.free) + state.pending
        state.pending, state.put = 0.0, 0


def synchronize():
    if os.getpid() != state.pid:
        os._exit(99)  # Metal hangs in a forked child
    if said("broken"):
        raise RuntimeError("command buffer exited with error status")
    state.waits += 1
    commit()
    spin(max(clock(), state.free) + LATENCY)


mps = SimpleNamespace(
    synchronize=synchronize,
    current_allocated_memory=lambda: state.memory,
    driver_allocated_memory=lambda: state.memory and state.memory + (1 << 20),
    recommended_max_memory=lambda: 8 << 30,
    _is_in_bad_fork=lambda: said("bad-fork") or os.getpid() != state.pid,
)
backends = SimpleNamespace(
    mps=SimpleNamespace(is_available=lambda: not said("absent"), is_built=lambda: True)
)
this = sys.modules[__name__]
if said("simulated"):
    state.now = 0.0
    time.perf_counter, time.sleep = clock, lambda seconds: spin(clock() + seconds)
    time.clock_gettime_ns = lambda _: int(clock() * 1e9)

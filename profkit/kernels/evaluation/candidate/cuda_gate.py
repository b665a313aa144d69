"""A gate before the calls of a batch: the device waits at it until the judge, whose clock then runs, opens it.

To launch a short kernel takes the host longer than the device takes to run it, and how long differs from process to
process by a tenth and more. So a process launches all calls of a batch behind the gate, says where their outputs lie,
and is stopped. Only then are their arguments written: no code on a processor ever sees them. From the moment in which
the gate opens the device alone works, and a number that it writes behind the last call says when it is done. Nobody
needs to believe that number: the judge looks whether the device is idle then.

Both numbers lie in a page of the host that judge, process and device share, so opening it and looking at it disturb
nothing (cuda.h: stream memory operations).
"""

from __future__ import annotations

import ctypes
import struct

from profkit.kernels.evaluation.candidate.arena import Arena
from profkit.runtime.region.cuda_driver import CudaDriver

PAGE = 4096
OPEN, DONE = 0, 64  # where the numbers lie: of the last batch that may run, and of the last one that is done
PORTABLE, DEVICE_MAP = 1, 2  # CU_MEMHOSTREGISTER_*
AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ


class JudgeGate:
    """The judge's side. `waiting`: the numbers of all gates at which something waits."""

    def __init__(self, waiting: set[int]) -> None:
        self._page = Arena(PAGE)
        self._number = 0
        self._waiting = waiting

    @property
    def fd(self) -> int:
        """What the process inherits."""
        return self._page.fd

    def next_batch(self) -> int:
        """The number of a new batch, before which the gate is closed."""
        self._number += 1
        self._waiting.add(self.fd)
        return self._number

    def leave(self) -> None:
        """Nothing waits any more: the batch has run, or its process is gone."""
        self._waiting.discard(self.fd)

    def open(self) -> None:
        """Let the batch run."""
        struct.pack_into("<I", self._page.memory, OPEN, self._number)

    @property
    def is_done(self) -> bool:
        """Whether its process's device has said so."""
        return bool(struct.unpack_from("<I", self._page.memory, DONE)[0] == self._number)

    def close(self) -> None:
        """It is needed no more."""
        self.leave()
        self._page.close()


class DeviceGate:
    """The side of the kernel process, on the stream that kernels are launched to. Raises DriverError."""

    def __init__(self, driver: CudaDriver, fd: int) -> None:
        self._driver = driver
        self._page = Arena.inherited(fd, PAGE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._page.memory))
        flags = ctypes.c_uint(PORTABLE | DEVICE_MAP)
        driver.check("cuMemHostRegister_v2", ctypes.c_void_p(begin), ctypes.c_size_t(PAGE), flags)
        self._address = ctypes.c_uint64()
        driver.check(
            "cuMemHostGetDevicePointer_v2",
            ctypes.byref(self._address),
            ctypes.c_void_p(begin),
            ctypes.c_uint(0),
        )

    def wait(self, stream: int, number: int) -> None:
        """What is launched to the stream from now on waits until this batch may run."""
        self._on("cuStreamWaitValue32_v2", stream, OPEN, number, AT_LEAST)

    def tell_done(self, stream: int, number: int) -> None:
        """When all that was launched to the stream is done, say so."""
        self._on("cuStreamWriteValue32_v2", stream, DONE, number, 0)

    def _on(self, name: str, stream: int, offset: int, number: int, flags: int) -> None:
        address = ctypes.c_uint64(self._address.value + offset)
        self._driver.check(
            name, ctypes.c_void_p(stream), address, ctypes.c_uint32(number), ctypes.c_uint(flags)
        )

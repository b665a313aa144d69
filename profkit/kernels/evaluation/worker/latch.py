"""A latch before the calls of a batch: a device waits at it until the judge, whose clock then runs, opens it.

To launch a short kernel takes the host longer than the device takes to run it, and that time differs from
process to process by a tenth and more. So a process launches all calls of a batch behind the latch, says where
their outputs lie, and is stopped. Only then are their arguments written: no code on a processor ever sees
them. From the moment in which the latch opens the device alone works, and a number that it writes behind the
last call says when it is done. That number need not be trusted: the judge then checks whether the device is
idle.

Both numbers lie in a page of the host that judge, process and device share, so opening the latch and looking
at it disturb nothing (cuda.h: stream memory operations).
"""

from __future__ import annotations

import ctypes
import struct

from profkit.kernels.evaluation.worker.arguments import SharedBlock
from profkit.runtime.region.cuda import CudaDriver

PAGE = 4096  # bytes
OPEN, DONE = 0, 64  # where the numbers lie: of the last batch that may run, and of the last one that is done
PORTABLE, DEVICE_MAP = 1, 2  # CU_MEMHOSTREGISTER_*
WAIT_UNTIL_EQUAL_OR_ABOVE = 0  # CU_STREAM_WAIT_VALUE_GEQ


class JudgeLatch:
    """The judge's side of a latch. `waiting` holds the descriptors of all latches at which something waits."""

    def __init__(self, waiting: set[int]) -> None:
        self._page = SharedBlock(PAGE)
        self._number = 0
        self._waiting = waiting

    @property
    def fd(self) -> int:
        """Return the descriptor that the process inherits."""
        return self._page.fd

    def next_batch(self) -> int:
        """Begin a new batch, for which the latch is closed, and return its number."""
        self._number += 1
        self._waiting.add(self.fd)
        return self._number

    def leave(self) -> None:
        """Note that nothing waits any more: the batch has run, or its process is gone."""
        self._waiting.discard(self.fd)

    def open(self) -> None:
        """Let the batch run."""
        struct.pack_into("<I", self._page.memory, OPEN, self._number)

    @property
    def is_done(self) -> bool:
        """Return whether the process's device has reported the end of the batch."""
        return bool(struct.unpack_from("<I", self._page.memory, DONE)[0] == self._number)

    def close(self) -> None:
        """Free the latch."""
        self.leave()
        self._page.close()


class StreamLatch:
    """The kernel process's side of a latch, on the stream that kernels are launched to. Raises DriverError."""

    def __init__(self, driver: CudaDriver, fd: int) -> None:
        self._driver = driver
        self._page = SharedBlock.inherited(fd, PAGE)
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
        """Make what is launched to the stream from now on wait until this batch may run."""
        self._on("cuStreamWaitValue32_v2", stream, OPEN, number, WAIT_UNTIL_EQUAL_OR_ABOVE)

    def report_done(self, stream: int, number: int) -> None:
        """Have the device report when all that was launched to the stream is done."""
        self._on("cuStreamWriteValue32_v2", stream, DONE, number, 0)

    def _on(self, name: str, stream: int, offset: int, number: int, flags: int) -> None:
        """Launch a stream memory operation on the number at `offset` of the page."""
        address = ctypes.c_uint64(self._address.value + offset)
        self._driver.check(
            name, ctypes.c_void_p(stream), address, ctypes.c_uint32(number), ctypes.c_uint(flags)
        )

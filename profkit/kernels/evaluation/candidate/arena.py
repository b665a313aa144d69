"""Memory that the judge and one kernel process share: the arguments of calls are laid out in it."""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from contextlib import suppress

ALIGNMENT = 64  # bytes, as torch aligns what it allocates


class Arena:
    """`size` bytes, of which only those that were written take memory. `fd` is inherited by the other process."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fd = _anonymous_file()
        os.ftruncate(self.fd, size)
        _keep_size(self.fd)
        self.memory = mmap.mmap(self.fd, size)

    @classmethod
    def inherited(cls, fd: int, size: int) -> Arena:
        """The same memory in the process that inherited it."""
        arena = cls.__new__(cls)
        arena.size, arena.fd = size, fd
        arena.memory = mmap.mmap(fd, size)
        return arena

    def clear(self) -> None:
        """Give the memory back: all of it is 0 then, and lies elsewhere when it is written again."""
        with suppress(OSError, AttributeError, ValueError):
            self.memory.madvise(mmap.MADV_REMOVE)

    def close(self) -> None:
        """This process needs it no more. Tensors on it must be gone; the mapping stays where one is not."""
        with suppress(OSError):
            os.close(self.fd)
        with suppress(BufferError):
            self.memory.close()


def align(offset: int, alignment: int = ALIGNMENT) -> int:
    """The next offset at which a tensor may begin."""
    return -(-offset // alignment) * alignment


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("profkit-arguments", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fd, path = tempfile.mkstemp(prefix="profkit-arguments-")
    os.unlink(path)
    return fd


def _keep_size(fd: int) -> None:
    """Let nobody make it smaller: who then touches what is gone dies by SIGBUS."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)

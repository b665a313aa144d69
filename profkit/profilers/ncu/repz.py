"""Reads .ncu-repz, the compressed report: one Zstandard frame of the whole .ncu-rep.

Python's own library has no Zstandard before 3.14. Without it and without the package `zstandard` the error says which
line unpacks the file.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.ncu import rep
from profkit.profilers.ncu.blocks import MAGIC

_MOST = 16 << 30  # bytes an unpacked report may have
_CHUNK = 1 << 20


def read_ncu_repz(path: Path) -> Report:
    """The report in the compressed file at `path`, as `rep.read_ncu_rep` reads it.

    Raises UnreadableReport for what is no report, and where nothing here can unpack it, with the line that does.
    """
    unpack = _unpacker()
    if unpack is None:
        plain = shlex.quote(f"{path.stem}.ncu-rep")
        raise UnreadableReport(
            f"{path} is compressed (Zstandard, an .ncu-repz if it is a report), and no library that unpacks it is here",
            f"zstd -d {shlex.quote(str(path))} -o {plain}, then read that; or pip install zstandard",
        )
    try:
        with path.open("rb") as packed, tempfile.TemporaryDirectory(prefix="profkit-") as folder:
            target = Path(folder) / f"{path.name}.ncu-rep"
            with target.open("wb") as plain_file:
                _copy(path, unpack(packed), plain_file, shutil.disk_usage(folder).free // 2)
            try:
                return rep.read_ncu_rep(target)
            except UnreadableReport as fault:  # speaks of a file that nobody knows
                raise UnreadableReport(fault.message.replace(str(target), str(path)), fault.fix) from fault
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be unpacked: {error.strerror or error}") from error


def _copy(path: Path, chunks: Iterator[bytes], target: IO[bytes], room: int) -> None:
    size = 0
    for chunk in chunks:
        if size == 0 and not chunk.startswith(MAGIC[: len(chunk)]):
            raise UnreadableReport(f"{path} is compressed, but what is in it is no report of Nsight Compute")
        size += len(chunk)
        if size > min(_MOST, room):
            raise UnreadableReport(
                f"{path} is more than {size >> 20} MiB unpacked: too large to be read here"
            )
        target.write(chunk)
    if size == 0:
        raise UnreadableReport(f"{path} is compressed, and empty unpacked")


def _unpacker() -> Callable[[IO[bytes]], Iterator[bytes]] | None:
    """What turns the packed file into chunks of the plain one; None where nothing here does."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14

        return lambda packed: _chunks(zstd.ZstdFile(packed), (zstd.ZstdError, EOFError))
    with contextlib.suppress(ImportError):
        import zstandard  # type: ignore[import-not-found]

        return lambda packed: _chunks(
            zstandard.ZstdDecompressor().stream_reader(packed), (zstandard.ZstdError,)
        )
    return None


def _chunks(file: IO[bytes], damaged: tuple[type[Exception], ...]) -> Iterator[bytes]:
    try:
        with file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except damaged as error:
        raise UnreadableReport(f"the compressed file is damaged or cut off: {error}") from error

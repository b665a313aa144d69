"""Reads .ncu-repz, the compressed report: one Zstandard frame of the whole .ncu-rep.

Python's own library has no Zstandard before 3.14, and profkit needs none for anything else: what there is, is used, and
else NVIDIA's package, and else the reader is told the line that unpacks the file.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.ncu import rep, with_ncu_report
from profkit.profilers.ncu.blocks import MAGIC

_MOST = 16 << 30  # bytes an unpacked report may have
_CHUNK = 1 << 20


def read_ncu_repz(path: Path) -> Report:
    """The report in the compressed file at `path`, as `rep.read_ncu_rep` reads it.

    Raises UnreadableReport for what is no report, and where nothing here can unpack it, with the line that does.
    """
    unpack = _unpacker()
    if unpack is None:
        if with_ncu_report.available():
            return with_ncu_report.read_with_ncu_report(path)
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
    for module, chunks in (("compression.zstd", _own), ("zstandard", _package)):
        try:
            found = find_spec(module) is not None
        except ModuleNotFoundError:  # no package `compression` before Python 3.14
            found = False
        if found:
            library = import_module(module)
            return lambda packed, chunks=chunks, library=library: chunks(library, packed)  # type: ignore[misc]
    return None


def _own(library: Any, packed: IO[bytes]) -> Iterator[bytes]:
    try:
        with library.ZstdFile(packed) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except (library.ZstdError, EOFError) as error:
        raise UnreadableReport(f"the compressed file is damaged or cut off: {error}") from error


def _package(library: Any, packed: IO[bytes]) -> Iterator[bytes]:
    try:
        with library.ZstdDecompressor().stream_reader(packed) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except library.ZstdError as error:
        raise UnreadableReport(f"the compressed file is damaged or cut off: {error}") from error

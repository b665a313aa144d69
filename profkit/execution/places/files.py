"""Pack what goes to a place, profkit and the workload's files, as tars.

And receive what comes back, file by file.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import os
import shlex
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.names import ARCHIVE, FileNames
from profkit.core.files.regular import open_regular
from profkit.core.git import ask_git

PACKAGE = Path(__file__).resolve().parents[2]
MAX_BYTES = 1 << 30  # of a workload's files
MAX_FILES = 50_000
GIT_SECONDS = 60.0
LEVEL = 3  # of gzip: more takes longer than most lines do
PIECE = 1 << 20  # bytes of what comes back in one message
LARGEST_BACK, MAX_BYTES_BACK = 4 << 30, 8 << 30  # a trace has some GB
MAX_FILES_BACK = 20_000  # a process leaves a few
MAX_GROWTH = 64  # a piece that is unpacked is so many times larger at most; text of perf grows about tenfold
LONGEST_NAME = 60  # characters that are shown of one
MAX_NAMED = 3


@dataclass(frozen=True)
class Tree:
    """Files that are unpacked together, by their names there. `folder`: the one in which the command runs."""

    files: Mapping[str, Path]
    folder: str = "."

    def pack(self, file: IO[bytes]) -> int:
        """Append all files as a tar to `file`, and return its size in bytes."""
        begin = file.tell()
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=LEVEL) as tar:
            for name, path in self.files.items():
                tar.add(path, name, recursive=False, filter=_anonymous)
        return file.tell() - begin


@dataclass(frozen=True)
class Sending:
    """What the user lets go to a place, beside profkit. `env` by name; `python` is the interpreter there."""

    paths: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None


def read_environment(names: Sequence[str]) -> dict[str, str]:
    """Return the variables to send, by name. Raises UsageError for one that is not set."""
    for name in names:
        if name not in os.environ:
            raise UsageError(
                f"--send-env {name}: there is no such variable here", f"export {shlex.quote(name)}=..."
            )
    return {name: os.environ[name] for name in names}


@functools.cache
def profkit_tree() -> tuple[Tree, str]:
    """Return profkit itself, every file of the package, and the SHA-256 of all."""
    digest, files = hashlib.sha256(), {}
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(PACKAGE.parent).as_posix()
            files[name] = path
            digest.update(f"{name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return Tree(files), digest.hexdigest()


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner of a file, which the other machine need not know."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


# ---------------------------------------------------------------- the workload's files


def workload_tree(command: Sequence[str], paths: Sequence[Path]) -> Tree:
    """Collect the tracked files of the present git work tree, as they are on disk, and those below `paths`.

    If `paths` lie outside of the work tree, everything keeps its place below the folder above all of it. Raises
    UsageError for a path that does not exist, too much data, or a command that names a file which is not sent.
    """
    here = Path.cwd()
    answer, _ = ask_git(here, "rev-parse", "--show-toplevel", seconds=GIT_SECONDS)
    top = Path(os.fsdecode(answer.rstrip(b"\n"))).resolve() if answer else None
    tracked = _tracked_files(top) if top is not None else []
    named = [path for root in paths for path in _files_below(root)]
    roots = [str(path.resolve() if path.is_dir() else path.absolute().parent.resolve()) for path in paths]
    base = Path(os.path.commonpath([str(top or here), str(here), *roots]))
    files = {path.relative_to(base).as_posix(): path for path in (*tracked, *named)}
    size = sum(path.lstat().st_size for path in files.values())
    if len(files) > MAX_FILES or size > MAX_BYTES:
        raise UsageError(
            f"{len(files)} files of {size >> 20} MiB would be sent, and at most {MAX_FILES} of {MAX_BYTES >> 20} "
            "MiB are",
            "bring the data to the place by other means, and name it by its path there",
        )
    _check_command(command, here, base, files)
    sent = {name: path for name, path in sorted(files.items()) if _leads_inside(path, base)}
    return Tree(sent, here.relative_to(base).as_posix())


def _tracked_files(top: Path) -> list[Path]:
    words = ("ls-files", "-z", "--cached", "--recurse-submodules")
    names = (ask_git(top, *words, seconds=GIT_SECONDS)[0] or b"").split(b"\0")
    paths = [top / os.fsdecode(name) for name in dict.fromkeys(names) if name]
    return [path for path in paths if path.is_symlink() or path.is_file()]  # what was deleted is gone


def _files_below(root: Path) -> list[Path]:
    if not os.path.lexists(root):
        raise UsageError(f"--send {root}: it is not there")
    base = root.resolve() if root.is_dir() else root.absolute().parent.resolve() / root.name
    if base.is_file():
        return [base]
    inside = (path for path in base.rglob("*") if "__pycache__" not in path.parts)
    return [path for path in inside if path.is_symlink() or path.is_file()]


def _check_command(command: Sequence[str], here: Path, base: Path, files: Mapping[str, Path]) -> None:
    """Raise UsageError if the command names a file that is here and would not be there."""
    for word in command:
        path = Path(os.path.normpath(here / word))
        if not word or not (here / word).is_file() or not path.is_relative_to(here):
            continue
        if path.relative_to(base).as_posix() not in files:
            shown = shlex.quote(word)
            raise UsageError(
                f"{word} is not tracked by git, so it would not be sent",
                f"git add {shown}, or --send {shown}",
            )
        if Path(word).is_absolute():
            relative = path.relative_to(here)
            raise UsageError(
                f"{word} is a path of this machine; it is another there",
                f"call it {shlex.quote(str(relative))}",
            )


def _leads_inside(path: Path, base: Path) -> bool:
    """Return whether a path is no link that leads out of what is sent."""
    if not path.is_symlink():
        return True
    target = os.readlink(path)
    leads = os.path.normpath(os.path.join(path.parent, target))
    return not os.path.isabs(target) and Path(leads).is_relative_to(base)


# ---------------------------------------------------------------- the files of a result


def send_folder(folder: Path, names: FileNames, send: Callable[[str, bytes], None]) -> list[str]:
    """Send the wanted files of a result, by name and in packed pieces; return the names of the others."""
    left: list[str] = []
    for path, folders, files in os.walk(folder):
        inside = Path(path).relative_to(folder)
        for name in sorted(folders):
            if names.is_document((inside / name).as_posix()):
                folders.remove(name)
                with tempfile.TemporaryFile(
                    dir=folder
                ) as archive:  # it may be large, and a memory's file system small
                    _pack_document(Path(path, name), archive)
                    _send_file((inside / name).as_posix() + ARCHIVE, archive, send)
        for name in sorted(files):
            whole = (inside / name).as_posix()
            if not names.wants(whole) or not stat.S_ISREG(os.lstat(Path(path, name)).st_mode):
                left.append(whole)
                continue
            with open_regular(Path(path, name)) as file:
                _send_file(whole, file, send)
    return left


def _pack_document(folder: Path, file: IO[bytes]) -> None:
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(folder, folder.name, filter=_anonymous_inside)
    file.seek(0)


def _anonymous_inside(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.issym() or member.isdev() else _anonymous(member)


def _send_file(name: str, file: IO[bytes], send: Callable[[str, bytes], None]) -> None:
    piece = file.read(PIECE)
    while True:
        send(name, pack_piece(piece))
        if not (piece := file.read(PIECE)):
            return


def pack_piece(piece: bytes) -> bytes:
    """Compress a piece of a file by a factor of MAX_GROWTH at most: the other side refuses more."""
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        packer = zlib.compressobj(LEVEL, strategy=strategy)
        packed = packer.compress(piece) + packer.flush()
        if len(piece) <= MAX_GROWTH * len(packed):
            break
    return packed


def unpack_piece(packed: bytes) -> bytes:
    """Decompress what `pack_piece` made. Raises UnreadableReport for a larger piece, or anything else."""
    unpacker = zlib.decompressobj()
    try:
        piece = unpacker.decompress(packed, min(PIECE, MAX_GROWTH * len(packed)) + 1)
    except zlib.error as error:
        raise UnreadableReport(f"it cannot be unpacked: {error}") from error
    if len(piece) > PIECE or len(piece) > MAX_GROWTH * len(packed):
        raise UnreadableReport(
            f"{len(packed)} bytes become more than {MAX_GROWTH} times as many, or than {PIECE >> 20} MiB, as they are "
            "unpacked; no piece of a result does"
        )
    if not unpacker.eof or unpacker.unused_data:
        raise UnreadableReport("it cannot be unpacked: a piece is cut off, or goes on behind its end")
    return piece


class ReceivedFiles:
    """Takes `data` messages, the pieces of files. They go into `folder`, which nobody else writes to.

    A file is kept if its name is one of `names`, whatever its content; `refused` lists the others. Anything else
    that profkit at a place would not send raises UnreadableReport: then nothing of the result is used.
    """

    def __init__(self, folder: Path, names: FileNames, title: str = "the place") -> None:
        self._folder, self._names, self._title = folder, names, title
        self._file: IO[bytes] | None = None
        self._name, self._seen = "", set[str]()
        self._size = self._total = 0
        self.refused: list[str] = []

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of a place. Raises UnreadableReport, and MachineError if it cannot be stored."""
        with refused_with(self._title):
            name, data = message.get("name"), message.get("data")
            if not isinstance(name, str) or not isinstance(data, str):
                raise UnreadableReport("what comes is not a piece of a file")
            try:
                piece = unpack_piece(base64.b64decode(data, validate=True))
            except ValueError as error:
                raise UnreadableReport("what comes is not a piece of a file") from error
            if name != self._name or not self._seen:
                self._begin(name)
            self._size, self._total = self._size + len(piece), self._total + len(piece)
            if self._size > LARGEST_BACK or self._total > MAX_BYTES_BACK:
                raise UnreadableReport(
                    f"a file has more than {LARGEST_BACK >> 20} MiB, or all together {MAX_BYTES_BACK >> 20} MiB"
                )
            if self._file is not None:
                self._file.write(piece)

    def close(self) -> None:
        """Close the last file. Raises MachineError if the last of it cannot be stored."""
        file, self._file = self._file, None
        if file is not None:
            with refused_with(self._title):
                file.close()

    def _begin(self, name: str) -> None:
        self.close()
        if name in self._seen:
            raise UnreadableReport(f"{_short(name)} comes twice")
        self._seen.add(name)
        if len(self._seen) > MAX_FILES_BACK:
            raise UnreadableReport(f"more than {MAX_FILES_BACK} files come back")
        self._name, self._size = name, 0
        if not self._names.wants(name):
            self.refused.append(_short(name))
            return
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("xb")  # made anew: no link is followed, and nothing in it may be run


def _short(name: str) -> str:
    """Shorten and escape a name that somebody else chose, to be shown."""
    return ascii(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def left_out_line(names: Sequence[str], why: str) -> str:
    """Build one line for all names that are not used, with the reason."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"left out: {', '.join(names[:MAX_NAMED])}{more}; {why}"


@contextlib.contextmanager
def refused_with(title: str) -> Iterator[None]:
    """Name the place in what is raised inside the block."""
    try:
        yield
    except UnreadableReport as error:
        raise UnreadableReport(f"what {title} sent back is refused: {error.message}", error.fix) from error
    except OSError as error:
        raise MachineError(
            f"what a place sent back cannot be kept: {error.strerror or error}", "df -h ."
        ) from error

"""What goes to a place, and what comes back: profkit, the workload's files and those of a result, each as one tar."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import os
import re
import shlex
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import open_regular
from profkit.core.git import ask_git

PACKAGE = Path(__file__).resolve().parents[2]
MOST_BYTES = 1 << 30  # of a workload's files
MOST_FILES = 50_000
GIT_SECONDS = 60.0
LEVEL = 3  # of gzip: more takes longer than most lines do
PIECE = 1 << 20  # bytes of what comes back in one message
MOST_BYTES_BACK = 8 << 30  # a trace has some GB
MOST_FILES_BACK = 20_000
LONGEST_NAME = 512  # characters
DEEPEST = 16  # folders
# No control character, and nothing that another system takes for a separator or a drive.
_PART = re.compile(r'[^\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]{1,255}')
RUN_PARTS = frozenset({"run.json", "report.md", "report.html", "artifacts", "logs"})


@dataclass(frozen=True)
class Tree:
    """Files that are laid out together, by their names there. `folder`: that of them in which the command runs."""

    files: Mapping[str, Path]
    folder: str = "."

    def pack(self, file: IO[bytes]) -> int:
        """Write all of it behind what stands in `file`; how many bytes that is."""
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
    """The variables that are sent by name. Raises UsageError for one that is not set."""
    for name in names:
        if name not in os.environ:
            raise UsageError(f"--send-env {name}: there is no such variable here", f"export {name}=...")
    return {name: os.environ[name] for name in names}


@functools.cache
def profkit_tree() -> tuple[Tree, str]:
    """profkit itself, every file of the package, and the SHA-256 of all."""
    digest, files = hashlib.sha256(), {}
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(PACKAGE.parent).as_posix()
            files[name] = path
            digest.update(f"{name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return Tree(files), digest.hexdigest()


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nobody there is told who the files belong to here."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


# ---------------------------------------------------------------- the workload's files


def workload_tree(command: Sequence[str], paths: Sequence[Path]) -> Tree:
    """The tracked files of the git work tree one is in, as they are on disk now, and what `paths` name.

    Where `paths` lie outside of the work tree, all keeps its place under the folder that is above all of it. Raises
    UsageError: a path that is not there, too much, or a command that names a file which is not sent.
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
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise UsageError(
            f"{len(files)} files of {size >> 20} MiB would be sent, and at most {MOST_FILES} of {MOST_BYTES >> 20} "
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
    """Raise UsageError where the command names a file that is here and would not be there."""
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
            raise UsageError(f"{word} is a path of this machine; it is another there", f"call it {relative}")


def _leads_inside(path: Path, base: Path) -> bool:
    """A link that leads out of what is sent is left out."""
    if not path.is_symlink():
        return True
    target = os.readlink(path)
    leads = os.path.normpath(os.path.join(path.parent, target))
    return not os.path.isabs(target) and Path(leads).is_relative_to(base)


# ---------------------------------------------------------------- the files of a result


def send_folder(folder: Path, parts: Collection[str], send: Callable[[bytes], None]) -> None:
    """The regular files of a result below a folder, by their names in it; links and hidden files stay here."""
    with tempfile.TemporaryFile(dir=folder) as packed:  # it may be large, and a memory's file system small
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=LEVEL) as tar:
            tar.dereference = True  # a file with two names comes twice, and not as a link
            for path in sorted(folder.rglob("*")):
                inside = path.relative_to(folder)
                if path.is_file() and not path.is_symlink() and _is_wanted(inside.parts, parts):
                    with open_regular(path) as file:
                        member = tar.gettarinfo(arcname=inside.as_posix(), fileobj=file)
                        tar.addfile(_anonymous(member), file)
        packed.seek(0)
        while piece := packed.read(PIECE):
            send(piece)


class ReceivedFiles:
    """Takes `data` messages, the pieces of one tar. Its files go into `folder`, which nobody else writes to.

    `parts` are the names that may stand at its top. What is refused raises UnreadableReport: then nothing of the
    result is used.
    """

    def __init__(self, folder: Path, parts: Collection[str], title: str = "the place") -> None:
        self._folder, self._parts, self._title = folder, parts, title
        self._packed = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - until `close`
        self._size = 0

    def take(self, message: Mapping[str, Any]) -> None:
        """One message of a place."""
        with refused_with(self._title):
            try:
                piece = base64.b64decode(message["data"], validate=True)
            except (KeyError, TypeError, ValueError) as error:
                raise UnreadableReport("what comes is no piece of a file") from error
            self._size += len(piece)
            if self._size > MOST_BYTES_BACK:
                raise UnreadableReport(f"more than {MOST_BYTES_BACK >> 20} MiB come back")
            self._packed.write(piece)

    def finish(self) -> None:
        """No more comes: lay out the files."""
        if not self._size:
            return
        self._packed.seek(0)
        with refused_with(self._title):
            try:
                with tarfile.open(fileobj=self._packed, mode="r|gz") as tar:
                    self._lay_out(tar)
            except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
                raise UnreadableReport(f"it cannot be unpacked: {error}") from error

    def close(self) -> None:
        """Leave nothing open."""
        self._packed.close()

    def _lay_out(self, tar: tarfile.TarFile) -> None:
        total = 0
        for number, member in enumerate(tar):
            total += member.size
            if number >= MOST_FILES_BACK or total > MOST_BYTES_BACK:
                raise UnreadableReport(
                    f"more than {MOST_FILES_BACK} files or {MOST_BYTES_BACK >> 20} MiB come back"
                )
            parts = _read_parts(member.name)
            plain = member.isreg() and not member.issparse()
            content = tar.extractfile(member) if plain else None
            if content is None or not _is_wanted(parts, self._parts):
                raise UnreadableReport(f"{member.name!r} is no part of a result")
            path = self._folder.joinpath(*parts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:  # made anew: no link is followed
                    while piece := content.read(PIECE):
                        file.write(piece)
            except (FileExistsError, NotADirectoryError):
                raise UnreadableReport(f"{member.name} comes twice") from None


def _is_wanted(parts: Sequence[str], top: Collection[str]) -> bool:
    """Whether a file is one that a result may be made of: nothing that git, pytest or a shell reads by itself."""
    hidden = any(part.startswith(".") or part.lower() == "conftest.py" for part in parts)
    return parts[0] in top and not hidden


def _read_parts(name: str) -> list[str]:
    """The parts of a relative path that leads down only. Raises UnreadableReport for any other."""
    parts = name.split("/")
    leads_down = all(part not in (".", "..") and _PART.fullmatch(part) for part in parts)
    if not leads_down or len(parts) > DEEPEST or len(name) > LONGEST_NAME:
        raise UnreadableReport(f"a file comes back with the name {name[:LONGEST_NAME]!r}")
    return parts


@contextlib.contextmanager
def refused_with(title: str) -> Iterator[None]:
    """What is refused inside of the block is said with its place."""
    try:
        yield
    except UnreadableReport as error:
        raise UnreadableReport(f"what {title} sent back is refused: {error.message}", error.fix) from error
    except OSError as error:
        raise MachineError(
            f"what a place sent back cannot be kept: {error.strerror or error}", "df -h ."
        ) from error

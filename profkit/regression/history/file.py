"""The one file of a history: made whole or not at all, told from foreign ones, and opened as far as it may be."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote_from_bytes

from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.run_folder import hand_over
from profkit.regression.history.damage import BUSY_SECONDS, damaged, in_words
from profkit.regression.history.schema import APPLICATION, VERSION, create, version_of

VARIABLE = "PROFKIT_HISTORY"
DEFAULT = Path("reports/history.sqlite")  # beside the runs
MAGIC = b"SQLite format 3\0"
# The write-ahead log needs memory that all processes share, which these cannot give (sqlite.org/wal.html, 2.2).
_NETWORKED = (
    "nfs",
    "cifs",
    "smb",
    "afp",
    "webdav",
    "9p",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "afs",
    "glusterfs",
    "fuse.sshfs",
)


def default_path() -> Path:
    """Where the history lies where nobody says otherwise: $PROFKIT_HISTORY, else reports/history.sqlite."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def open_file(path: Path, *, write: bool, make_new: bool = True) -> tuple[sqlite3.Connection, Path | None]:
    """A connection to the history at `path`, and a folder to remove afterwards where a copy of it had to be read.

    With `write` and `make_new` a file that is not there is made. Raises UsageError (2) where there is none,
    UnreadableReport (2) for anything that is no history, MachineError (3) where the system refuses.
    """
    try:
        if not os.path.lexists(path):
            if not (write and make_new):
                raise UsageError(
                    f"there is no history at {path}",
                    "profkit history add RUN makes one; --history FILE names another",
                )
            make(path)
        _refuse_foreign(path)
    except OSError as error:
        raise MachineError(
            f"cannot read the history {path}: {error.strerror or error}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    except ValueError as error:  # a null byte in the name
        raise UsageError(f"{str(path)!r} is no file name: {error}", "--history FILE") from error
    try:
        return _connect(path, write=write)
    except sqlite3.Error as error:
        raise in_words(path, error) from error
    except UnicodeDecodeError as error:  # Python could not even tell what SQLite complained of
        raise damaged(path, "its schema cannot be read") from error


def _refuse_foreign(path: Path) -> None:
    """Raise UnreadableReport for anything but a history, told by its first hundred bytes."""
    if not path.exists():
        raise UnreadableReport(
            f"{path} is a link to nothing", f"ls -l {shlex.quote(str(path))}; --history FILE"
        )
    if not path.is_file():  # asked first: to open a pipe would wait for its writer
        kind = "a folder" if path.is_dir() else "no regular file"
        raise UnreadableReport(f"{path} is {kind}, not a history", "--history FILE")
    with path.open("rb") as file:
        head = file.read(100)
        size = file.seek(0, os.SEEK_END)
    if not head:
        raise UnreadableReport(
            f"{path} is empty, not a history", f"rm {shlex.quote(str(path))}, and it will be made anew"
        )
    if not head.startswith(MAGIC):
        was = was_history(path)
        if was:
            raise damaged(path, "its first bytes were overwritten")
        raise UnreadableReport(
            f"{path} is no history: it is not an SQLite file; it was left as it is", "--history FILE"
        )
    if len(head) < 100:
        raise damaged(path, f"it ends after {len(head)} bytes")
    if int.from_bytes(head[68:72], "big") != APPLICATION:
        if was_history(path):
            raise damaged(path, "its header was overwritten")
        raise UnreadableReport(
            f"{path} is an SQLite file of another program, not a history; it was left as it is",
            "--history FILE",
        )
    page = int.from_bytes(head[16:18], "big")
    page = 65536 if page == 1 else page
    pages = int.from_bytes(head[28:32], "big")
    if size < pages * page and not _log(path):
        raise damaged(path, f"it is cut off: {size} bytes of {pages * page}")


def was_history(path: Path) -> bool:
    """Whether a file is or was a history: by its header, or by our tables, whatever became of the header."""
    with path.open("rb") as file:
        start = file.read(1 << 20)  # the tables are made first, so they stand at the beginning
    ours = start.startswith(MAGIC) and start[68:72] == APPLICATION.to_bytes(4, "big")
    return ours or (b"CREATE TABLE point" in start and b"CREATE TABLE entry" in start)


def _log(path: Path) -> bool:
    """Whether a write-ahead log beside the file holds what is not in it yet."""
    with contextlib.suppress(OSError):
        return path.with_name(path.name + "-wal").stat().st_size > 0
    return False


# ---------------------------------------------------------------- made


def make(path: Path) -> None:
    """Make an empty history under another name and link it to its own: nobody ever sees half of one."""
    missing = [folder for folder in path.parents if not folder.exists()]
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        hand_over(*missing)
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        try:
            connection = sqlite3.connect(_uri(temporary, "mode=rwc"), uri=True, isolation_level=None)
            try:
                if not networked(path.parent):
                    connection.execute("PRAGMA journal_mode = WAL")
                create(connection)
            finally:
                connection.close()
            with contextlib.suppress(FileExistsError):  # another process was faster: then theirs it is
                _link(temporary, path)
            hand_over(path)
        finally:
            for name in (
                temporary.name,
                f"{temporary.name}-wal",
                f"{temporary.name}-shm",
                f"{temporary.name}-journal",
            ):
                with contextlib.suppress(OSError):
                    temporary.with_name(name).unlink()
    except sqlite3.Error as error:
        if "unable to open" in str(error):
            raise _cannot_make(path, "no permission") from error
        raise in_words(path, error) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"cannot make a history at {path}: {path.parent} is not a folder", "--history FILE"
        ) from error
    except OSError as error:
        raise _cannot_make(path, error.strerror or str(error)) from error


def _cannot_make(path: Path, why: str) -> MachineError:
    return MachineError(
        f"cannot make a history at {path}: {why}", "--history FILE in a folder that you may write to"
    )


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES):
            raise
        if not path.exists():  # no hard links here (FAT, some network mounts): the next best
            os.replace(temporary, path)


def networked(folder: Path) -> bool:
    """Whether `folder` lies on a file system of the network, as far as Linux and macOS tell."""
    try:
        real = os.path.realpath(folder)
        rows = [(place, kind) for place, kind in _mounts() if f"{real}/".startswith(place.rstrip("/") + "/")]
    except OSError:
        return False
    return bool(rows) and max(rows, key=lambda row: len(row[0]))[1].startswith(_NETWORKED)


def _mounts() -> list[tuple[str, str]]:
    """Every mounted file system: where, and of which kind. Raises OSError where the system does not tell."""
    if sys.platform == "darwin":
        import psutil  # here: heavy

        return [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]
    lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    return [(row[1], row[2]) for row in (line.split() for line in lines) if len(row) > 2]


# ---------------------------------------------------------------- opened


def _connect(path: Path, *, write: bool) -> tuple[sqlite3.Connection, Path | None]:
    connection = _try(path, "mode=rw", write=write)
    if connection is not None:
        _settle(connection, path)
        return connection, None
    connection = _try(path, "mode=ro", write=write)
    if connection is not None:
        return connection, None
    # A folder that cannot be written to, or a full disk, has no place for the shared index of a write-ahead log.
    if not _log(path):
        connection = _try(path, "immutable=1", write=write)
        if connection is not None:
            return connection, None
    copies = Path(tempfile.mkdtemp(prefix="profkit-history-"))
    try:
        for name in (path.name, f"{path.name}-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(path.with_name(name), copies / name)
        connection = _open(copies / path.name, "mode=rw")
        version_of(connection)
        connection.execute("PRAGMA query_only = 1")
    except BaseException:
        shutil.rmtree(copies, ignore_errors=True)
        raise
    return connection, copies


def _try(path: Path, mode: str, *, write: bool) -> sqlite3.Connection | None:
    """A connection that can read, or None where this way of opening is not allowed here."""
    connection = None
    try:
        connection = _open(path, mode)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if connection is not None:
            connection.close()
        said = str(error).lower()
        if "unable to open" in said or "readonly" in said or ("disk i/o" in said and not write):
            return None
        raise
    except sqlite3.Error:
        if connection is not None:
            connection.close()
        raise
    return connection


def _open(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path, mode), uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    connection.execute("PRAGMA synchronous = FULL")  # what was told to be stored outlives a power cut
    return connection


def _settle(connection: sqlite3.Connection, path: Path) -> None:
    """A log that came along with a file to the network is given up there, where nobody else holds it open."""
    if networked(path.parent):
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = DELETE")


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote_from_bytes(os.fsencode(os.path.abspath(path)))}?{mode}"


def check_version(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is of the present version; False where it is older. Raises where it is newer."""
    found = version_of(connection)
    if found > VERSION:
        raise UnreadableReport(
            f"the history {path} was written by a newer profkit (version {found} of its tables; this one knows"
            f" {VERSION})",
            "upgrade profkit, or use another file: --history FILE",
        )
    if found < 1:
        raise damaged(path, f"its version is {found}")
    return found == VERSION

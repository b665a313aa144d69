"""The one file of a history: created whole or not at all, recognized, opened, migrated."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import sqlite3
from pathlib import Path

from profkit.core.errors import MachineError, ProfkitError, UnreadableReport, UsageError
from profkit.core.files.regular import open_regular
from profkit.core.files.safe_folder import check_links, chown_to_sudo_user, make_parents
from profkit.core.files.sqlite import code_in, connect
from profkit.core.whole_files import replacing
from profkit.regression.history.schema import APPLICATION, VERSION, create, migrate, version_of

BUSY_SECONDS = 30.0  # how long one writer waits for the others before it gives up


def rescue_command(path: Path) -> str:
    """The line that brings over what is left."""
    name = shlex.quote(str(path))
    return f"profkit history rescue --history {name} --to {shlex.quote(f'{path}.rescued')}"


def damage_error(path: Path, what: str) -> UnreadableReport:
    """The fault of a file that was a history and is not whole."""
    return UnreadableReport(
        f"the history {path} is damaged: {what}; it was left as it is", rescue_command(path)
    )


def explain_sqlite_error(path: Path, error: sqlite3.Error) -> ProfkitError:
    """The fault behind an error of SQLite. By its text: Python 3.10 does not tell SQLite's codes."""
    message = str(error)
    where = shlex.quote(str(path.parent))
    if "locked" in message or "busy" in message:
        return MachineError(
            f"another process has been writing to the history {path} for more than {BUSY_SECONDS:.0f} s",
            "try again when it is done",
        )
    if "full" in message:
        return MachineError(
            f"cannot write to the history {path}: the disk is full; what was stored before is whole",
            f"df -h {where}",
        )
    if "readonly" in message or "read-only" in message:
        return MachineError(
            f"cannot write to the history {path}: it, or its folder, is read-only",
            "--history FILE in a folder that you may write to",
        )
    if "unable to open" in message:
        return MachineError(
            f"cannot open the history {path}: no permission, or no space for its journal", f"ls -l {where}"
        )
    if "disk i/o" in message.lower():
        return MachineError(f"cannot use the history {path}: {message}", f"df -h {where}; ls -l {where}")
    return damage_error(path, message.encode("ascii", "replace").decode())


def migrate_file(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file forward in one transaction; a copy of it as it was is written beside it first.

    Several processes may come to it at once: the lock decides, and the others find it done.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if (version := version_of(connection)) < VERSION:
            reader = connect(path, "mode=ro")  # the lock keeps writers out, not readers
            try:
                copy_whole(reader, path.with_name(f"{path.name}.v{version}"))
            finally:
                reader.close()
            migrate(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrate_in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The same history of the present version, in memory: for a file that may only be read."""
    memory = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(memory)
    connection.close()
    if version_of(memory) < VERSION:
        memory.execute("BEGIN")
        migrate(memory)
        memory.execute("COMMIT")
    memory.execute("PRAGMA query_only = 1")
    return memory


def copy_whole(connection: sqlite3.Connection, copy: Path) -> None:
    """Copy a history as it stands to `copy`: whole or not at all. Raises MachineError."""
    try:
        with replacing(copy) as temporary, contextlib.closing(sqlite3.connect(temporary)) as target:
            connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # a copy has no log beside it
    except (OSError, sqlite3.Error) as error:
        raise MachineError(
            f"cannot write {copy}, a copy from before the change: {error}", f"df -h {copy.parent}"
        ) from error
    chown_to_sudo_user(copy)


VARIABLE = "PROFKIT_HISTORY"
DEFAULT = Path("reports/history.sqlite")  # beside the runs
MAGIC = b"SQLite format 3\0"


def default_path() -> Path:
    """The file without --history: $PROFKIT_HISTORY, else reports/history.sqlite."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def open_file(path: Path, *, write: bool, make_new: bool = True) -> sqlite3.Connection:
    """A connection to the history at `path`; with `write` and `make_new` a file that is not there is made.

    Raises UsageError (2) where there is none, UnreadableReport (2) for anything that is no history, MachineError (3)
    where the system refuses.
    """
    try:
        if not os.path.lexists(path):
            if not (write and make_new):
                raise UsageError(
                    f"there is no history at {path}",
                    "profkit history add RUN makes one; --history FILE names another",
                )
            create_file(path)
        if write:  # SQLite would follow a link
            check_links(path)
        _refuse_foreign(path)
        return _connect(path)
    except OSError as error:
        raise MachineError(
            f"cannot read the history {path}: {error.strerror or error}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    except sqlite3.Error as error:
        if not isinstance(error, sqlite3.OperationalError) and (missing := _cut_off(path)):
            raise damage_error(path, missing) from error
        raise explain_sqlite_error(path, error) from error
    except UnicodeDecodeError as error:  # SQLite's own message cannot be decoded
        raise damage_error(path, "its schema cannot be read") from error
    except ValueError as error:  # a null byte in the name
        raise UsageError(f"{str(path)!r} is no file name: {error}", "--history FILE") from error


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return _open_readable(path, "mode=rw")
    except sqlite3.OperationalError as error:
        # A file with a write-ahead log, as an older profkit wrote it, in a folder that may only be read.
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        return _open_readable(path, "mode=ro&immutable=1")


def _open_readable(path: Path, mode: str) -> sqlite3.Connection:
    connection = connect(path, mode, timeout=BUSY_SECONDS)
    try:
        if (code := code_in(connection)) is not None:
            raise UnreadableReport(
                f"the history {path} holds {code}: no history has one, and it would run; it was left as it is",
                "--history FILE names another",
            )
        connection.execute("PRAGMA synchronous = FULL")  # what was stored survives a power cut
        connection.execute("BEGIN")
        connection.execute(
            "SELECT count(*) FROM sqlite_master"
        ).fetchone()  # it takes a lock: no other one writes
        if missing := _cut_off(path):
            raise damage_error(path, missing)
        connection.execute("ROLLBACK")
    except (sqlite3.Error, UnreadableReport):
        connection.close()
        raise
    return connection


def _refuse_foreign(path: Path) -> None:
    """Raise UnreadableReport for anything but a history, by its first hundred bytes."""
    if not path.exists():
        raise UnreadableReport(
            f"{path} is a link to nothing", f"ls -l {shlex.quote(str(path))}; --history FILE"
        )
    if not path.is_file():  # asked first: to open a pipe would wait for its writer
        kind = "a folder" if path.is_dir() else "no regular file"
        raise UnreadableReport(f"{path} is {kind}, not a history", "--history FILE")
    with open_regular(path) as file:
        head = file.read(100)
    if not head:
        raise UnreadableReport(
            f"{path} is empty, not a history", f"rm {shlex.quote(str(path))}, and it will be made anew"
        )
    if not head.startswith(MAGIC):
        raise UnreadableReport(
            f"{path} is no history: it is not an SQLite file; it was left as it is", "--history FILE"
        )
    if len(head) < 100:
        raise damage_error(path, f"it ends after {len(head)} bytes")
    if not is_history(path):
        raise UnreadableReport(
            f"{path} is an SQLite file of another program, not a history; it was left as it is",
            "--history FILE",
        )


def _cut_off(path: Path) -> str:
    """What is missing at the end of a file, by its header; "" where nothing is, or a log beside it may have it.

    Another process writes the header before the last page: without a lock, a file that grows looks cut off. SQLite
    itself accepts a last page that is cut off.
    """
    if path.with_name(f"{path.name}-wal").exists():
        return ""
    with open_regular(path) as file:
        head = file.read(100)
        size = file.seek(0, os.SEEK_END)
    page = int.from_bytes(head[16:18], "big")
    expected = int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)
    return f"it is cut off: {size} bytes of {expected}" if size < expected else ""


def is_history(path: Path) -> bool:
    """Whether a file is a history, whole or not, by its header."""
    with open_regular(path) as file:
        head = file.read(72)
    return head.startswith(MAGIC) and head[68:72] == APPLICATION.to_bytes(4, "big")


def create_file(path: Path) -> None:
    """Make an empty history under another name and link it to its own: no process sees half of one."""
    missing = [folder for folder in path.parents if not folder.exists()]
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        make_parents(path.parent)
        chown_to_sudo_user(*missing)
        temporary.touch(exist_ok=False)  # made anew: SQLite would follow a link
        try:
            connection = connect(temporary, "mode=rwc")
            try:
                create(connection)
            finally:
                connection.close()
            with contextlib.suppress(FileExistsError):  # another process was faster: then theirs it is
                _link(temporary, path)
            chown_to_sudo_user(path)
        finally:
            for suffix in ("", "-journal"):
                temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
    except sqlite3.Error as error:
        if "unable to open" in str(error):
            raise _creation_error(path, "no permission") from error
        raise explain_sqlite_error(path, error) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"cannot make a history at {path}: {path.parent} is not a folder", "--history FILE"
        ) from error
    except OSError as error:
        raise _creation_error(path, error.strerror or str(error)) from error


def _creation_error(path: Path, why: str) -> MachineError:
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


def leave_log_mode(connection: sqlite3.Connection) -> None:
    """Older files have a write-ahead log, which needs memory that network file systems do not share."""
    with contextlib.suppress(
        sqlite3.OperationalError
    ):  # another process has it open, or it may not be written
        connection.execute("PRAGMA journal_mode = DELETE")


def check_version(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is of the present version; False where it is older. Raises where it is newer."""
    version = version_of(connection)
    if version > VERSION:
        raise UnreadableReport(
            f"the history {path} was written by a newer profkit (version {version} of its tables; this one knows"
            f" {VERSION})",
            "upgrade profkit, or use another file: --history FILE",
        )
    if version < 1:
        raise damage_error(path, f"its version is {version}")
    return version == VERSION

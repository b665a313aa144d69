"""Work in folders where somebody else may write: recognise what profkit made, and follow no link out of it.

Under sudo, root writes a run. If its folder lies in one that another user can write to, that user can put a
link in its place at any moment. So every folder that is made for a run is remembered by its device and inode,
files are written into it through a handle, and whatever is handed over to the caller is checked first. On the
way to any folder, root follows no link of another user. Where another user could take the name of a run's
folder, the run continues on a handle of the folder (`held`), also in the tools that it starts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from profkit.core.files.regular import open_regular

_WAY = getattr(os, "O_PATH", os.O_RDONLY)  # a folder in which one may write need not be one that one may list
_FOLDER = _WAY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HANDLES = Path("/proc/self/fd")  # Linux: a path below an open folder, wherever that has been moved
_MAX_LINKS = 40  # as of Linux
_made: dict[str, tuple[int, int]] = {}  # by absolute path: device and inode
_held: dict[str, tuple[int, Path]] = {}  # by a path that `held` gave: the handle, and the folder's own path


def make_folder(path: Path, inside: tuple[str, ...] = (), mode: int = 0o777) -> None:
    """Make a folder and those named in `inside`, and remember it. Raises OSError; FileExistsError if it exists."""
    with opened(path.parent) as parent:
        (parent / path.name).mkdir(mode)
        handle = os.open(parent / path.name, _FOLDER)
    with _closing(handle):
        status = os.fstat(handle)
        if status.st_uid != os.geteuid():
            raise _replaced(path)
        for name in inside:
            os.mkdir(name, dir_fd=handle)
        _made[os.path.abspath(path)] = status.st_dev, status.st_ino


def make_parents(folder: Path) -> None:
    """Make a folder and the folders above it where they do not exist. Raises OSError."""
    try:
        os.close(_open(folder))
    except FileNotFoundError:
        if os.path.lexists(folder):  # another process was faster; of a link to nothing it is said once more
            os.close(_open(folder))
            return
        make_parents(folder.parent)
        with opened(folder.parent) as parent:
            (parent / folder.name).mkdir(exist_ok=True)


def remember(folder: Path) -> None:
    """Remember a folder that exists already, if it belongs to this user. Raises OSError."""
    with _closing(_open(folder)) as handle:
        status = os.fstat(handle)
        if not folder.is_symlink() and is_own(status.st_uid):
            _made[os.path.abspath(folder)] = status.st_dev, status.st_ino


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Yield a path that leads to a remembered folder during the block, even if something else takes its name.

    That is the folder's own path if no other user can take it. For root on Linux it is the path of an open
    handle, which every process that root starts can use. Raises OSError if another folder is in its place
    already.
    """
    if not _asks_whose_links() or not _HANDLES.is_dir():
        yield folder
        return
    with _closing(_open(folder)) as handle:
        if not _can_be_taken(handle):
            yield folder
            return
        path = Path(f"/proc/{os.getpid()}/fd/{handle}")
        _made[str(path)], _held[str(path)] = _made[os.path.abspath(folder)], (handle, folder)
        try:
            yield path
        finally:
            del _made[str(path)], _held[str(path)]


def _can_be_taken(folder: int) -> bool:
    """Return whether another user may rename an open folder, or one of the folders above it."""
    inner, status = os.dup(folder), os.fstat(folder)
    while True:
        with _closing(inner):
            inner = os.open("..", _FOLDER, dir_fd=inner)
        above = os.fstat(inner)
        if (above.st_dev, above.st_ino) == (status.st_dev, status.st_ino):  # the root of all
            os.close(inner)
            return False
        protected = above.st_mode & stat.S_ISVTX and is_own(status.st_uid)
        if not is_own(above.st_uid) or (above.st_mode & 0o022 and not protected):
            os.close(inner)
            return True
        status = above


def ensure_folder(folder: Path) -> None:
    """Make a folder again that was removed. Raises OSError if it was remembered and another one is in its place."""
    if str(folder) in _held:
        handle, own = _held[str(folder)]
        if os.fstat(handle).st_nlink == 0:
            make_parents(own.parent)
            make_folder(own, mode=0o700)
            with _closing(_open(own)) as new:
                os.dup2(new, handle, inheritable=False)
            _made[str(folder)] = _made[os.path.abspath(own)]
        return
    if str(os.path.abspath(folder)) not in _made:
        make_parents(folder)
        return
    try:
        os.close(_open(folder))
    except FileNotFoundError:
        make_parents(folder.parent)
        make_folder(folder, mode=0o700)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Path]:
    """Yield a path by which the folder is reached during the block, even if its name is taken by something else.

    Raises OSError if the folder, or the remembered folder above it, is not the one that was made; and, for root,
    if a link of another user leads to it.
    """
    with _closing(_open(folder)) as handle:
        yield _HANDLES / str(handle) if _HANDLES.is_dir() else folder


@contextlib.contextmanager
def _closing(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def _open(folder: Path) -> int:
    """Return a handle of the folder; below a remembered folder, no link is followed."""
    absolute = Path(os.path.abspath(folder))
    root = next((path for path in (absolute, *absolute.parents) if str(path) in _made), None)
    if root is None:
        return _walk(folder)
    handle = os.dup(_held[str(root)][0]) if str(root) in _held else _enter(root, root)
    status = os.fstat(handle)
    if (status.st_dev, status.st_ino) != _made[str(root)]:
        os.close(handle)
        raise _replaced(root)
    for name in absolute.relative_to(root).parts:
        with _closing(handle):
            inner = _enter(name, root / name, handle)
        handle = inner
    return handle


def _enter(name: str | Path, path: Path, folder: int | None = None) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _replaced(path) from error
        raise


def _walk(folder: Path) -> int:
    """Return a handle of a folder that is not remembered.

    Root follows each link on the way only if it is its own.
    """
    # An open folder's path is no link to a name
    if not _asks_whose_links() or str(folder).startswith("/proc/"):
        return os.open(folder, _WAY | os.O_DIRECTORY | os.O_CLOEXEC)
    left, links = [*reversed(folder.parts)], 0
    handle = os.open(".", _FOLDER)
    try:
        while left:
            name = left.pop()
            inner = os.open(name, _WAY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            status = os.fstat(inner)
            if stat.S_ISLNK(status.st_mode):
                target = Path(os.readlink("", dir_fd=inner))
                os.close(inner)
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
                if not is_own(status.st_uid):
                    raise foreign_link(folder, name)
                left += reversed(target.parts)
                continue
            os.close(handle)
            handle = inner
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_links(path: Path) -> None:
    """Raise OSError if root would follow a link of another user: for files that another library opens by name."""
    with opened(path.parent):
        if _asks_whose_links() and path.is_symlink() and not is_own(path.lstat().st_uid):
            raise foreign_link(path, path.name)


def _asks_whose_links() -> bool:
    return hasattr(os, "O_PATH") and os.geteuid() == 0


def is_own(user: int) -> bool:
    """Return whether to trust what `user` made: it is this process's user, or the one who called sudo."""
    caller = caller_of_sudo()
    return user in (os.geteuid(), *(caller[:1] if caller is not None else ()))


def foreign_link(path: Path, name: str) -> OSError:
    """Build the error that says why root does not follow a link."""
    return OSError(errno.EACCES, f"{name} is a link of another user, and root follows none", str(path))


def _replaced(path: Path) -> OSError:
    reason = "another folder or a link has taken its place, so nothing is written into it"
    return OSError(errno.ESTALE, reason, str(path))


def is_shared(folder: Path) -> bool:
    """Return whether root would write to a folder in which another user may put links.

    The caller of sudo does not count as another user.
    """
    if os.geteuid() != 0:
        return False
    status = folder.stat()
    return not is_own(status.st_uid) or bool(status.st_mode & 0o022)


def copy_into(file: Path, target: Path) -> None:
    """Copy a file to `target`, in place of whatever has that name; a link there is replaced and not followed."""
    with open_regular(file) as source, replacing(target) as temporary, temporary.open("xb") as copy:
        shutil.copyfileobj(source, copy)
        if (owner := caller_of_sudo()) is not None:
            os.fchown(copy.fileno(), *owner)


@contextlib.contextmanager
def arriving(beside: Path) -> Iterator[Path]:
    """Yield a new folder inside `beside` for files that arrive, by a path of its handle.

    Remove it after the block. Nobody else can write into it, and swapping its name for a link changes nothing
    that is reached by the path.
    """
    made = [path for path in (beside, *beside.parents) if not os.path.lexists(path)]
    make_parents(beside)
    chown_to_sudo_user(*made)
    with opened(beside) as parent:
        made_here = parent / f".arriving-{secrets.token_hex(8)}"
        made_here.mkdir(0o700)
        handle = os.open(made_here, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with _closing(handle):
            if os.fstat(handle).st_uid != os.geteuid():
                raise _replaced(made_here)
            inside = _HANDLES / str(handle) if _HANDLES.is_dir() else made_here
            try:
                yield inside
            finally:
                for path in list(inside.iterdir()):
                    remove(path)
                with contextlib.suppress(OSError):  # what took its name is not ours
                    made_here.rmdir()


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there; no link is followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def replace_into(source: Path, target: Path) -> None:
    """Move a file or folder within a disk over one that may exist, and hand it over to the caller of sudo.

    It is handed over before the move, while nobody else can reach it: afterwards the name may be another file's.
    """
    chown_to_sudo_user(source)
    with opened(target.parent) as folder:
        goal = folder / target.name
        if goal.is_dir() or source.is_dir():
            remove(goal)
        os.replace(source, goal)


def bring(source: Path, target: Path) -> None:
    """Move a file or folder within a disk to `target`. Raises FileExistsError if something is there."""
    with opened(target.parent) as folder:
        goal = folder / target.name
        if os.path.lexists(goal):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        try:
            os.link(source, goal, follow_symlinks=False)  # never replaces what came there meanwhile
        except FileExistsError:
            raise
        except OSError:
            # A folder, which replaces none that holds anything, and no link; a file system without links
            source.rename(goal)


# ---------------------------------------------------------------- hand over


def caller_of_sudo() -> tuple[int, int] | None:
    """Return the user and group ids of the caller of sudo, with group -1 for "unchanged"; None without sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isascii() and user.isdecimal()):
        return None
    if not 0 < int(user) < 1 << 32:
        return None
    has_group = group.isascii() and group.isdecimal() and int(group) < 1 << 32
    return int(user), int(group) if has_group else -1


def chown_to_sudo_user(*paths: Path) -> None:
    """Give files, and folders with all that is in them, to the caller of sudo; do nothing without sudo.

    Only what belongs to root and has a single name, since another name may be somebody else's. No link is
    followed, and nothing is handed over by its name, which may belong to another file by now.
    """
    if (owner := caller_of_sudo()) is None:
        return
    for path in paths:
        parent, name = (path, ".") if str(path) in _held else (path.parent, path.name or ".")
        with contextlib.suppress(OSError), _closing(_open(parent)) as folder:
            _hand_over(name, folder, owner, path)


def _hand_over(name: str, folder: int, owner: tuple[int, int], path: Path | None = None) -> None:
    handle = os.open(name, _FILE, dir_fd=folder)  # a link, a socket: OSError, and it stays root's
    with _closing(handle):
        status = os.fstat(handle)
        remembered = _made.get(os.path.abspath(path)) if path is not None else None
        if status.st_uid != 0 or (remembered is not None and remembered != (status.st_dev, status.st_ino)):
            return
        if stat.S_ISDIR(status.st_mode):
            for entry in os.listdir(handle):
                with contextlib.suppress(OSError):
                    _hand_over(entry, handle, owner)
            os.fchown(handle, *owner)  # at last: from now on its owner can change what is in it
        elif stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            os.fchown(handle, *owner)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file that replaces `path` at the end of the block, whole or not at all.

    If the block raises, also by Ctrl-C, the former file stays and the temporary one is removed.
    """
    with opened(path.parent) as folder:
        temporary = folder / f".{path.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        try:
            yield temporary
            os.replace(temporary, folder / path.name)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def user_cache(name: str) -> Path | None:
    """Return `$XDG_CACHE_HOME/profkit/NAME`, or the same below `~/.cache`, whether it exists or not.

    None without a home.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # by its specification a path that is not absolute counts as not set
        return Path(base, "profkit", name)
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "profkit" / name
    return None


def write_whole(path: Path, pieces: Iterable[str], *, sync: bool = False, private: bool = False) -> None:
    """Write a text file whole or not at all; readers see the former file until the new one is complete.

    `sync`: it reaches the disk before it replaces the former one; `private`: only its owner may read it. Raises
    OSError, and whatever `pieces` raises.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device, which would be replaced
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    # `x`: made anew, so that no link that somebody put there is followed
    with (
        replacing(path) as target,
        open(
            target, "x", encoding="utf-8", errors="replace", opener=_open_private if private else None
        ) as file,
    ):
        file.writelines(pieces)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


_TRIES, _PAUSE = 50, 0.1  # seconds: a tool that was ended on a busy machine may write for some of them


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder as tempfile's, with `purpose` in its name. What cannot be removed in the end stays."""

    def __init__(self, purpose: str = "") -> None:
        super().__init__(prefix=f"profkit-{purpose}-", ignore_cleanup_errors=True)

    def cleanup(self) -> None:
        """Remove the folder, retrying for up to five seconds: a process that was just ended may still write into it.

        Raises KeyboardInterrupt after the removal if Ctrl-C arrives meanwhile.
        """
        try:
            self._remove()
        except KeyboardInterrupt:
            self._remove()
            raise

    def _remove(self) -> None:
        super().cleanup()
        for _ in range(_TRIES):
            if not os.path.lexists(self.name):
                return
            time.sleep(_PAUSE)
            super().cleanup()

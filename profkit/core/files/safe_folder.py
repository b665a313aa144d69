"""Folders in a place where somebody else may write: what was made is known again, and no link is followed out of it.

Under sudo a run is written by root. Where its folder lies in one that another user can write, that user can put a link
in its place at any moment. So every folder that is made for a run is remembered by its device and inode, what is
written into it goes through a handle of it, and what is handed over to the caller is looked at before. On the way to
any folder root follows no link of another user. Where another user can take the name of a run's folder, the run goes
on by a handle of it (`held`), also in the tools that it starts.
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
_MOST_LINKS = 40  # as of Linux
_made: dict[str, tuple[int, int]] = {}  # by absolute path: device and inode
_held: dict[str, tuple[int, Path]] = {}  # by a path that `held` gave: the handle, and the folder's own path


def make_folder(path: Path, inside: tuple[str, ...] = (), mode: int = 0o777) -> None:
    """Make the folder and those `inside` of it, and remember it. Raises OSError: FileExistsError where it is there."""
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
    """Make the folder, and those that it is in, where they are not there. Raises OSError."""
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
    """Know a folder again that is there already, where it is one's own. Raises OSError."""
    with _closing(_open(folder)) as handle:
        status = os.fstat(handle)
        if not folder.is_symlink() and is_own(status.st_uid):
            _made[os.path.abspath(folder)] = status.st_dev, status.st_ino


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Path]:
    """A path that leads to a remembered folder during the block, whatever takes its name.

    That is its own, where no other user can take that. For root on Linux it is that of an open handle elsewhere, which
    every process that root starts can use. Raises OSError where another folder is in its place already.
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
    """Whether another user may rename an open folder, or one that it is in."""
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
    """Make a folder again that was removed. Raises OSError where it was remembered and another is in its place."""
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
    """A path by which the folder is reached for the time of the block, whatever takes its name meanwhile.

    Raises OSError where it, or the remembered folder that it is in, is not the one that was made, and for root where a
    link of another user leads to it.
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
    """A handle of the folder; below a remembered one no link is followed."""
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
    """A handle of a folder that is not remembered. Root follows the links on the way one by one, if it may."""
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
                if links > _MOST_LINKS:
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
    """Before another library opens it by its name: raise OSError where root would follow a link of another user."""
    with opened(path.parent):
        if _asks_whose_links() and path.is_symlink() and not is_own(path.lstat().st_uid):
            raise foreign_link(path, path.name)


def _asks_whose_links() -> bool:
    return hasattr(os, "O_PATH") and os.geteuid() == 0


def is_own(user: int) -> bool:
    """Whether what this user made may be trusted: the user is this process's, or root works for it under sudo."""
    caller = caller_of_sudo()
    return user in (os.geteuid(), *(caller[:1] if caller is not None else ()))


def foreign_link(path: Path, name: str) -> OSError:
    """Why root does not go there."""
    return OSError(errno.EACCES, f"{name} is a link of another user, and root follows none", str(path))


def _replaced(path: Path) -> OSError:
    reason = "another folder or a link has taken its place, so nothing is written into it"
    return OSError(errno.ESTALE, reason, str(path))


def is_shared(folder: Path) -> bool:
    """Whether root would write where another one than it, or than the caller of sudo, may put links."""
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
    """A folder in `beside` for what arrives, by a path of its handle; gone afterwards, however the block ends.

    Nobody else can write in it, and whoever swaps its name for a link changes nothing that is reached by the path.
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
    """Move a file or a folder of the same disk to where there may be one, and hand it over to the caller of sudo.

    It is handed over before, while nobody else can reach it: what has the name afterwards may be another's.
    """
    chown_to_sudo_user(source)
    with opened(target.parent) as folder:
        goal = folder / target.name
        if goal.is_dir() or source.is_dir():
            remove(goal)
        os.replace(source, goal)


def bring(source: Path, target: Path) -> None:
    """Move a file or a folder of the same disk to `target`. FileExistsError where something is there."""
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
    """The user and group (-1: as it is) that root works for under sudo; None without sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isascii() and user.isdecimal()):
        return None
    if not 0 < int(user) < 1 << 32:
        return None
    known = group.isascii() and group.isdecimal() and int(group) < 1 << 32
    return int(user), int(group) if known else -1


def chown_to_sudo_user(*paths: Path) -> None:
    """Under sudo, what was made for the caller is the caller's: files, and folders with all that is in them.

    Only what is root's, and has one name: another one may be somebody else's. No link is followed, and nothing is
    handed over by its name, which may be another file's by now.
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
        known = _made.get(os.path.abspath(path)) if path is not None else None
        if status.st_uid != 0 or (known is not None and known != (status.st_dev, status.st_ino)):
            return
        if stat.S_ISDIR(status.st_mode):
            for each in os.listdir(handle):
                with contextlib.suppress(OSError):
                    _hand_over(each, handle, owner)
            os.fchown(handle, *owner)  # at last: from now on its owner can change what is in it
        elif stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            os.fchown(handle, *owner)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The name of a temporary file that takes the place of `path` at the end of the block: whole or not at all.

    Where the block raises, a Ctrl-C too, the former file stays and the temporary one is removed.
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
    """`$XDG_CACHE_HOME/profkit/NAME`, or that of `~/.cache`, there or not. None where there is no home."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # by its specification a path that is not absolute counts as not set
        return Path(base, "profkit", name)
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "profkit" / name
    return None


def write_whole(path: Path, pieces: Iterable[str], *, sync: bool = False, private: bool = False) -> None:
    """Write the text; a former file stays as it was where anything fails, and so it does for whoever reads meanwhile.

    `sync`: on the disk before it takes the former one's place; `private`: only its owner may read it. Raises OSError,
    and what `pieces` raise.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device, which would be replaced
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
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
    """As tempfile's: `with` gives its name, of which `purpose` is a part. What cannot be removed in the end stays."""

    def __init__(self, purpose: str = "") -> None:
        super().__init__(prefix=f"profkit-{purpose}-", ignore_cleanup_errors=True)

    def cleanup(self) -> None:
        """Remove it. Again for up to five seconds where something is left: a process that was ended may still write.

        Raises KeyboardInterrupt, where Ctrl-C comes meanwhile, after it is removed.
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

"""What runs at a place before profkit is there: it keeps files by their SHA-256, asks for those it lacks, and starts.

Its text is sent and executed by whatever Python 3.10 or newer was found there, so it imports the standard library only.
Requests and answers are JSON, an object a line. The store, `~/.cache/profkit/elsewhere` or what `PROFKIT_CACHE` names:

    blobs/ab/cdef...    contents, by their SHA-256
    trees/ID.json       which files make up a tree; its ID is the SHA-256 of that
    trees/ID/           the tree on disk: profkit and its libraries, which nobody changes
    runs/NAME-1/        the folder of one run: `work` with the workload's files, `out` for results; emptied afterwards
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
import zlib
from pathlib import Path
from typing import IO, Any

STORE_LIMIT = 4 << 30  # bytes of blobs that are kept
FRESH_SECONDS = 86400.0  # a blob of the last day may be needed by a run that begins just now
LIBRARIES = ("psutil", "yaml", "capstone", "numpy")


class Boot:
    """One session of this side, until `start` hands over to profkit."""

    def __init__(self, nonce: str) -> None:
        self.requests: IO[bytes] = sys.stdin.buffer
        self.answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # prints of others
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.nonce = nonce
        self.store = Path()
        self.trees: dict[str, list[list[Any]]] = {}
        self.received = 0

    def serve(self) -> None:
        """Answer until stdin ends, or until profkit takes over."""
        try:
            self.store = open_store()
            self.send({"event": "hello", "nonce": self.nonce, **describe_python(), "store": str(self.store)})
            for line in self.requests:
                request = json.loads(line)
                getattr(self, "ask_" + request["ask"])(request)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = "has no space left" if full else f"cannot be used: {error.strerror or error}"
            where = error.filename if isinstance(error.filename, str) else str(self.store)
            look = f"df -h {self.store}" if full else f"ls -ld {self.store}"
            self.give_up(3, f"{where} {what}", f"{look}   (there; PROFKIT_CACHE names another folder)")
        except Exception as error:
            self.give_up(70, f"{type(error).__name__}: {error}"[:2000], None)

    def give_up(self, code: int, message: str, fix: str | None) -> None:
        """Tell why, and hear the other side out: one that still writes would only see that nobody reads."""
        self.send({"event": "fault", "exit": code, "message": message, "fix": fix})
        while self.requests.read(1 << 16):
            pass

    def send(self, answer: dict[str, Any]) -> None:
        """One line to the other side."""
        self.answers.write(json.dumps(answer).encode() + b"\n")
        self.answers.flush()

    def ask_trees(self, request: dict[str, Any]) -> None:
        """Which of these trees are not known here."""
        unknown = []
        for tree in request["trees"]:
            try:
                self.trees[tree] = json.loads((self.store / "trees" / f"{tree}.json").read_bytes())
            except (OSError, ValueError):
                unknown.append(tree)
        self.send({"event": "unknown", "trees": unknown})

    def ask_tree(self, request: dict[str, Any]) -> None:
        """The files of a tree: path, SHA-256, size, and what it is (f: file, x: program, l: link)."""
        text = json.dumps(request["files"]).encode()
        self.trees[request["id"]] = request["files"]
        write_whole(self.store / "trees" / f"{request['id']}.json", text)

    def ask_blobs(self, request: dict[str, Any]) -> None:
        """Which contents of all these trees are not here."""
        del request
        wanted = {file[1]: file[2] for files in self.trees.values() for file in files}
        missing = [sha for sha, size in wanted.items() if not self.has_blob(sha, size)]
        self.send({"event": "missing", "blobs": missing})

    def ask_blob(self, request: dict[str, Any]) -> None:
        """A piece of a content; with the last one it is checked, and kept."""
        path = self.blob(request["sha"])
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("ab") as file:
                file.write(zlib.decompress(base64.b64decode(request["data"])))
            if request["last"]:
                if file_hash(part) != request["sha"]:
                    raise ValueError("a file arrived with another checksum than it was sent with")
                self.received += part.stat().st_size
                os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise

    def ask_start(self, request: dict[str, Any]) -> None:
        """Make the run's folder, and let profkit take over; it does not come back."""
        code = self.tree_on_disk(request["code"])
        libraries = self.tree_on_disk(request["libraries"]) if request["libraries"] else None
        if self.received:
            remove_old_blobs(self.store / "blobs")
        run, lock = claim_run(self.store / "runs", request["name"])
        if request["work"]:
            self.lay_out(request["work"], run / "work")
        os.environ.update(request["env"])
        if request["python"]:  # `python` is the one that was named
            here = os.path.dirname(os.path.abspath(request["python"]))
            os.environ["PATH"] = here + os.pathsep + os.environ.get("PATH", os.defpath)
        present = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = f"{code}{os.pathsep}{present}" if present else str(code)
        sys.path[:] = [
            str(code),
            *(path for path in sys.path if path),
            *([str(libraries)] if libraries else []),
        ]
        folder = run / "work" / request["folder"]
        folder.mkdir(parents=True, exist_ok=True)  # nothing that was sent may lie in it
        os.chdir(folder)
        module, _, name = request["function"].partition(":")
        getattr(importlib.import_module(module), name)(self.requests, self.answers, run, request["data"])
        empty(run)
        os.close(lock)
        self.answers.flush()
        os._exit(0)  # a reader waits for stdin

    def blob(self, sha: str) -> Path:
        """Where a content is kept."""
        if len(sha) != 64 or not sha.isalnum():
            raise ValueError(f"{sha!r} is no checksum")
        return self.store / "blobs" / sha[:2] / sha[2:]

    def has_blob(self, sha: str, size: int) -> bool:
        """Whether a content is here; then it was used today."""
        try:
            path = self.blob(sha)
            if path.stat().st_size != size:
                return False
            os.utime(path)
        except OSError:
            return False
        return True

    def tree_on_disk(self, tree: str) -> Path:
        """A tree that nobody changes, laid out once."""
        folder = self.store / "trees" / tree
        if not folder.is_dir():
            part = folder.with_name(f"{tree}.{os.getpid()}.part")
            try:
                self.lay_out(tree, part)
                with contextlib.suppress(OSError):  # another run was faster
                    os.rename(part, folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        return folder

    def lay_out(self, tree: str, folder: Path) -> None:
        """A copy of a tree; each content is checked on the way."""
        for name, sha, _, kind in self.trees[tree]:
            path, content = folder / name, self.blob(sha)
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "l":
                os.symlink(content.read_text(encoding="utf-8"), path)
                continue
            shutil.copyfile(content, path)
            if file_hash(path) != sha:
                content.unlink()
                raise ValueError(f"{content} was damaged, and is removed: try again")
            path.chmod(0o755 if kind == "x" else 0o644)


def open_store() -> Path:
    """The first folder that can be written, of one's own alone. Raises OSError."""
    home, cache = os.path.expanduser("~"), os.environ.get("XDG_CACHE_HOME", "")
    choices = [os.environ.get("PROFKIT_CACHE", "")]
    choices += [os.path.join(cache, "profkit", "elsewhere")] if os.path.isabs(cache) else []
    choices += [os.path.join(home, ".cache", "profkit", "elsewhere")] if os.path.isabs(home) else []
    choices += [os.path.join(tempfile.gettempdir(), f"profkit-{os.getuid()}")]
    for choice in filter(None, choices):
        try:
            os.makedirs(choice, 0o700, exist_ok=True)
            for folder in ("blobs", "trees", "runs"):
                os.makedirs(os.path.join(choice, folder), exist_ok=True)
            if os.access(choice, os.W_OK) and os.stat(choice).st_uid == os.getuid():
                return Path(choice).resolve()
        except OSError as error:
            last = error
    raise last


def describe_python() -> dict[str, Any]:
    """What decides which libraries can be sent here."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found[name] = False
    return {
        "python": sys.executable,
        "version": list(sys.version_info[:3]),
        "platform": sysconfig.get_platform(),
        "abi": sysconfig.get_config_var("SOABI"),
        "libraries": found,
        "host": describe_host(),
    }


def describe_host() -> str:
    """The same in all containers of one machine, and for all names that it has: of the kernel, where that says so."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return os.uname().nodename


def claim_run(runs: Path, name: str) -> tuple[Path, int]:
    """An empty folder that no other run uses, by a name that is mostly the same: paths stand in reports."""
    import fcntl

    for number in range(1, 10_000):
        folder = runs / f"{name}-{number}"
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        empty(folder)
        for part in ("work", "out"):
            (folder / part).mkdir()
        return folder, lock
    raise ValueError("ten thousand runs are under way here")


def empty(folder: Path) -> None:
    """Remove what a run left; not its lock."""
    for part in ("work", "out"):
        shutil.rmtree(folder / part, ignore_errors=True)


def remove_old_blobs(blobs: Path) -> None:
    """Keep the store below its limit: what was not used for longest goes first."""
    with contextlib.suppress(OSError):
        stats = [(path, path.stat()) for path in blobs.glob("*/*")]
        total = sum(stat.st_size for _, stat in stats)
        for path, stat in sorted(stats, key=lambda pair: pair[1].st_mtime):
            if total <= STORE_LIMIT or time.time() - stat.st_mtime < FRESH_SECONDS:
                break
            path.unlink()
            total -= stat.st_size


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()

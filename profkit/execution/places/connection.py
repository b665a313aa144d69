"""This side of a place: start what is there, send what it lacks, ask it for one piece of work, read what it says."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shlex
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from profkit.core.codec import from_plain_data
from profkit.core.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    UnreadableReport,
    UsageError,
    WorkloadError,
)
from profkit.core.files.regular import read_bounded_text
from profkit.core.progress import Progress, Silent
from profkit.core.signals import defer_interrupts
from profkit.core.types import Json
from profkit.execution.child import ChildProcess, WorkerEnded
from profkit.execution.job import JobStatus
from profkit.execution.places.files import (
    NEEDED,
    Hello,
    Tree,
    library_tree,
    missing_library_fix,
    profkit_tree,
)
from profkit.execution.places.place import ExecutionPlace, words_of
from profkit.runtime.passes.secrets import is_secret_variable

STAGE_SECONDS = 600.0  # a slow disk there lays out thousands of files
SILENCE_SECONDS = 60.0  # it says every second that it lives
LOOK_SECONDS = 10.0  # little is printed on this side; a thousand connections that look each second are work
TIDY_SECONDS = 10.0  # for what is removed there at the end
PATIENCE_SECONDS = 60.0  # after a Ctrl-C, for what was finished to come back
BURST_SECONDS = 1.0  # two Ctrl-C within a second count as one
PIECE = 1 << 20  # bytes of a file in one message
NOISE_LIMIT = 1 << 16  # bytes that a login shell may print before it begins
PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(14, 9, -1)), "python")
BOOT = Path(__file__).with_name("boot.py")
FAULT = (
    "PROFKIT_CLIENT_FAULT"  # the file into which a client of ours writes why it has no shell: reason and fix
)
_FAULTS: dict[int, type[ProfkitError]] = {
    fault.exit_code: fault for fault in (UsageError, MachineError, WorkloadError, Interrupted)
}


class PlaceUnreachable(MachineError):
    """Nothing ran there: it cannot be reached, or has no Python for profkit (exit 3)."""


class PlaceLost(MachineError):
    """The connection ended while work went on there: what became of it is not known (exit 3)."""


class Connection:
    """One shell at a place, and the Python in it. `log` takes what it prints for people.

    Call `open`, `stage` and `start` in this order, then take `events` to the end; `close` at any time. `python` is the
    interpreter there, or the first that is new enough.
    """

    def __init__(self, place: ExecutionPlace, log: Path, python: str | None = None) -> None:
        self.place = place
        self.hello = Hello()
        self.sent = 0  # bytes that went through the pipe
        self.ended = False  # the connection, and not by this side
        self._python, self._told = python, False
        hidden = [
            name for name, value in os.environ.items() if place.inherits and is_secret_variable(name, value)
        ]
        self._look: Callable[[], None] = _nothing
        self._fault_file = log.with_name(f"{log.name}.fault")
        self._child = ChildProcess(
            place.start,
            {FAULT: str(self._fault_file)} if place.has_own_client else {},
            log,
            without=hidden,
            look_seconds=LOOK_SECONDS,
            look=lambda: self._look(),
            asks=place.queues,
            reason_mark=place.reason_mark,
        )
        self._libraries: Tree | None = None
        self._code = profkit_tree()

    def open(self, progress: Progress | None = None) -> None:
        """Start it, and find a Python there. Raises PlaceUnreachable, after which nothing of it runs."""
        self._child.look_seconds = 1.0
        if progress is not None:
            self._look = _show_wait(progress, self._child)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        finally:
            self._look, self._child.look_seconds = _nothing, LOOK_SECONDS

    def _open(self) -> None:
        nonce = secrets.token_hex(8)
        try:
            self._child.start()
            self._send_bytes(_search_script(nonce, [self._python] if self._python else PYTHONS))
            words = self._find_marker(nonce)
            if words[:1] != ["ready"]:
                raise self._no_python(" ".join(words[1:]))
            source = BOOT.read_bytes() + f"\nBoot({nonce!r}).serve()\n".encode()
            self._send_bytes(b"%d\n" % len(source) + source)
            hello = self._read(SILENCE_SECONDS)
        except WorkerEnded as ended:
            raise self._unreachable(ended) from ended
        except PlaceLost as lost:
            raise PlaceUnreachable(lost.message, lost.fix) from lost
        if hello["event"] != "hello" or hello.get("nonce") != nonce:
            raise PlaceUnreachable(f"{self.place.title} does not answer as profkit does")
        try:
            self.hello = from_plain_data(Hello, hello)
        except UnreadableReport as error:
            raise PlaceUnreachable(
                f"{self.place.title} does not answer as profkit does: {error.message}"
            ) from error

    def stage(self, work: Tree | None, progress: Progress | None = None) -> None:
        """Bring what is not there yet. Raises PlaceLost, and MachineError where it cannot be kept there."""
        report = progress or Silent()
        self._libraries, unfit = library_tree(self.hello)
        if needed := [name for name in unfit if name in NEEDED]:
            fix = missing_library_fix(needed, self.hello.python)
            raise PlaceUnreachable(f"{self.place.title} has no {' and no '.join(needed)}", f"{fix}   (there)")
        trees = {tree.id: tree for tree in (self._code, self._libraries, work) if tree is not None}
        with self._as_lost():
            self._send({"ask": "trees", "trees": list(trees)})
            for name in self._expect("unknown", "trees", trees):
                self._send({"ask": "tree", "id": name, "files": trees[name].table()})
            self._send({"ask": "blobs"})
            files = {file.sha: file for tree in trees.values() for file in tree.files}
            files = {sha: files[sha] for sha in dict.fromkeys(self._expect("missing", "blobs", files))}
            if files:
                size = sum(file.size for file in files.values())
                report.begin("send", f"{len(files)} files, {size / 1e6:.1f} MB to {self.place.title}")
                begun = time.monotonic()
                for file in files.values():
                    self._send_file(file.sha, file.content)
                    if self._child.has_unread:  # nothing is to be said meanwhile but a fault
                        self._read(STAGE_SECONDS)
                    report.tick(time.monotonic() - begun)
                report.end(f"{time.monotonic() - begun:.1f} s, {self.sent / 1e6:.1f} MB through the pipe")

    def start(
        self, function: str, data: Json, *, work: Tree | None, name: str, env: Mapping[str, str] | None = None
    ) -> None:
        """Let `function` (`package.module:name`) do the work that `data` says, in the work tree's folder."""
        with self._as_lost():
            self._send(
                {
                    "ask": "start",
                    "code": self._code.id,
                    "libraries": self._libraries.id if self._libraries is not None else None,
                    "work": work.id if work is not None else None,
                    "folder": work.folder if work is not None else ".",
                    "name": name,
                    "env": dict(env or {}),
                    "python": self.hello.python if self._python else None,
                    "function": function,
                    "data": data,
                }
            )

    def events(self) -> Iterator[dict[str, Any]]:
        """What it says, until the result or a fault, which is raised.

        A Ctrl-C is handed on, so that what was finished comes back; a second one is raised here. Raises PlaceLost.
        """
        deadline, asked = float("inf"), float("-inf")
        with self._as_lost(), defer_interrupts() as hurry:
            patience = STAGE_SECONDS
            while True:
                event = self._read(patience)
                patience = SILENCE_SECONDS
                now = time.monotonic()
                if hurry.is_set():
                    hurry.clear()
                    if asked == float("-inf"):
                        self._send({"ask": "cancel"})
                        asked, deadline = now, now + PATIENCE_SECONDS
                    elif now - asked > BURST_SECONDS:
                        raise KeyboardInterrupt
                if now > deadline:
                    raise KeyboardInterrupt
                if event["event"] == "beat":
                    self._child.cut_log()
                    continue
                yield event
                if event["event"] == "result":
                    return

    @property
    def ended_because(self) -> str:
        """Why the place ends the work: a queue asks for that at a time limit, and what was finished comes back."""
        words, reason_mark = self._child.last_words(), self.place.reason_mark
        return f"{self.place.title} printed {words!r}" if reason_mark and reason_mark in words else ""

    def ask(self, request: Mapping[str, Any]) -> None:
        """Ask what was started. Raises PlaceLost."""
        with self._as_lost():
            self._send(request)

    def answer(self) -> dict[str, Any]:
        """The next thing it says, beside that it lives. Raises PlaceLost, and the fault that it tells of."""
        with self._as_lost():
            while (event := self._read(SILENCE_SECONDS))["event"] == "beat":
                self._child.cut_log()
            return event

    def finish(self) -> None:
        """No more is asked: it gets a moment to remove what the work left there."""
        self._child.finish(TIDY_SECONDS)

    def close(self) -> None:
        """End it, and with it what runs there; what has told its result or its fault gets the same moment.

        So does the client of a place that costs money: it ends that place.
        """
        if self._told or self.place.rent is not None:
            self.finish()
        self._child.close()
        self._fault_file.unlink(missing_ok=True)

    def _send(self, request: Mapping[str, Any]) -> None:
        self._send_bytes(json.dumps(request).encode() + b"\n")

    def _send_bytes(self, data: bytes) -> None:
        self._child.send(data)
        self.sent += len(data)

    def _send_file(self, sha: str, content: Path | bytes) -> None:
        data = content if isinstance(content, bytes) else content.read_bytes()
        for at in range(0, max(1, len(data)), PIECE):
            piece = base64.b64encode(zlib.compress(data[at : at + PIECE], 6)).decode()
            self._send({"ask": "blob", "sha": sha, "data": piece, "last": at + PIECE >= len(data)})

    def _read(self, timeout: float) -> dict[str, Any]:
        """The next message. Raises PlaceLost for what is none, and the fault that it tells of."""
        line = self._child.read_line(timeout)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("event"), str):
            shown = line[:200].decode("utf-8", "replace")
            raise PlaceLost(f"{self.place.title} wrote what is no answer: {shown!r}", self.place.try_it)
        self._told = message["event"] in ("result", "fault")
        if message["event"] == "fault":
            raise _fault_of(message, self.place)
        return message

    def _expect(self, event: str, field: str, known: Collection[str]) -> list[str]:
        """What it lacks, of what it was told of."""
        message = self._read(STAGE_SECONDS)
        if message["event"] != event:
            raise PlaceLost(f"{self.place.title} answered {message['event'][:40]!r}, and not {event!r}")
        names = message.get(field)
        if not isinstance(names, list) or not all(isinstance(name, str) and name in known for name in names):
            raise PlaceLost(f"{self.place.title} asks for what it was not told of")
        return names

    def _find_marker(self, nonce: str) -> list[str]:
        """What stands behind the nonce, past all that a login shell prints."""
        deadline, noise = time.monotonic() + self.place.patience, 0
        while noise < NOISE_LIMIT:
            line = self._child.read_line(max(0.1, deadline - time.monotonic()))
            if line.startswith(nonce.encode()):
                return line.decode("utf-8", "replace").split()[1:]
            noise += len(line) + 1
        raise PlaceUnreachable(
            f"{self.place.title} prints without an end before it starts a shell", self.place.try_it
        )

    def _unreachable(self, ended: WorkerEnded) -> PlaceUnreachable:
        if ended.status is JobStatus.timeout:
            return PlaceUnreachable(f"{self.place.title} did not answer: {ended}", self.place.try_it)
        reason, fix = self.reason_of(ended)
        return PlaceUnreachable(f"{self.place.title} cannot be reached: {reason}", fix)

    def reason_of(self, ended: WorkerEnded) -> tuple[str, str | None]:
        """Why it ended, and a line that may show more. What was printed is quoted: it is not ours.

        Only a client of ours tells a fix, by a file that no place can reach.
        """
        try:
            reason, fix = json.loads(read_bounded_text(self._fault_file, 1 << 16))
            return str(reason), str(fix) if fix else self.place.try_it
        except (OSError, ValueError, TypeError):
            printed = f", and printed {ended.last_line!r}" if ended.last_line else ""
            return ended.reason + printed, self.place.try_it

    def _no_python(self, versions: str) -> PlaceUnreachable:
        name = self._python or "python3"
        there = f"{name} there is {versions}" if versions.startswith("Python") else f"there is no {name}"
        return PlaceUnreachable(
            f"{self.place.title} has no Python 3.10 or newer ({there})",
            "install one there, or name it: --on-python /path/to/python3",
        )

    def _as_lost(self) -> _AsLost:
        return _AsLost(self)


class _AsLost:
    """Inside the block a process that ends is a connection that was lost."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._place = connection, connection.place

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WorkerEnded):
            self._connection.ended = error.status is not JobStatus.cancelled
            reason, fix = self._connection.reason_of(error)
            raise PlaceLost(f"{self._place.title} was lost: {reason}", fix) from error


def _nothing() -> None: ...


def _show_wait(progress: Progress, child: ChildProcess) -> Callable[[], None]:
    """Says what a place prints until it answers: the first words on a line of their own, others on one that moves."""
    begun, before = time.monotonic(), ""

    def tell() -> None:
        nonlocal before
        if (words := child.last_words()) and words != before:
            (progress.move if before else progress.note)(words)
            before = words
        progress.tick(time.monotonic() - begun)

    return tell


def _search_script(nonce: str, pythons: tuple[str, ...] | list[str]) -> bytes:
    """One command of the shell: the first Python that is new enough takes its place, and reads on from its input."""
    boot = (
        "import os, sys; sys.path.sort(key=lambda folder: folder != os.path.dirname(os.__file__)); "
        f'sys.stdout.write("\\n{nonce} ready\\n"); sys.stdout.flush(); source = sys.stdin.buffer; '
        'exec(compile(source.read(int(source.readline())), "profkit", "exec"), {"__name__": "profkit_boot"})'
    )
    new_enough = "import sys; sys.exit(sys.version_info < (3, 10))"
    choices = [
        f'"$HOME"/{shlex.quote(name[2:])}' if name.startswith("~/") else shlex.quote(name) for name in pythons
    ]
    return (
        f"{{ for p in {' '.join(choices)}; do "
        f'if "$p" -c {shlex.quote(new_enough)} </dev/null >/dev/null 2>&1; '
        f'then exec "$p" -u -c {shlex.quote(boot)}; fi; done; '
        f'printf "\\n%s none %s\\n" {nonce} "$({choices[0]} -V 2>&1)"; exit 78; }}\n'
    ).encode()


def _fault_of(message: Mapping[str, Any], place: ExecutionPlace) -> ProfkitError:
    """The fault that a place tells of, by its exit code, in its own words: they may hold what a workload printed."""
    code = message.get("exit")
    kind = _FAULTS.get(code, MachineError) if isinstance(code, int) else MachineError
    return kind(*words_of(place.title, message.get("message"), message.get("fix")))

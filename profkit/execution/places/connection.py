"""The calling side of a place: start what is there, send what it lacks, request one piece of work.

`PlaceWorker` is this side of a slot: a worker of a pool whose process runs there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from profkit.core.codec import from_plain_data
from profkit.core.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    Progress,
    Silent,
    UnreadableReport,
    UsageError,
    WorkloadError,
)
from profkit.core.signals import defer_interrupts
from profkit.core.types import Json
from profkit.execution.child import ChildProcess, JobStatus, WorkerEnded
from profkit.execution.places.files import Tree, profkit_tree
from profkit.execution.places.kinds import ExecutionPlace, quote_lines, words_of
from profkit.runtime.passes.secrets import is_secret_variable

STAGE_SECONDS = 600.0  # a slow disk there lays out thousands of files
SILENCE_SECONDS = 60.0  # it says every second that it lives
TIDY_SECONDS = 10.0  # for what is removed there at the end
PIECE = 1 << 20  # bytes
NOISE_LIMIT = 1 << 16  # bytes that a login shell may print before it begins
PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(14, 9, -1)), "python")
BOOT = Path(__file__).with_name("boot.py")
DISTRIBUTIONS = {"psutil": "psutil", "yaml": "PyYAML"}  # by module: what `boot.py` asks for
LONGEST_NOTE = 500  # characters
_FAULTS: dict[int, type[ProfkitError]] = {
    fault.exit_code: fault for fault in (UsageError, MachineError, WorkloadError, Interrupted)
}


class PlaceUnreachable(MachineError):
    """Nothing ran there: the place cannot be reached, or has no Python for profkit (exit 3)."""


class PlaceLost(MachineError):
    """The connection ended while work went on there: its result is not known (exit 3)."""


@dataclass(frozen=True)
class Hello:
    """What the Python at a place reports about itself. `code`: the id of every profkit that is there."""

    event: Literal["hello"] = "hello"
    python: str = ""
    version: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


class Connection:
    """One shell at a place, and the Python in it. `log` takes what it prints for people.

    Call `open` and `start` in this order, then read `events` to the end; `close` at any time. `python` is the
    interpreter there, or by default the first that is new enough.
    """

    def __init__(self, place: ExecutionPlace, log: Path, python: str | None = None) -> None:
        self.place = place
        self.hello = Hello()
        self._python, self._answered = python, False
        self.cancelled = False  # by a Ctrl-C here
        hidden = [
            name for name, value in os.environ.items() if place.inherits and is_secret_variable(name, value)
        ]
        self._child = ChildProcess(
            place.start,
            {},
            log,
            without=hidden,
            asks=place.queues,
            reason_mark=place.reason_mark,
        )

    def open(self, progress: Progress | None = None) -> None:
        """Start the shell and find a Python there. Raises PlaceUnreachable, after which nothing of it runs."""
        if progress is not None:
            self._child.look = _show_wait(progress, self._child)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        finally:
            self._child.look = bool

    def _open(self) -> None:
        nonce = secrets.token_hex(8)
        try:
            self._child.start()
            self._child.send(_search_script(nonce, [self._python] if self._python else PYTHONS))
            words = self._find_marker(nonce)
            if words[:1] != ["ready"]:
                name, printed = self._python or "python3", " ".join(words[1:])
                raise PlaceUnreachable(
                    f"{self.place.title} has no Python 3.10 or newer ({name} says {printed[:200]!r})",
                    "install one there, or name it: --on-python /path/to/python3",
                )
            source = BOOT.read_bytes() + b"\nserve()\n"
            self._child.send(b"%d\n" % len(source) + source)
            hello = self._read(SILENCE_SECONDS)
        except WorkerEnded as ended:
            what = "did not answer" if ended.status is JobStatus.timeout else "cannot be reached"
            raise PlaceUnreachable(
                f"{self.place.title} {what}: {self._reason_of(ended)}", self.place.try_it
            ) from ended
        except PlaceLost as lost:
            raise PlaceUnreachable(lost.message, lost.fix) from lost
        try:
            self.hello = from_plain_data(Hello, hello)
        except UnreadableReport as error:
            raise PlaceUnreachable(
                f"{self.place.title} does not answer as profkit does: {error.message}"
            ) from error
        if unknown := [name for name in self.hello.missing if name not in DISTRIBUTIONS]:
            raise PlaceUnreachable(
                f"{self.place.title} does not answer as profkit does: it lacks {unknown[0][:40]!r}, which nobody needs"
            )
        if missing := self.hello.missing:
            packages = " ".join(DISTRIBUTIONS[name] for name in missing)
            fix = f"{shlex.quote(self.hello.python)} -m pip install {packages}   (there)"
            raise PlaceUnreachable(f"{self.place.title} has no {' and no '.join(missing)}", fix)

    def start(
        self,
        function: str,
        data: Json,
        *,
        work: Tree | None,
        name: str,
        env: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Send what is not there yet, and let `function` (`package.module:name`) do the work that `data` holds.

        It is called in the work tree's folder. Raises PlaceLost, and MachineError if nothing can be stored there.
        """
        code, code_id = profkit_tree()
        with self._as_lost(), tempfile.TemporaryFile() as file:
            request = {
                "code": code_id,
                "code_bytes": 0 if code_id in self.hello.code else code.pack(file),
                "work_bytes": work.pack(file) if work is not None else 0,
                "folder": work.folder if work is not None else ".",
                "name": name,
                "env": dict(env or {}),
                "python": self.hello.python if self._python else None,
                "function": function,
                "data": data,
            }
            self._child.send_message(request)
            self._send_file(file, progress or Silent())

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events until the result; raise a fault that the place reports.

        A Ctrl-C is passed on, so that what was finished comes back; a second one is raised here. Raises PlaceLost.
        """
        with self._as_lost(), defer_interrupts() as hurry:
            patience = STAGE_SECONDS
            while True:
                try:
                    event = self._read(patience)
                except Interrupted as fault:
                    if not (self.cancelled or hurry.is_set()):
                        raise MachineError(f"{fault.message} (somebody ended it there, not here)") from fault
                    raise
                patience = SILENCE_SECONDS
                if hurry.is_set():
                    hurry.clear()
                    if self.cancelled:
                        raise KeyboardInterrupt
                    self._child.send_message({"ask": "cancel"})
                    self.cancelled = True
                if event["event"] != "beat":
                    yield event
                if event["event"] == "result":
                    return

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send a request to what was started. Raises PlaceLost."""
        with self._as_lost():
            self._child.send_message(request)

    def answer(self) -> dict[str, Any]:
        """Return the next message other than heartbeats. Raises PlaceLost, and the fault that it reports."""
        with self._as_lost():
            try:
                while (event := self._read(SILENCE_SECONDS))["event"] == "beat":
                    pass
            except Interrupted as fault:  # a Ctrl-C here is none of its answers
                raise MachineError(f"{fault.message} (somebody ended it there, not here)") from fault
            return event

    def close(self) -> None:
        """End the connection, and with it what runs there.

        After a result or a fault, the place gets a moment to remove what the work left there; and so does the client
        of a place that costs money, which has to end that place.
        """
        if self._answered or self.place.is_rented:
            self._child.finish(TIDY_SECONDS)
        self._child.close()

    def _send_file(self, file: IO[bytes], progress: Progress) -> None:
        size, begun = file.tell(), time.monotonic()
        if size > PIECE:
            progress.begin("send", f"{size / 1e6:.1f} MB to {self.place.title}")
        file.seek(0)
        while piece := file.read(PIECE):
            self._child.send(piece)
            progress.tick(time.monotonic() - begun)
        if size > PIECE:
            progress.end(f"{time.monotonic() - begun:.1f} s")

    def _read(self, timeout: float) -> dict[str, Any]:
        """Read the next message. Raises PlaceLost for anything else, and the fault that it reports."""
        message = self._child.read_message(timeout)
        if isinstance(message, bytes) or not isinstance(message.get("event"), str):
            raise PlaceLost(
                f"{self.place.title} wrote what is not an answer: {message!r:.200}", self.place.try_it
            )
        self._child.cut_log()
        if message["event"] != "beat":
            self._answered = message["event"] in ("result", "fault")
        if message["event"] == "fault":  # in its own words: they may hold what a workload printed
            code = message.get("exit")
            kind = _FAULTS.get(code, MachineError) if isinstance(code, int) else MachineError
            raise kind(*words_of(self.place.title, message.get("message"), message.get("fix")))
        return message

    def _find_marker(self, nonce: str) -> list[str]:
        """Return the words after the nonce, skipping all that a login shell prints before it."""
        deadline, noise = time.monotonic() + self.place.patience, 0
        while noise < NOISE_LIMIT:
            line = self._child.read_line(max(0.1, deadline - time.monotonic()))
            if line.startswith(nonce.encode()):
                return line.decode("utf-8", "replace").split()[1:]
            noise += len(line) + 1
        raise PlaceUnreachable(
            f"{self.place.title} prints without an end before it starts a shell", self.place.try_it
        )

    def _reason_of(self, ended: WorkerEnded) -> str:
        """Say why it ended, quoting what it printed, which is not profkit's own text."""
        return ended.reason + (f", and printed {ended.last_line!r}" if ended.last_line else "")

    @contextlib.contextmanager
    def _as_lost(self) -> Iterator[None]:
        """Turn the end of the process inside the block into a PlaceLost."""
        try:
            yield
        except WorkerEnded as ended:
            message = f"{self.place.title} was lost: {self._reason_of(ended)}"
            raise PlaceLost(message, self.place.try_it) from ended


def _show_wait(progress: Progress, child: ChildProcess) -> Callable[[], None]:
    """Return a function that shows what a place prints until it answers.

    Its first words get a line of their own, later ones the line that moves.
    """
    begun, before = time.monotonic(), ""

    def tell() -> None:
        nonlocal before
        if (words := child.last_words()) and words != before:
            (progress.move if before else progress.note)(words)
            before = words
        progress.tick(time.monotonic() - begun)

    return tell


def _search_script(nonce: str, pythons: tuple[str, ...] | list[str]) -> bytes:
    """Build the shell command that replaces itself by the first Python that is new enough.

    That Python reads on from the shell's input.
    """
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


# ---------------------------------------------------------------- slots


class PlaceWorker:
    """A worker behind a connection that was started with `relay`. Its exceptions tell what is gone.

    WorkerEnded: its process there; the slot continues. PlaceLost: the connection; the slot is gone. `note` gets
    its messages meanwhile. `check` gets what the worker says about itself and its title, and returns what to
    believe of it; it raises UnreadableReport for what no worker of profkit would say.
    """

    def __init__(
        self,
        connection: Connection,
        note: Callable[[str], None] = lambda _: None,
        check: Callable[[Json, str], Json] = lambda about, _: about,
    ) -> None:
        self._connection, self._note, self._check = connection, note, check
        self.title = connection.place.title
        self.running = False

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """Open the worker as WorkerClient does. Raises also PlaceLost."""
        self._connection.ask({"ask": "open", "settings": dict(settings), "timeout": timeout})
        try:
            about = self._check(self._answer("opened").get("about"), self.title)
        except WorkerEnded as ended:
            raise WorkerEnded(ended.status, f"{self.title}: {ended.reason}") from ended
        except UnreadableReport as error:
            raise PlaceLost(
                f"{self.title} does not answer as a worker of profkit does: {error.message}"
            ) from error
        self.running = True
        return about

    def run(self, data: Json, timeout: float) -> dict[str, Any]:
        """Run a job as WorkerClient does. Raises also PlaceLost."""
        self._connection.ask({"ask": "run", "data": data, "timeout": timeout})
        message = self._answer("result", "error")
        if not isinstance(message.get("reason", ""), str):
            raise PlaceLost(f"{self.title} said what is not an answer of a job")
        return message

    def kill(self) -> None:
        """Do nothing: its process has ended already."""

    def close(self) -> None:
        """End the worker and its connection, and start none again."""
        self.running = False
        self._connection.close()

    def _answer(self, *expected: str) -> dict[str, Any]:
        while (answer := self._connection.answer())["event"] == "progress":
            words = answer.get("words")
            if isinstance(words, list) and answer.get("call") in ("begin", "end", "note"):
                self._note(f"{self.title}: {': '.join(map(str, words))[:LONGEST_NOTE]}")
        if answer["event"] == "ended":
            self.running = False
            status = next(
                (known for known in JobStatus if known.value == answer.get("status")), JobStatus.crash
            )
            raise WorkerEnded(status, quote_lines(str(answer.get("reason"))[:2000]))
        if answer["event"] not in expected:
            raise PlaceLost(f"{self.title} said {answer['event'][:40]!r}, which was not asked")
        return answer

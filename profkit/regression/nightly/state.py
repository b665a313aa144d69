"""How far a night is, in its folder: written after every step, so that one that died repeats nothing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from profkit.core.codec import build, plain
from profkit.core.errors import MachineError, UnreadableReport
from profkit.core.types import Calibration, Json
from profkit.regression.nightly.one_run import Ending

SCHEMA = "profkit.night-state/1"
FILE = "state.json"
LOCK = ".lock"


@dataclass(frozen=True)
class Done:
    """What became of one workload's profile; `entry` is its id in the history, paths are relative to the night."""

    ending: Ending
    reason: str = ""
    fix: str | None = None
    entry: str | None = None
    run: str | None = None
    log: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class State:
    """Everything that a night did so far. `rerun`: why a workload could not be confirmed, "" where it was tried."""

    id: str
    started: str
    commit: str | None = None
    seconds: float = 0.0  # of the sittings before this one
    done: Mapping[str, Done] = field(default_factory=dict)
    rerun: Mapping[str, str] = field(default_factory=dict)
    calibrated: Mapping[str, str] = field(default_factory=dict)
    calibration: Calibration | None = None

    def with_done(self, name: str, done: Done) -> State:
        """The state after a workload's profile."""
        return replace(self, done={**self.done, name: done})

    def with_rerun(self, name: str, why: str) -> State:
        """The state after a workload's re-run, or after it could not be had."""
        return replace(self, rerun={**self.rerun, name: why})

    def with_calibrated(self, name: str, why: str) -> State:
        """The state after a workload was run against itself."""
        return replace(self, calibrated={**self.calibrated, name: why})


def read_state(folder: Path) -> State | None:
    """The state of the night in `folder`; None where none was begun. Raises UnreadableReport for a broken file."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableReport(f"cannot read {path}: {error}", "another --night ID") from error
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise UnreadableReport(f"it is not a {SCHEMA}")
        return build(State, data)
    except (ValueError, RecursionError, UnreadableReport) as error:
        told = error.message if isinstance(error, UnreadableReport) else str(error)
        raise UnreadableReport(f"cannot read {path}: {told}", "another --night ID") from error


def write_state(folder: Path, state: State) -> None:
    """Write it whole or not at all. Raises MachineError where the system refuses."""
    body = {"schema": SCHEMA, **cast("dict[str, Json]", plain(state))}
    write_text(folder / FILE, json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all. Raises MachineError where the system refuses."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", errors="replace")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        fix = f"df -h {path.parent}; ls -ld {path.parent}"
        raise MachineError(f"cannot write {path}: {error.strerror or error}", fix) from error


@contextlib.contextmanager
def alone(output: Path) -> Iterator[None]:
    """Hold the machine's nightly lock in `output`: two nights at once would measure each other.

    Raises MachineError where another one holds it. It goes with the process, however that ends.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        handle = os.open(output / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise MachineError(f"cannot write to {output}: {error.strerror}", "output: FOLDER") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError(
                f"another nightly is running with {output}: two at once would measure each other",
                "wait for it, or use another output:",
            ) from None
        except OSError:  # a file system without locks: then nobody can be told
            pass
        yield
    finally:
        os.close(handle)

"""A copy of the shell fronts in a folder of its own, with a stub for profkit, and what the stub was told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Answers `-c` (is profkit there?) and, for `-m profkit VERB ...`, notes its arguments, leaves the report and
# ends as told: STUB_CODE_record=4 is the exit code of that verb, STUB_WAIT=1 waits for a signal and notes it.
STUB = """#!/bin/bash
if [ "$1" = -c ]; then exit ${STUB_LACKS_PROFKIT:-0}; fi
verb=$3
{ printf '%s\\0' "$0" "$@"; printf '\\1'; } >>"$STUB_NOTES"
report=
for word in "$@"; do [ "$before" = --report ] && report=$word; before=$word; [ "$word" = -- ] && break; done
for word in "$@"; do [ "$before" = --output ] && mkdir -p "$word/run"; before=$word; done
if [ "$verb" = record ]; then
    [ -e "$report" ] && exit 2
    mkdir -p "$(dirname "$report")" && echo samples >"$report"
fi
if [ -n "${STUB_WAIT:-}" ] && [ "$verb" = record ]; then
    trap 'kill $!; echo INT >"$STUB_NOTES.signal"; exit 130' INT
    trap 'kill $!; echo TERM >"$STUB_NOTES.signal"; exit 130' TERM
    touch "$STUB_NOTES.waits"
    sleep 20 & wait
fi
name=STUB_CODE_$verb
exit "${!name:-0}"
"""


@dataclass
class Project:
    """A project folder with the real shell fronts and a stub in the place of Python."""

    folder: Path
    notes: Path
    environment: dict[str, str] = field(default_factory=dict)

    def stub(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STUB)
        path.chmod(0o755)
        return path

    def call(
        self, front: str | Path, *arguments: str, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / front), *arguments],
            cwd=cwd or self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def told(self) -> list[list[str]]:
        """The calls of the stub: its own path and its arguments."""
        if not self.notes.exists():
            return []
        calls = self.notes.read_text().split("\1")[:-1]
        return [call.split("\0")[:-1] for call in calls]


def make_project(folder: Path) -> Project:
    shutil.copytree(ROOT / "wrappers", folder / "pro fkit" / "wrappers")
    for front in ("analyze_multibackend.sh", "analyze.sh"):
        shutil.copy(ROOT / front, folder / "pro fkit")
    project = Project(folder / "pro fkit", folder / "notes")
    project.environment = {"PATH": os.environ["PATH"], "STUB_NOTES": str(project.notes)}
    return project


def send(process: subprocess.Popen[str], number: signal.Signals, *, group: bool) -> None:
    """Ctrl-C reaches the whole group of the terminal, `kill` only the one process."""
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)

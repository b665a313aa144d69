"""A program that uses profkit, in a process of its own: by hand, or under a directive; and what it recorded."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from profkit.core.types import Timing
from profkit.runtime.passes.read import region_timings
from profkit.runtime.region.record import RegionRecord, RegionTimes, decode_record
from tests.conftest import ROOT
from tests.spoken import spoken_lines


class Done:
    """A workload that has ended, and its records, by process."""

    def __init__(self, process: subprocess.CompletedProcess[str], folder: Path) -> None:
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.records = [
            decode_record(json.loads(path.read_text())) for path in sorted(folder.glob("r.*.json"))
        ]

    @property
    def record(self) -> RegionRecord:
        assert len(self.records) == 1, self.err
        return self.records[0]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for record in self.records for note in spoken_lines(record.notes))

    @property
    def timings(self) -> tuple[Timing, ...]:
        return region_timings(self.records)

    def region(self, name: str) -> RegionTimes:
        return next(region for region in self.record.regions if region.name == name)


def run_workload(
    folder: Path,
    code: str,
    directive: Mapping[str, object] | None = None,
    *,
    host: Sequence[str] = (),
    path: str | Path = "",
    **env: str,
) -> Done:
    """Run the text; `host` are words before its file, and `path` is on the module path beside profkit."""
    program = folder / "work.py"
    program.write_text(textwrap.dedent(code))
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), str(path))))}
    full.pop("PROFKIT_DIRECTIVE", None)
    if directive:
        full["PROFKIT_DIRECTIVE"] = json.dumps({"record": str(folder / "r"), **directive})
    argv = [sys.executable, *host, str(program)]
    done = subprocess.run(argv, capture_output=True, text=True, env={**full, **env}, timeout=120)
    return Done(done, folder)


def is_alive(pid: int) -> bool:
    """Whether it runs; what has ended and was not waited for does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def assert_gone(*pids: int) -> None:
    """None of them runs, within some seconds: a kill takes effect when a process is next given time."""
    deadline = time.monotonic() + 20
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, pids))

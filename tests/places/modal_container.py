"""A container of a stand-in for Modal: its own command and what is started in it run here, for real.

A folder says how it goes wrong and what it calls its GPU, and takes notes: `asked`, `pids`, `beats`, `ended`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import psutil


class Container:
    """It lives until its own command ends, its time is over, it is told to end, or `die` lies in the folder."""

    def __init__(self, folder: Path, command: list[str], asked: dict[str, Any]) -> None:
        self.folder, self.code, self._limit = folder, None, time.monotonic() + asked["timeout"]
        (folder / "asked").write_text(json.dumps({**asked, "command": command}))
        if (folder / "silence").exists():  # seconds; a minute is long for a test
            command = [word.replace("-t 60", f"-t {(folder / 'silence').read_text()}") for word in command]
        self._own = self._start(command)
        self._started = [self._own]
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def exec(self, words: list[str]) -> subprocess.Popen[bytes]:
        """Start something in it."""
        if words[0] == "nvidia-smi":
            words = ["echo", (self.folder / "device").read_text()]
        child = self._start(words)
        self._started.append(child)
        (self.folder / "pids").write_text(" ".join(str(process.pid) for process in self._started))
        return child

    def beat(self) -> None:
        """A line for its own command."""
        with contextlib.suppress(OSError), (self.folder / "beats").open("a") as beats:
            beats.write(".")
            self._own.stdin.write(b"\n")  # type: ignore[union-attr]
            self._own.stdin.flush()  # type: ignore[union-attr]

    def end(self, code: int) -> None:
        """Nothing that was started in it goes on."""
        with self._lock:
            if self.code is not None:
                return
            for child in self._started:
                with contextlib.suppress(psutil.Error):
                    for process in psutil.Process(child.pid).children(recursive=True):
                        process.kill()
                with contextlib.suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            (self.folder / "ended").write_text(str(code))
            self.code = code

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        environ = json.loads(
            (self.folder / "environ").read_text()
        )  # what the image sets, and nothing of who calls
        return subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, start_new_session=True
        )

    def _watch(self) -> None:
        while self.code is None:
            if (self.folder / "die").exists():
                self.end(137)
            elif time.monotonic() > self._limit:
                self.end(124)
            elif self._own.poll() is not None:
                self.end(self._own.returncode)
            time.sleep(0.02)

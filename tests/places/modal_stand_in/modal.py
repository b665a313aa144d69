"""What profkit uses of the package `modal`; what is started in a container of it runs here, for real.

The folder FAKE_MODAL says how it goes wrong, and takes notes: `asked`, `pids`, `beats`, `ended`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

FOLDER = Path(os.environ["FAKE_MODAL"])


class exception:  # noqa: N801 - a module there
    """Its faults."""

    AuthError = type("AuthError", (Exception,), {})
    ResourceExhaustedError = type("ResourceExhaustedError", (Exception,), {})


class Image:
    """Takes every step."""

    def __init__(self, *steps: str) -> None:
        self.steps = steps

    @staticmethod
    def from_registry(name: str, add_python: str | None = None) -> Image:
        return Image(name, str(add_python))

    def entrypoint(self, words: list[str]) -> Image:
        return Image(*self.steps, *words)

    def apt_install(self, *names: str) -> Image:
        return Image(*self.steps, *names)

    pip_install = apt_install

    def env(self, variables: dict[str, str]) -> Image:
        return Image(*self.steps, *variables)


class App:
    """It can be entered by who has a token."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self) -> App:
        return self

    def __enter__(self) -> App:
        if not os.environ.get("MODAL_TOKEN_ID"):
            raise exception.AuthError("Token missing")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        (FOLDER / "left").touch()
        return kind is KeyboardInterrupt  # so does the real one


class _Stdin:
    def __init__(self, pipe: Any) -> None:
        self._pipe, self._eof = pipe, False

    def write(self, data: bytes) -> None:
        self._pipe.write(data)

    def write_eof(self) -> None:
        self._eof = True

    def drain(self) -> None:
        self._pipe.close() if self._eof else self._pipe.flush()


class _Output:
    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def __iter__(self) -> Iterator[bytes]:
        while piece := os.read(self._pipe.fileno(), 1 << 16):
            yield piece


class _Process:
    def __init__(self, child: Any) -> None:
        self.stdin = _Stdin(child.stdin)
        self.stdout, self.stderr = _Output(child.stdout), _Output(child.stderr)
        self.wait = child.wait


class _Beats(_Stdin):
    def write(self, data: bytes) -> None:
        (FOLDER / "beats").write_text("heard")
        super().write(data)


class Sandbox:
    """A container: it lives until its own command ends, it is told to end, or `die` lies in the folder."""

    def __init__(self, command: list[str]) -> None:
        self._code: int | None = None
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self.stdin = _Beats(self._start(command).stdin)
        threading.Thread(target=self._watch, daemon=True).start()

    @staticmethod
    def create(*command: str, app: App, image: Image, **asked: Any) -> Sandbox:
        if (FOLDER / "full").exists():
            raise exception.ResourceExhaustedError("Insufficient capacity to create sandbox.")
        (FOLDER / "asked").write_text(json.dumps({**asked, "image": image.steps, "command": command}))
        silence = FOLDER / "silence"  # seconds; a minute is long for a test
        seconds = silence.read_text() if silence.exists() else "60"
        return Sandbox([word.replace("-t 60", f"-t {seconds}") for word in command])

    def exec(self, *words: str, text: bool = True) -> _Process:
        del text
        process = _Process(self._start(words))
        (FOLDER / "pids").write_text(" ".join(str(each.pid) for each in self._started))
        return process

    def terminate(self) -> None:
        self._end(137)

    def _start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        # what the image sets, and nothing of who calls
        env = json.loads((FOLDER / "environ").read_text())
        child = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True)
        self._started.append(child)
        return child

    def _end(self, code: int) -> None:
        """Nothing that was started in it goes on."""
        with self._lock:
            if self._code is not None:
                return
            for child in self._started:
                with contextlib.suppress(psutil.Error):
                    for process in psutil.Process(child.pid).children(recursive=True):
                        process.kill()
                with contextlib.suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            (FOLDER / "ended").write_text(str(code))
            self._code = code

    def _watch(self) -> None:
        while self._code is None:
            own = self._started[0].poll()
            if own is not None or (FOLDER / "die").exists():
                self._end(137 if own is None else own)
            time.sleep(0.02)

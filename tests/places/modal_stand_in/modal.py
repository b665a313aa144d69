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
from collections.abc import Iterator
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


class _Beats:
    def __init__(self, container: Any) -> None:
        self.drain = container.beat

    def write(self, data: bytes) -> None:
        assert data == b"\n"


class Sandbox:
    """A container."""

    def __init__(self, container: Any) -> None:
        self._container, self.stdin = container, _Beats(container)

    @staticmethod
    def create(*command: str, app: App, image: Image, **asked: Any) -> Sandbox:
        if (FOLDER / "full").exists():
            raise exception.ResourceExhaustedError("Insufficient capacity to create sandbox.")
        return Sandbox(Container(FOLDER, list(command), {**asked, "image": image.steps}))

    def exec(self, *words: str, text: bool = True) -> _Process:
        return _Process(self._container.exec(list(words)))

    def terminate(self) -> None:
        self._container.end(137)


class Container:
    """It lives until its own command ends, it is told to end, or `die` lies in the folder."""

    def __init__(self, folder: Path, command: list[str], asked: dict[str, Any]) -> None:
        self.folder, self.code = folder, None
        (folder / "asked").write_text(json.dumps({**asked, "command": command}))
        if (folder / "silence").exists():  # seconds; a minute is long for a test
            command = [word.replace("-t 60", f"-t {(folder / 'silence').read_text()}") for word in command]
        self._own = self._start(command)
        self._started = [self._own]
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def exec(self, words: list[str]) -> subprocess.Popen[bytes]:
        """Start something in it."""
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
        # what the image sets, and nothing of who calls
        environ = json.loads((self.folder / "environ").read_text())
        return subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, start_new_session=True
        )

    def _watch(self) -> None:
        while self.code is None:
            if (self.folder / "die").exists():
                self.end(137)
            elif self._own.poll() is not None:
                self.end(self._own.returncode)
            time.sleep(0.02)

"""What profkit uses of the package `modal`, with containers of this machine. The folder FAKE_MODAL says the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modal_container import Container  # type: ignore[import-not-found]

FOLDER = Path(os.environ["FAKE_MODAL"])


class exception:  # noqa: N801 - a module there
    """Its faults."""

    AuthError = type("AuthError", (Exception,), {})
    ResourceExhaustedError = type("ResourceExhaustedError", (Exception,), {})
    VersionError = type("VersionError", (Exception,), {})
    ConnectionError = type("ConnectionError", (Exception,), {})


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

    def read(self) -> str:
        return str(self._pipe.read().decode())

    def __iter__(self) -> Iterator[bytes]:
        while piece := os.read(self._pipe.fileno(), 1 << 16):
            yield piece


class _Process:
    def __init__(self, child: Any) -> None:
        self.stdin, self.stdout, self.stderr = (
            _Stdin(child.stdin),
            _Output(child.stdout),
            _Output(child.stderr),
        )
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
        while (FOLDER / "hang").exists():
            time.sleep(0.05)
        if (FOLDER / "full").exists():
            raise exception.ResourceExhaustedError("Insufficient capacity to create sandbox.")
        return Sandbox(Container(FOLDER, list(command), {**asked, "image": image.steps}))

    def exec(self, *words: str, text: bool = True) -> _Process:
        return _Process(self._container.exec(list(words)))

    def poll(self) -> int | None:
        time.sleep(0.1)  # it takes a moment to be known
        return self._container.code  # type: ignore[no-any-return]

    def terminate(self) -> None:
        self._container.end(137)

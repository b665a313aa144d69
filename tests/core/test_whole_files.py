"""Files are written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.whole_files import write_whole


def test_a_file_takes_the_place_of_the_former_one(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("former")
    write_whole(path, ("one ", "two \udc80"))
    assert path.read_text() == "one two ?"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_what_fails_leaves_the_former_file_and_no_litter(tmp_path: Path, stop: type[BaseException]) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise stop

    path = tmp_path / "out.txt"
    path.write_text("former")
    with pytest.raises(stop):
        write_whole(path, pieces())
    assert path.read_text() == "former"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, ("through",))
    reader.join(10)
    assert received == ["through"]
    assert pipe.is_fifo()

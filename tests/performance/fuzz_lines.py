"""Lines of the readers that N made-up inputs reach, guided by what they reach and not.

`python tests/performance/fuzz_lines.py [--inputs N] [--target NAME]` needs atheris. Each of the two gets the same
number of inputs, not the same time; the seeds themselves count for both.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.fuzz import guided

guided.watch_readers()
with contextlib.redirect_stderr(io.StringIO()):
    from tests.fuzz import watch
    from tests.fuzz.targets import SHOW, TARGETS, Target


class Lines:
    """The lines of the readers that ran; a function whose lines are all known is not followed any more."""

    def __init__(self) -> None:
        self._left: dict[CodeType, set[int] | None] = {}
        self.seen: set[tuple[str, int]] = set()
        self._not_readers = tuple(f"{guided.PACKAGE / name}{os.sep}" for name in guided.NOT_READERS)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        """What `sys.settrace` calls for each function."""
        code = frame.f_code
        if code not in self._left:
            name = code.co_filename
            is_reader = name.startswith(f"{guided.PACKAGE}{os.sep}") and not name.startswith(
                self._not_readers
            )
            self._left[code] = {line for *_, line in code.co_lines() if line} if is_reader else None
        return self._line if self._left[code] else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        left = self._left[frame.f_code]
        if event == "line" and left is not None:
            left.discard(frame.f_lineno)
            self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


class Counted(watch.Trial):
    """A trial that writes down how many lines were reached when it ends."""

    def __init__(self, target: Target, folder: Path, most: int, lines: Lines) -> None:
        super().__init__(target, folder, folder / "report", time.monotonic() + 3600, most)
        self.lines = lines

    def say(self) -> None:
        """Called at the end too, where atheris ends the process."""
        (self.folder / "lines").write_text(str(len(self.lines.seen)))


def lines_of(target: Target, most: int, seed: int, is_guided: bool) -> tuple[int, int]:
    """How many lines the seeds reach, and the inputs with them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pool").mkdir()
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            lines = Lines()
            sys.settrace(lines)
            for data in target.seeds():
                for depth in range(SHOW + 1):
                    with contextlib.suppress(Exception):
                        target.try_input(data, folder, depth)
            (folder / "begin").write_text(str(len(lines.seen)))
            trial = Counted(target, folder, most, lines)
            if is_guided:
                guided.try_inputs(trial, seed, folder / "pool")
            else:
                watch.try_inputs(trial, seed)
            trial.say()
            os._exit(0)
        os.waitpid(child, 0)
        return int((folder / "begin").read_text()), int((folder / "lines").read_text())


def main() -> None:
    """Print one line per target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=5000)
    parser.add_argument("--seed", type=int, action="append", help="may be repeated (default: 1)")
    parser.add_argument("--target", action="append", choices=TARGETS)
    options = parser.parse_args()
    print(f"{options.inputs} inputs; lines by the seeds, then more by changed ones: not guided, guided")
    sums = [0, 0]
    for name in options.target or TARGETS:
        for seed in options.seed or (1,):
            begin, unguided = lines_of(TARGETS[name], options.inputs, seed, False)
            _, with_atheris = lines_of(TARGETS[name], options.inputs, seed, True)
            sums = [sums[0] + unguided - begin, sums[1] + with_atheris - begin]
            print(f"{name:15} {begin:6} {unguided - begin:+6} {with_atheris - begin:+6}", flush=True)
    print(f"{'all':15} {'':6} {sums[0]:+6} {sums[1]:+6}")


if __name__ == "__main__":
    main()

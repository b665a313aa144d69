"""The process that measures: asked by lines on stdin, answering by lines on what was its standard output.

It lives through wrong results and refusals; what kills it (a segmentation fault, a device that answers no more) costs
the case that was running, and the sweep starts another one. Answers go to a copy of the first standard output: what a
user's code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from profkit.core import codec
from profkit.core.types import GridPoint
from profkit.kernels.sweep import leash
from profkit.kernels.sweep.files import own_modules_last, run_file

BROKEN = 17  # exit code: the device answers no more


def start(arguments: list[str]) -> None:
    """Be a worker until stdin ends. `arguments`: the sweep's process, the device, then files of users."""
    be_a_child(int(arguments[0]))
    sys.exit(with_answers(lambda answers: _serve(arguments[1], arguments[2:], answers)))


def be_a_child(parent: int) -> None:
    """What every process of a sweep does first."""
    leash.end_with(parent)
    leash.go_first()
    own_modules_last()


def with_answers(serve: Callable[[TextIO], None]) -> int:
    """Let it answer until stdin ends; the exit code."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of others
    try:
        serve(answers)
    except (Exception, SystemExit) as error:
        say(answers, {"event": "fatal", "reason": f"{type(error).__name__}: {error}"[:2000]})
        return 1
    return 0


def _serve(device: str, files: Sequence[str], answers: TextIO) -> None:
    from profkit.kernels.sweep.settings import Settings

    settings = Settings()  # before anybody's file has run: what one replaces is put back
    for file in files:
        run_file(Path(file))
    _answer(device, answers, settings.put_back())


def _answer(device: str, answers: TextIO, changed: Sequence[str]) -> None:
    from profkit.kernels.sweep.bench import Bench, Broken
    from profkit.kernels.sweep.roofs import measure_roofs, versions
    from profkit.kernels.sweep.wish import Wish

    bench: Bench | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["ask"] == "load":
            from profkit.kernels.operations.compiled import load

            load()
            say(answers, {"event": "loaded"})
            continue
        if request["ask"] == "about":
            bench = Bench(device, Wish(**request["wish"]), float(request.get("share", 1.0)))
            roofs = measure_roofs(bench.device) if request["roofs"] else None
            about = {"event": "about", **versions(bench.device), "roofs": codec.plain(roofs)}
            say(answers, {**about, "changed": list(changed)})
            continue
        assert bench is not None
        point = codec.build(GridPoint, request["point"])
        try:
            for name, result in bench.run(point, request["implementations"]):
                if result is None:
                    say(answers, {"event": "begin", "implementation": name})
                else:
                    say(answers, {"event": "result", "result": codec.plain(result)})
        except Broken as broken:
            say(answers, {"event": "broken", "reason": str(broken)})
            os._exit(BROKEN)  # an orderly end would wait for the device
        say(answers, {"event": "done"})


def say(answers: TextIO, message: dict[str, object]) -> None:
    """One answer, a line."""
    answers.write(json.dumps(message) + "\n")
    answers.flush()

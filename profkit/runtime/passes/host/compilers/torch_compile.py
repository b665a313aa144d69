"""What torch.compile does: where it leaves a function for Python, and what it compiles again."""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import suppress

from .operations_file import MAX_ROWS

COMPILE_LOGS = (
    "torch._dynamo.symbolic_convert.__graph_breaks",
    "torch._dynamo.convert_frame.__graph_breaks",
    "torch._dynamo.guards.__recompiles",
)
_AGAIN = re.compile(r"Recompiling function (\S+) in (.+):(\d+)\s+triggered by.*\s+- (?:\d+/\d+: )?(.+)")
_BREAK = re.compile(r"Graph break in user code at (.+):(\d+)\s+Graph Break Reason: (.*(?:\n+.+){0,3})")
_SKIPPED = "Failed to handle graph break gracefully"
_SAYS_LITTLE = (_SKIPPED, "Encountered graph break when")


class CompilerLog(logging.Handler):
    """Hears where torch.compile leaves a function for Python, and what it compiles again, from torch's own logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._breaks: dict[tuple[str, int, str, bool], int] = {}
        self._again: dict[tuple[str, int, str], list[object]] = {}  # first reason, and how often

    def listen(self) -> None:
        """Receive the messages from here on; torch's own handlers get no more than before."""
        with suppress(Exception):  # what is not enabled there is not even written
            sys.modules["torch._logging._internal"].log_state.enable_artifact("recompiles")
        for name in COMPILE_LOGS:
            log = logging.getLogger(name)
            if self not in log.handlers:
                log.addHandler(self)
            if log.getEffectiveLevel() > logging.DEBUG or log.level == logging.NOTSET:
                log.setLevel(logging.DEBUG)
                log.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one message."""
        with suppress(Exception):
            message = record.getMessage()[:20_000]  # what is looked for stands at its begin
            if again := _AGAIN.search(message):
                place = (os.path.abspath(again[2]), int(again[3]), again[1])
                reason, times = self._again.get(place, (again[4][:200], 0))
                self._again[place] = [reason, int(str(times)) + 1]
            found = _BREAK.search(message)
            if found is None:
                return
            lines = [line.strip() for line in found[3].splitlines() if line.strip()]
            skipped = lines[0].startswith(_SKIPPED)
            reason = next((line for line in lines if not line.startswith(_SAYS_LITTLE)), lines[0])
            key = (os.path.abspath(found[1]), int(found[2]), reason[:200], skipped)
            self._breaks[key] = self._breaks.get(key, 0) + 1

    def compiled_again(self) -> list[list[object]]:
        """Return file, line, function, first reason, number of recompilations, and the seconds of one."""
        each = 0.0
        with suppress(Exception):  # torch's own list, of all compilations
            times = sys.modules["torch._dynamo.utils"].compilation_time_metrics["_compile.compile_inner"]
            each = sum(times) / len(times)
        return [[*place, *found, each] for place, found in self._again.items()][:MAX_ROWS]

    def breaks(self) -> list[list[object]]:
        """Return file, line, reason, whether the whole function was left, and its compilations up to there."""
        ranked = sorted(self._breaks.items(), key=lambda item: -item[1])
        return [[*key, count] for key, count in ranked][:MAX_ROWS]

"""Files of traced calls: the text that programs write, and one compressed table of the calls of many programs.

The table is a trace file, too: its lines end in a comment that says how often which program has the call.
"""

from __future__ import annotations

import errno
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded
from profkit.kernels.evaluation.suites.notation import (
    NotationError,
    TracedCall,
    format_call,
    parse_call,
    read_calls,
)

_PROGRAM = re.compile(r"# program (\d{1,9}) (.+)")
_COUNTS = re.compile(r"  # in (\d{1,9}:\d{1,18}(?: \d{1,9}:\d{1,18})*)$")
MOST_BYTES = 1_000_000_000  # of a trace file
MOST_UNPACKED = 16 << 20  # bytes of a table; that of 155 models has 2 MB


@dataclass(frozen=True)
class CallCounts:
    """A call of an operation (`add.Tensor`), and how often each program has it."""

    operation: str
    arguments: str
    programs: Mapping[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """In all programs together."""
        return sum(self.programs.values())


def read_traces(path: Path) -> list[CallCounts]:
    """The calls of a trace file, of a table, or of all `*.txt` below a folder; each call once.

    A program is called as its file is, below that folder. Raises UsageError where no call can be read.
    """
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for file in files:
        program = file.relative_to(path).with_suffix("").as_posix() if path.is_dir() else file.stem
        for call, programs in _read_file(file, program):
            known = counts.setdefault((call.operation, call.arguments), {})
            for name, count in programs.items():
                known[name] = known.get(name, 0) + count
    if not counts:
        raise UsageError(
            f"{path} has no traced calls",
            "a line `Operator: aten.relu.default`, then lines `cnt: 1, ((T([8], f32),), {})`",
        )
    return [CallCounts(operation, text, programs) for (operation, text), programs in counts.items()]


def _read_file(file: Path, program: str) -> Iterator[tuple[TracedCall, Mapping[str, int]]]:
    try:
        content = read_bounded(file, MOST_BYTES)
        if is_table := content[:2] == b"\x1f\x8b":
            content = _unpack(content)
        names: dict[str, str] = {}
        for call in read_calls(_keep_names(io.TextIOWrapper(io.BytesIO(content), "utf-8"), names)):
            if is_table and (match := _COUNTS.search(call.arguments)):
                yield _without_comment(call, match.start()), _counts_by_name(match[1], names)
            else:
                yield _normalized(call), {program: call.count}
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{file} cannot be read as a trace: {reason}", "--traces PATH") from error


def _unpack(content: bytes) -> bytes:
    pieces = []
    left = MOST_UNPACKED + 1
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise OSError(
            errno.EFBIG, f"it unpacks to more than {MOST_UNPACKED >> 20} MiB: no table of operations"
        )
    return b"".join(pieces)


def _keep_names(lines: Iterable[str], names: dict[str, str]) -> Iterator[str]:
    """The lines as they come; the programs that a table names before its calls are added to `names`."""
    for line in lines:
        if match := _PROGRAM.match(line):
            names[match[1]] = match[2]
        yield line


def _counts_by_name(text: str, names: Mapping[str, str]) -> dict[str, int]:
    counts = {}
    for pair in text.split():
        number, _, count = pair.partition(":")
        if number not in names:
            raise OSError(
                errno.EINVAL, f"it has no line `# program {number} NAME` before a call of that program"
            )
        counts[names[number]] = int(count)
    return counts


def _without_comment(call: TracedCall, end: int) -> TracedCall:
    return TracedCall(call.operation, call.count, call.arguments[:end])


def _normalized(call: TracedCall) -> TracedCall:
    """The call as this module writes it, so that texts are equal where calls are; what is no call stays as it is."""
    try:
        return TracedCall(call.operation, call.count, format_call(parse_call(call.arguments)))
    except NotationError:
        return call


def write_table(calls: Iterable[CallCounts], head: Iterable[str]) -> bytes:
    """The table, with `head` as comments on top: the same bytes for the same calls."""
    calls = sorted(calls, key=lambda call: (call.operation, call.arguments))
    names = sorted({name for call in calls for name in call.programs})
    numbers = {name: at for at, name in enumerate(names)}
    lines = [*(f"# {line}" for line in head), *(f"# program {at} {name}" for name, at in numbers.items())]
    operation = ""
    for call in calls:
        if call.operation != operation:
            operation = call.operation
            lines.append(_operator_line(operation))
        where = " ".join(f"{numbers[name]}:{count}" for name, count in sorted(call.programs.items()))
        lines.append(f"cnt: {call.calls}, {call.arguments}  # in {where}")
    return gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0)


def write_trace(calls: Iterable[CallCounts]) -> str:
    """A trace file of the calls of one program: most often called first."""
    lines = []
    operation = ""
    for call in sorted(calls, key=lambda call: (call.operation, -call.calls, call.arguments)):
        if call.operation != operation:
            operation = call.operation
            lines.append(_operator_line(operation))
        lines.append(f"cnt: {call.calls}, {call.arguments}")
    return "\n".join(lines) + "\n"


def _operator_line(operation: str) -> str:
    """An operation of another library than aten has that one's name before its own."""
    return f"Operator: {operation if operation.count('.') > 1 else f'aten.{operation}'}"

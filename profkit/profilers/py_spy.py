"""Runs py-spy, which samples Python programs that already run, from outside, and reads its samples.

It reads the program's memory and never stops it (`--nonblocking`): whatever becomes of profkit, the program
goes on. One recording has the stacks of all threads, a second one of those that can run. The rest waits; the
threads' system calls show for what.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.profilers.files import reading
from profkit.profilers.host.stack_records import IMPORT, SCHEMA

INSTALL = "pip install 'profkit[attach]'"
RATE = 100  # samples a second
LARGEST = 256 << 20  # bytes; equal stacks are one row, some hundred bytes a frame
MIN_CPU = 0.05  # seconds: below that the system's own count of a process is too coarse
_PROCESS = re.compile(r'process (\d+):"')
# A row begins with the command lines of the process and of those above it, which may be texts of several lines.
_ROW = re.compile(
    r'^(process \d+:".*?);thread \((\d+)\)(?:: ([^;\n]*))?;([^\n]*) (\d+)$', re.DOTALL | re.MULTILINE
)
_FRAME = re.compile(r"(.+) \((.+?)(?::(\d+))?\)")
INPUT, _SELECTS = "input", re.compile(r"selectors\.py(?::\d+)?\)$")
_IMPORT_SYSTEM = ("<frozen importlib", "<frozen zipimport")

Kinds: TypeAlias = "Mapping[int, Counter[str]]"  # what a thread waited for, how often
# Process, thread, and frames as a text, outermost first.
_Samples: TypeAlias = "Counter[tuple[int, int, str]]"


def record_argv(pid: int, output: Path, seconds: float, *, idle: bool, program: str) -> tuple[str, ...]:
    """Return the command that samples a process and its children for `seconds` into `output`.

    `idle`: also threads that wait.
    """
    words = ("record", "--pid", str(pid), "--nonblocking", "--subprocesses", "--threads", "--full-filenames")
    length = ("--duration", str(max(1, round(seconds))), "--rate", str(RATE))
    all_threads = ("--idle",) if idle else ()
    return (program, *words, *all_threads, *length, "--format", "raw", "--output", str(output))


def sampled_lines(
    everything: Path, running: Path, seconds: float, root: int, cpu: Mapping[int, float], kinds: Kinds
) -> Iterator[str]:
    """Yield two recordings of the same `seconds` as lines for `stacks.read_stacks`, one per process.

    `root` is the process to profile. `cpu`: processor seconds by process as the system counted them, `kinds`:
    what each thread waited for. Raises UnreadableReport where a recording is damaged or holds nothing.
    """
    names: dict[tuple[int, int], str] = {}
    present, able = _read(everything, names), _read(running, names)
    rounds: Counter[tuple[int, int]] = Counter()
    for (pid, thread, _), count in present.items():
        rounds[pid, thread] += count
    selecting = {key[:2] for key in present if _SELECTS.search(key[2])}
    if not rounds:
        raise UnreadableReport("no thread of the process ran Python")
    most = max(rounds.values())
    period = seconds / most if most > RATE * seconds / 2 else 1 / RATE  # rounds that failed count, too
    for pid in sorted({pid for pid, _ in names}, key=lambda pid: (pid != root, pid)):
        # The main thread is the first one, and the profiled process began first.
        threads = sorted((number for process, number in names if process == pid), key=lambda n: (n != pid, n))
        ran = period * sum(count for key, count in able.items() if key[0] == pid)
        # A thread that could run is not yet one that ran: the system's count decides how much.
        counted = cpu.get(pid, 0.0)
        scale = min(1.0, counted / ran) if counted > MIN_CPU and ran > 0 else 1.0
        tree, samples, waits = _Tree(), [], []
        for key in (key for key in present | able if key[0] == pid):
            node = tree.add(key[2])
            runnable = period * able[key]
            wall, place = max(runnable, period * present[key]), (node, threads.index(key[1]))
            samples.append([*place, 0, round(wall * 1e6), round(scale * runnable * 1e6), present[key]])
            if wall > runnable:
                kind = _kind_of(key[2], kinds.get(key[1], Counter()), selects=key[:2] in selecting)
                waits.append([*place, kind, round((wall - runnable) * 1e6)])
        line = {
            "schema": SCHEMA,
            "process": f"{pid}.{pid if pid != root else 0}",
            "pid": pid,
            "functions": [[number, *function, 0] for function, number in tree.functions.items()],
            "nodes": [[number, *node] for node, number in tree.nodes.items()],
            "threads": [[number, names[pid, thread]] for number, thread in enumerate(threads)],
            "samples": samples,
            "waits": waits,
        }
        yield json.dumps({**line, "seconds": seconds, "cost": 0, "entries": 0, "end": True})


def _kind_of(stack: str, kinds: Counter[str], *, selects: bool) -> str:
    """Return what a thread waited for in a stack, out of all that it was seen to wait for.

    A thread that `selects` waits for any of several inputs there, as an event loop does, and in its other stacks
    for what else it waited for: else a call that blocks the loop would be taken for the loop's own rest.
    """
    if selects and _SELECTS.search(stack) and kinds[INPUT]:
        return INPUT
    by_count = [kind for kind, _ in kinds.most_common()]
    not_input = [kind for kind in by_count if kind != INPUT] if selects else by_count
    return next(iter(not_input or by_count), "waiting")


def _read(path: Path, names: dict[tuple[int, int], str]) -> _Samples:
    """Return how often each stack was seen, and add the threads' names to `names`."""
    with reading(path):
        text = read_bounded(path, LARGEST).decode(errors="replace")
    samples: _Samples = Counter()
    for above, thread, name, stack, count in _ROW.findall(text):
        pid = int(_PROCESS.findall(above)[-1])
        names[pid, int(thread)] = name or "unnamed"
        samples[pid, int(thread), stack] += int(count)
    return samples


class _Tree:
    """Stacks as nodes below each other. A function that calls itself is in a stack once, at its last line."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], int] = {}
        self.nodes: dict[tuple[int, int, int], int] = {}

    def add(self, text: str) -> int:
        """Add the stack in a row of text, and return its number."""
        matches = [(frame, _FRAME.fullmatch(frame)) for frame in text.split(";")]
        places = [(m[1], m[2], int(m[3] or 0)) if m is not None else (frame, "", 0) for frame, m in matches]
        node = 0
        for (name, file, line), (inner, inner_file, _) in zip(
            places, [*places[1:], ("", "", 0)], strict=True
        ):
            importing = file.startswith(_IMPORT_SYSTEM)
            if (inner, inner_file) == (name, file) or (importing and inner_file.startswith(_IMPORT_SYSTEM)):
                continue
            function = (
                self.functions.setdefault((name, file), len(self.functions) + 2) if not importing else IMPORT
            )
            node = self.nodes.setdefault((node, function, line), len(self.nodes) + 2)
        return node

"""py-spy looks at Python programs that run already, from outside: how it is called, and its samples as sampled stacks.

It reads the program's memory and never stops it (`--nonblocking`): whatever becomes of us, the program goes on. One
recording has the stacks of all threads, a second one of those that can run. The rest waits; for what, looks at the
threads' system calls tell.
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
from profkit.profilers.stacks import IMPORT, SCHEMA

INSTALL = "pip install 'profkit[attach]'"
RATE = 100  # samples a second
LARGEST = 256 << 20  # bytes; equal stacks are one row, some hundred bytes a frame
LEAST_CPU = 0.05  # seconds: below that the system's own count of a process is too coarse
_PROCESS = re.compile(r'process (\d+):"')
# A row begins with the command lines of the process and of those above it, which may be texts of several lines.
_ROW = re.compile(
    r'^(process \d+:".*?);thread \((\d+)\)(?:: ([^;\n]*))?;([^\n]*) (\d+)$', re.DOTALL | re.MULTILINE
)
_FRAME = re.compile(r"(.+) \((.+?)(?::(\d+))?\)")
INPUT, _SELECTS = "input", re.compile(r"selectors\.py(?::\d+)?\)$")
_IMPORT_SYSTEM = ("<frozen importlib", "<frozen zipimport")

Kinds: TypeAlias = "Mapping[int, Counter[str]]"  # what a thread waited for, how often
_Samples: TypeAlias = (
    "Counter[tuple[int, int, str]]"  # process, thread, and frames as a text, outermost first
)


def record_argv(pid: int, output: Path, seconds: float, *, idle: bool, program: str) -> tuple[str, ...]:
    """Sample a process and its children for so many seconds into `output`; `idle`: also threads that wait."""
    words = ("record", "--pid", str(pid), "--nonblocking", "--subprocesses", "--threads", "--full-filenames")
    length = ("--duration", str(max(1, round(seconds))), "--rate", str(RATE))
    all_threads = ("--idle",) if idle else ()
    return (program, *words, *all_threads, *length, "--format", "raw", "--output", str(output))


def sampled_lines(
    everything: Path, running: Path, seconds: float, root: int, cpu: Mapping[int, float], kinds: Kinds
) -> Iterator[str]:
    """Two recordings of the same `seconds` as lines that `stacks.read_stacks` takes, one for each process.

    `root` is the process that was asked for. `cpu`: processor seconds by process as the system counted them, `kinds`:
    what each thread waited for. Raises UnreadableReport where a recording is damaged or holds nothing.
    """
    names: dict[tuple[int, int], str] = {}
    there, able = _read(everything, names), _read(running, names)
    rounds: Counter[tuple[int, int]] = Counter()
    for (pid, thread, _), count in there.items():
        rounds[pid, thread] += count
    selecting = {key[:2] for key in there if _SELECTS.search(key[2])}
    if not rounds:
        raise UnreadableReport("no thread of the process ran Python")
    most = max(rounds.values())
    period = seconds / most if most > RATE * seconds / 2 else 1 / RATE  # rounds that failed count, too
    for pid in sorted({pid for pid, _ in names}, key=lambda pid: (pid != root, pid)):
        # The main thread is the first one, and the process that was asked for began first.
        threads = sorted((number for one, number in names if one == pid), key=lambda n: (n != pid, n))
        ran = period * sum(count for key, count in able.items() if key[0] == pid)
        # A thread that could run is not yet one that ran: the system's count decides how much.
        counted = cpu.get(pid, 0.0)
        scale = min(1.0, counted / ran) if counted > LEAST_CPU and ran > 0 else 1.0
        tree, samples, waits = _Tree(), [], []
        for key in (key for key in there | able if key[0] == pid):
            node = tree.add(key[2])
            runnable = period * able[key]
            wall, place = max(runnable, period * there[key]), (node, threads.index(key[1]))
            samples.append([*place, 0, round(wall * 1e6), round(scale * runnable * 1e6), there[key]])
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
    """What a thread waited for in a stack, of all that it was seen to wait for.

    A thread that `selects` waits for any of several inputs there, as an event loop does, and in its other stacks for
    what else it waited for: else a call that blocks the loop would be taken for the loop's own rest.
    """
    if selects and _SELECTS.search(stack) and kinds[INPUT]:
        return INPUT
    known = [kind for kind, _ in kinds.most_common()]
    others = [kind for kind in known if kind != INPUT] if selects else known
    return next(iter(others or known), "waiting")


def _read(path: Path, names: dict[tuple[int, int], str]) -> _Samples:
    """How often each stack was seen; `names` gets those of the threads."""
    with reading(path):
        text = read_bounded(path, LARGEST).decode(errors="replace")
    samples: _Samples = Counter()
    for above, thread, name, stack, count in _ROW.findall(text):
        pid = int(_PROCESS.findall(above)[-1])
        names[pid, int(thread)] = name or "unnamed"
        samples[pid, int(thread), stack] += int(count)
    return samples


class _Tree:
    """Stacks as nodes below each other. A function that calls itself stands in one once, at its last line."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], int] = {}
        self.nodes: dict[tuple[int, int, int], int] = {}

    def add(self, text: str) -> int:
        """The number of the stack that frames in a row of text are."""
        found = [(frame, _FRAME.fullmatch(frame)) for frame in text.split(";")]
        places = [(m[1], m[2], int(m[3] or 0)) if m is not None else (frame, "", 0) for frame, m in found]
        node = 0
        for (name, file, line), (inner, inner_file, _) in zip(
            places, [*places[1:], ("", "", 0)], strict=True
        ):
            importing = file.startswith(_IMPORT_SYSTEM)
            if (inner, inner_file) == (name, file) or (importing and inner_file.startswith(_IMPORT_SYSTEM)):
                continue
            known = (
                self.functions.setdefault((name, file), len(self.functions) + 2) if not importing else IMPORT
            )
            node = self.nodes.setdefault((node, known, line), len(self.nodes) + 2)
        return node

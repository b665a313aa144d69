"""py-spy looks at Python programs that run already, from outside: how it is called, and its samples as sampled stacks.

It reads the program's memory and never stops it (`--nonblocking`): whatever becomes of us, the program goes on. One
recording has the stacks of all threads, a second one of those that run. The difference waits; for what, a look at the
threads' system calls tells that is taken at the same time as a `dump` of their stacks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from profkit.core.errors import Fault, UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.profilers.stacks import IMPORT, SCHEMA

INSTALL = "pip install 'profkit[attach]'"
RATE = 100  # samples a second
LARGEST = 256 << 20  # bytes; equal stacks are one line, some hundred bytes a frame
LEAST_CPU = 0.05  # seconds: below that the system's own count of a process is too coarse
_PROCESS = re.compile(r'process (\d+):"')
_THREAD = re.compile(r"^(?:.*;)?thread \((\d+)\)(?:: ([^;]*))?;(.*) (\d+)$")
_FRAME = re.compile(r"(.+) \((.+?)(?::(\d+))?\)")
_IMPORT_SYSTEM = ("<frozen importlib", "<frozen zipimport")
_FAULTS = (
    ("No such file or directory \\(os error 2\\)|No such process", "the process has ended", None),
    (
        "Permission [Dd]enied|Operation not permitted|os error 1\\b",
        "py-spy may not read the memory of that process",
        "sudo sysctl kernel.yama.ptrace_scope=0   (in a container: docker run --cap-add SYS_PTRACE)",
    ),
    (
        "Failed to (?:find|get) .*python|[Uu]nsupported version of Python",
        "this py-spy does not know the Python of that process",
        "pip install --upgrade py-spy",
    ),
)

Place: TypeAlias = "tuple[str, str, int]"  # function, file and line
Kinds: TypeAlias = "Mapping[Place, Counter[str]]"


def record_argv(pid: int, output: Path, seconds: float, *, idle: bool, program: str) -> tuple[str, ...]:
    """Sample a process and its children for so many seconds into `output`; `idle`: also threads that wait."""
    words = ("record", "--pid", str(pid), "--nonblocking", "--subprocesses", "--threads", "--full-filenames")
    length = ("--duration", str(max(1, round(seconds))), "--rate", str(RATE))
    all_threads = ("--idle",) if idle else ()
    return (program, *words, *all_threads, *length, "--format", "raw", "--output", str(output))


def dump_argv(pid: int, program: str) -> tuple[str, ...]:
    """Print where each thread of one process is, as `waiting_threads` reads it."""
    return (program, "dump", "--pid", str(pid), "--nonblocking", "--json")


def explain(text: str, returncode: int) -> Fault | None:  # noqa: ARG001
    """The fault that py-spy printed; None where it is not known."""
    return next((Fault(reason, fix) for sign, reason, fix in _FAULTS if re.search(sign, text)), None)


def waiting_threads(text: bytes) -> Iterator[tuple[int, Place]]:
    """The threads of a dump that wait: their numbers in the system, and the innermost line of each."""
    try:
        for thread in json.loads(text):
            if not thread["active"] and thread["frames"] and thread["os_thread_id"]:
                leaf = thread["frames"][0]
                yield int(thread["os_thread_id"]), (leaf["name"], leaf["filename"], int(leaf["line"]))
    except (ValueError, KeyError, TypeError):
        return  # it ended meanwhile


@dataclass
class _Process:
    """Samples of one process by thread and stack, outermost frame first: of all threads, and of those that ran."""

    everything: dict[tuple[int, str], int] = field(default_factory=dict)
    running: dict[tuple[int, str], int] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)


def sampled_lines(
    everything: Path, running: Path, seconds: float, root: int, cpu: Mapping[int, float], kinds: Kinds
) -> Iterator[str]:
    """Two recordings of the same `seconds` as lines that `stacks.read_stacks` takes, one for each process.

    `root` is the process that was asked for. `cpu`: processor seconds by process as the system counted them, `kinds`:
    what threads waited for by innermost line. Raises UnreadableReport where a recording is damaged or holds nothing.
    """
    processes: dict[int, _Process] = {}
    for path, is_all in ((everything, True), (running, False)):
        _read(path, processes, is_all=is_all)
    if not any(process.everything for process in processes.values()):
        raise UnreadableReport(f"{everything.name} has no samples of Python")
    rounds = max(
        sum(count for (number, _), count in process.everything.items() if number == thread)
        for process in processes.values()
        for thread in process.threads
    )
    period = seconds / rounds if rounds > RATE * seconds / 2 else 1 / RATE  # rounds that failed count, too
    for pid in sorted(processes, key=lambda pid: (pid != root, pid)):
        yield _line(pid, processes[pid], pid != root, seconds, period, cpu.get(pid), kinds)


def _read(path: Path, processes: dict[int, _Process], *, is_all: bool) -> None:
    try:
        text = read_bounded_text(path, LARGEST, errors="replace")
    except OSError as error:
        raise UnreadableReport(f"{path.name} cannot be read: {error.strerror}") from error
    for row in text.splitlines():
        thread = _THREAD.match(row)
        pids = _PROCESS.findall(row[: thread.start(3)]) if thread is not None else ()
        if thread is None or not pids:
            continue  # torn, or a process without Python
        process = processes.setdefault(int(pids[-1]), _Process())
        process.threads[int(thread[1])] = thread[2] or "unnamed"
        stacks = process.everything if is_all else process.running
        key = int(thread[1]), thread[3]
        stacks[key] = stacks.get(key, 0) + int(thread[4])


def _line(
    pid: int,
    process: _Process,
    is_child: bool,
    seconds: float,
    period: float,
    counted: float | None,
    kinds: Kinds,
) -> str:
    """A process in one line. A thread that could run is not yet one that ran: the system's count decides how much."""
    ran = period * sum(process.running.values())
    scale = min(1.0, counted / ran) if counted is not None and counted > LEAST_CPU and ran > 0 else 1.0
    numbers = {tid: n for n, tid in enumerate(sorted(process.threads, key=lambda tid: (tid != pid, tid)))}
    tree = _Tree()
    samples, waits = [], []
    usual = _usual_kinds(process, kinds)
    for key in {**process.everything, **process.running}:
        node, leaf = tree.add(key[1])
        cpu = scale * period * process.running.get(key, 0)
        wall = max(cpu, period * process.everything.get(key, 0))
        micros = [round(wall * 1e6), round(cpu * 1e6), process.everything.get(key, 0)]
        samples.append([node, numbers[key[0]], 0, *micros])
        if wall > cpu:
            kind = _first(kinds[leaf]) if leaf in kinds else usual.get(key[0], "waiting")
            waits.append([node, numbers[key[0]], kind, round((wall - cpu) * 1e6)])
    known = {
        "schema": SCHEMA,
        "process": f"{pid}.{pid if is_child else 0}",  # the one that was asked for began first
        "pid": pid,
        "functions": [[number, *function, 0] for function, number in tree.functions.items()],
        "nodes": [[number, *node] for node, number in tree.nodes.items()],
        "threads": [[number, process.threads[tid]] for tid, number in numbers.items()],
    }
    times = {"seconds": seconds, "cost": 0, "entries": 0, "end": True}
    return json.dumps({**known, "samples": samples, "waits": waits, **times})


def _usual_kinds(process: _Process, kinds: Kinds) -> dict[int, str]:
    """What each thread was seen to wait for most: at a line where nobody looked it may be that."""
    votes: dict[int, Counter[str]] = {}
    for (thread, text), count in process.everything.items():
        if (leaf := _place(text.rpartition(";")[2])) in kinds:
            votes.setdefault(thread, Counter())[_first(kinds[leaf])] += count
    return {thread: _first(counts) for thread, counts in votes.items()}


def _first(votes: Counter[str]) -> str:
    return votes.most_common(1)[0][0]


class _Tree:
    """Stacks as nodes below each other. A function that calls itself stands in one once, at its last line."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], int] = {}
        self.nodes: dict[tuple[int, int, int], int] = {}

    def add(self, text: str) -> tuple[int, Place]:
        """The number of the stack that frames in a row of text are, and its innermost line."""
        places = [_place(frame) for frame in text.split(";")]
        node = 0
        for number, (name, file, line) in enumerate(places):
            inner = places[number + 1][:2] if number + 1 < len(places) else None
            if inner == (name, file):
                continue
            function = IMPORT
            if not file.startswith(_IMPORT_SYSTEM):
                function = self.functions.setdefault((name, file), len(self.functions) + 2)
            elif inner is not None and inner[1].startswith(_IMPORT_SYSTEM):
                continue
            node = self.nodes.setdefault((node, function, line), len(self.nodes) + 2)
        return node, places[-1]


def _place(frame: str) -> Place:
    match = _FRAME.fullmatch(frame)
    return (match[1], match[2], int(match[3] or 0)) if match is not None else (frame, "", 0)

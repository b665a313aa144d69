"""Reads the file of sampled Python stacks: lines of JSON that the processes of a workload appended, each in one write.

This module turns lines into processes; `stacks` makes a report of them.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.analysis.stacks.merge import PYTHON
from profkit.analysis.stacks.python_code import SeenValues
from profkit.analysis.stacks.stretches import WrittenStretch
from profkit.core.codec import is_finite_number
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import (
    Frame,
    Variable,
)
from profkit.profilers.files import lines_of, reading
from profkit.profilers.perf.leaves import Moment

SCHEMA = "profkit.stacks/1"
IMPORT, REST = 0, 1  # functions with a number of their own; REST is a stack, too
_SIGN = b'{"schema": "profkit.stacks/1"'
MAX_BYTES = 512 << 20
MAX_PROCESSES = 20_000
MAX_STRETCHES = 200_000  # of one process
OVERLAP = 0.02  # s by which the clocks of two processes may differ


def looks_like_stacks(head: bytes) -> bool:
    """Return whether the first line that is not empty is one of ours."""
    return head.lstrip(b"\n").startswith(_SIGN)


@dataclass
class SampledProcess:
    """What one process wrote: its tables, and seconds by stack, thread and whether inside a region."""

    key: str
    begun: int  # ms; the first one to begin is that of the command itself
    pid: int = 0
    parent: int = 0
    leads: bool = False  # no other Python process runs at this time: its main thread is that of the run
    program: str = ""
    python: str = ""
    own_clocks: bool = True
    entries: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    ended: bool = False
    failed: str = ""
    functions: dict[int, Frame] = field(default_factory=dict)
    nodes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    sums: dict[tuple[int, int, bool], tuple[float, float]] = field(default_factory=dict)
    waits: dict[tuple[int, int, str], float] = field(default_factory=dict)  # by stack, thread and what for
    # Stack of the coroutine that a loop waits for, and whether that is the only one.
    awaited: dict[tuple[int, bool], float] = field(default_factory=dict)
    longest: dict[int, float] = field(default_factory=dict)
    # by stack: callbacks that held an event loop, their seconds, and all in which something else was ready
    held: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    stretches: list[WrittenStretch] = field(default_factory=list)
    # Of a run that perf sampled as well: the system's number of each thread, when the process began on the monotonic
    # clock, and by thread when which stack was seen.
    natives: dict[int, int] = field(default_factory=dict)
    monotonic: float = 0.0
    moments: dict[int, list[Moment]] = field(default_factory=dict)
    # How often the lock was tried for, and by stack how often it was given away there: by a thread that stood still
    # then, and by one that went on. Then processor seconds of threads that took turns, and what no sample places.
    trials: int = 0
    given: dict[int, tuple[int, int]] = field(default_factory=dict)
    turns: tuple[float, float] = (0.0, 0.0)
    values: dict[int, SeenValues] = field(default_factory=dict)  # by function
    rank: str = ""
    collecting: float = 0.0
    collected: dict[tuple[str, int], float] = field(default_factory=dict)  # the same by file and line
    count: int = 0
    main_count: int = 0  # of these, of the main thread


def read_processes(path: Path) -> tuple[list[SampledProcess], int]:
    """Return the processes in the order of the file, and how many lines were torn.

    Raises UnreadableReport for a file that holds no sampled stacks.
    """
    processes: dict[str, SampledProcess] = {}
    torn = 0
    with reading(path):
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableReport(f"{path} is larger than sampled stacks can be ({MAX_BYTES >> 20} MiB)")
        with io.TextIOWrapper(open_regular(path), encoding="utf-8", errors="replace", newline="\n") as file:
            for line in lines_of(file, path):
                if line.strip() and not _add_line(processes, line):
                    torn += 1
    if not processes:
        raise UnreadableReport(f"{path} holds no sampled stacks: none of its lines says {SCHEMA}")
    _mark_leading(list(processes.values()))
    return list(processes.values()), torn


def _mark_leading(processes: list[SampledProcess]) -> None:
    """Mark the first process, and those that its parent started one after the other, as a shell's script does."""
    last: SampledProcess | None = None
    for process in sorted(processes, key=lambda process: process.begun):
        if last is None or (
            process.parent == last.parent > 0
            and not process.rank
            and process.begun >= last.begun + 1e3 * (last.seconds - OVERLAP)
        ):
            process.leads, last = True, process


def _add_line(processes: dict[str, SampledProcess], text: str) -> bool:
    """Add the content of a line to its process; return False if the line is torn, or not one of ours."""
    try:
        line = json.loads(text)
        if line["schema"] != SCHEMA:
            return False
        key = str(line["process"])
        if key not in processes and len(processes) >= MAX_PROCESSES:
            return False
        process = processes.get(key) or SampledProcess(key, int(key.partition(".")[2]))
        _take(process, line)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return False
    processes[key] = process
    return True


def _take(process: SampledProcess, line: dict[str, Any]) -> None:
    """Add the content of a line. Raises ValueError, TypeError, KeyError or OverflowError if it is not valid."""
    functions = {
        int(n): Frame(str(name), PYTHON, str(file), int(at))
        for n, name, file, at in line.get("functions", ())
    }
    nodes = {int(n): (int(parent), int(code), int(at)) for n, parent, code, at in line.get("nodes", ())}
    if any(parent >= n for n, (parent, _, _) in nodes.items()):
        raise ValueError("a stack within itself")
    threads = {int(number): str(name) for number, name in line.get("threads", ())}
    samples = [(int(n), int(t), bool(i), w * 1e-6, c * 1e-6, int(k)) for n, t, i, w, c, k in line["samples"]]
    if not all(is_finite_number(wall) and is_finite_number(cpu) for _, _, _, wall, cpu, _ in samples):
        raise ValueError("a time that is not a time")
    process.seconds, process.cost = float(line["seconds"]), float(line["cost"])
    if not is_finite_number(process.seconds) or not is_finite_number(process.cost):
        raise ValueError("a time that is not a time")
    process.entries = int(line["entries"])
    process.program, process.python = (
        str(line.get("program", process.program)),
        str(line.get("python", process.python)),
    )
    process.pid = int(line.get("pid", process.pid))
    process.parent = int(line.get("parent", process.parent))
    process.own_clocks = process.own_clocks and line.get("cpu", "thread") == "thread"
    process.failed = str(line.get("failed", process.failed))
    process.ended = process.ended or bool(line.get("end"))
    process.functions |= functions
    process.nodes |= nodes
    process.threads |= threads
    for node, thread, inside, wall, cpu, count in samples:
        before = process.sums.get((node, thread, inside), (0.0, 0.0))
        process.sums[node, thread, inside] = (before[0] + max(0.0, wall), before[1] + max(0.0, cpu))
        process.count += count
        process.main_count += count if thread == 0 else 0
    process.monotonic = float(line.get("monotonic", process.monotonic))
    process.natives |= {int(number): int(native) for number, native in line.get("natives", ())}
    for thread, node, at in line.get("moments", ()):
        process.moments.setdefault(int(thread), []).append((process.monotonic + float(at) * 1e-6, int(node)))
    room = MAX_STRETCHES - len(process.stretches)
    for thread, begin, length, kind, node, wall in line.get("stretches", ())[:room]:
        begun, lasted, took = (max(0.0, float(micros)) * 1e-6 for micros in (begin, length, wall))
        row = WrittenStretch(int(thread), begun, lasted, str(kind)[:20], int(node), took)
        process.stretches.append(row)
    for node, thread, kind, wall in line.get("waits", ()):
        known = (int(node), int(thread), str(kind)[:20])
        process.waits[known] = process.waits.get(known, 0.0) + max(0.0, float(wall)) * 1e-6
    for node, alone, wall in line.get("awaited", ()):
        coroutine = int(node), bool(alone)
        process.awaited[coroutine] = process.awaited.get(coroutine, 0.0) + max(0.0, float(wall)) * 1e-6
    for node, wall in line.get("longest", ()):
        process.longest[int(node)] = max(process.longest.get(int(node), 0.0), float(wall) * 1e-6)
    for node, times, wall, ready in line.get("held", ()):
        known_times, held, crowded = process.held.get(int(node), (0, 0.0, 0.0))
        process.held[int(node)] = (
            known_times + max(0, int(times)),
            held + max(0.0, float(wall)) * 1e-6,
            crowded + max(0.0, float(ready)) * 1e-6,
        )
    process.trials = max(process.trials, int(line.get("trials", 0)))
    for node, stood, went in line.get("given", ()):  # sums since the beginning
        process.given[int(node)] = max(0, int(stood)), max(0, int(went))
    computed, unplaced = (float(seconds) for seconds in line.get("turns", process.turns))
    if not (is_finite_number(computed) and is_finite_number(unplaced)):
        raise ValueError("a time that is not a time")
    process.turns = max(0.0, computed), min(max(0.0, unplaced), max(0.0, computed))
    for number, looks, arguments, types in line.get("values", ()):
        variables = {
            str(name)[:100]: Variable(
                str(kind)[:100],
                int(length) if length >= 0 else None,
                int(before[0]) if before and 0 <= before[0] < length else None,
            )
            for name, (kind, length, *before) in types.items()
        }
        process.values[int(number)] = SeenValues(
            int(looks), int(arguments) if arguments >= 0 else None, variables
        )
    process.rank = str(line.get("rank", process.rank))[:20]
    process.collecting = max(0.0, float(line.get("collecting", process.collecting)))
    for file, number, spent in line.get("collected", ()):  # sums since the beginning
        process.collected[str(file), int(number)] = max(0.0, float(spent)) * 1e-6

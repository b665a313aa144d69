"""Samples and counts of the CPU: what they come to, and what is said of those that do not count."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from profkit.analysis.stacks.merge import KERNEL, PYTHON
from profkit.core.types import Report
from profkit.profilers.xctrace.alignment import Alignment, TraceRecording
from profkit.profilers.xctrace.cpu import CpuTableReader
from profkit.profilers.xctrace.report import read_exports
from profkit.profilers.xctrace.tables import ExportColumn, ExportTable
from profkit.profilers.xctrace.toc import Backtrace, Process, StackFrame, Thread
from tests.spoken import spoken_lines

ME = Process("python3.12", 812)
OTHER = Process("WindowServer", 401)
MAIN = Thread("Main Thread", 0x51, ME)
WORKER = Thread("", 0x52, ME)
MS = 1_000_000


def frame(name, library=None):
    return StackFrame(name, library)


def stack(*frames):
    """A stack, innermost first, of names or (name, library)."""
    return Backtrace(tuple(frame(*f) if isinstance(f, tuple) else frame(f) for f in frames))


def sample(time=0, weight=MS, calls=None, thread=MAIN, process=ME, state="Running"):
    return {
        "time": time,
        "thread": thread,
        "process": process,
        "thread-state": state,
        "weight": weight,
        "stack": calls,
    }


def table(samples, schema="time-profile"):
    def rows(wanted):
        return iter([tuple(one.get(name) for name in wanted) for one in samples])

    return ExportTable(schema, (ExportColumn("time", "sample-time"),), rows, 1)


HOT = stack(("cblas_sgemm", "libBLAS.dylib"), ("mlp", "mlp.so"), ("main", "python3.12"))


def read(*tables, target=ME, windows=()):
    piece = CpuTableReader(TraceRecording(target=target, alignment=Alignment(tuple(windows), len(windows))))
    for one in tables:
        assert one.schema in piece.schemas
        piece.read(one)
    return piece.finish(Report("xctrace", "xctrace-export"))


def own(parts, ending=" by function"):
    profile = next(p for p in parts.profiles if p.title.endswith(ending))
    return {spot.function: spot.own for spot in profile.hotspots if spot.own}


def test_weights_are_seconds_of_cpu_time_by_function_and_library():
    parts = read(table([sample(calls=HOT), sample(calls=HOT), sample(calls=stack(("mlp", "mlp.so")))]))
    functions, _libraries = parts.profiles
    assert (functions.title, functions.unit, functions.total) == ("CPU time by function", "s", 0.003)
    assert [(s.function, s.library, s.own, s.total) for s in functions.hotspots][:2] == [
        ("cblas_sgemm", "libBLAS.dylib", 0.002, 0.002),
        ("mlp", "mlp.so", 0.001, 0.003),
    ]
    assert own(parts, " by library") == {"libBLAS.dylib": 0.002, "mlp.so": 0.001}


def test_only_the_profiled_process_counts_and_the_rest_is_told():
    parts = read(
        table([sample(calls=HOT), sample(calls=stack("draw"), thread=None, process=OTHER, weight=7 * MS)])
    )
    assert parts.profiles[0].total == 0.001
    assert "draw" not in own(parts)
    assert spoken_lines(parts.warnings)[0] == "time-profile: not counted: 1 sample of other processes"
    assert spoken_lines(parts.warnings)[1:] == ("time-profile: only 1 sample, so shares are rough",)


def test_a_sample_without_a_stack_is_time_that_nobody_is_charged_with():
    parts = read(table([sample(calls=HOT), sample(calls=None)]))
    assert own(parts)["[no stack recorded]"] == 0.001
    assert parts.profiles[0].total == 0.002
    assert "1 sample (50.0 %) without a stack" in spoken_lines(parts.warnings)[0]


def test_python_frames_and_the_kernel_are_told_apart():
    calls = stack(
        ("mach_msg_trap", "kernel.release.t8103"),
        ("AppleFoo", "AppleFoo.kext"),
        ("py::train:/src/train.py", "x"),
    )
    parts = read(table([sample(calls=calls)]))
    (stacks,) = parts.stacks
    python, extension, kernel = next(iter(stacks.weights))
    assert (python.function, python.library, python.file) == ("train", PYTHON, "/src/train.py")
    assert (extension.library, kernel.library) == ("[AppleFoo]", KERNEL)
    assert own(parts, " by Python function") == {"train": 0.001}


def test_only_samples_within_the_region_count():
    samples = [sample(time, calls=stack(f"f{time}")) for time in (0, 10, 19, 20, 35)]
    parts = read(table(samples), windows=[(10, 20), (30, 40)])
    assert set(own(parts)) == {"f10", "f19", "f35"}
    assert parts.facts == {"samples": "3", "region": "counted in 2 entries"}
    assert "no sample of python3.12 (812) in the marked region" in "".join(
        spoken_lines(
            read(table([sample(50), sample(51, thread=None, process=OTHER)]), windows=[(10, 20)]).warnings
        )
    )


TESTS = Path(__file__).resolve().parents[2]
EXTRACT = TESTS / "data" / "xctrace" / "m1"


def own_time(path: Path) -> Counter:
    """Nanoseconds by innermost function, of every row."""
    root = ET.parse(path).getroot()
    known = {element.get("id"): element for element in root.iter() if element.get("id")}

    def whole(element: ET.Element) -> ET.Element:
        return known[element.get("ref")] if element.get("ref") else element

    found: Counter = Counter()
    for row in root.iter("row"):
        cells = [whole(cell) for cell in row]
        weight = next(int(cell.text) for cell in cells if cell.tag == "weight")
        stack = next((cell for cell in cells if cell.tag == "backtrace"), None)
        name = "[no stack recorded]" if stack is None else whole(stack[0]).get("name")
        found["[unknown]" if name.startswith("0x") else name] += weight
    return found


def test_own_time_by_function_is_that_of_every_row():
    profile = next(p for p in read_exports(EXTRACT).profiles if p.title == "CPU time by function")
    told: Counter = Counter()
    for spot in profile.hotspots:
        told[spot.function] += round(spot.own * 1e9)
    assert +told == own_time(EXTRACT / "time-profile.xml")

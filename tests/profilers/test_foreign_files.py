"""Files that people give to the wrong tool: named, with the way on, and never taken for a report that is read."""

from __future__ import annotations

import gzip
import json
import marshal
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.run_folder import FILE_NAME
from profkit.profilers.foreign import explain_foreign
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import summarize_report

NAMED = {
    "samples of austin": "# austin: 3.6.0\n# mode: wall\nP11;T0:11;/a/app.py:<module>:12;/a/app.py:work:3 10023\n",
    "of pyinstrument": '{"start_time": 1795991672.65, "duration": 0.4, "sample_count": 2, "cpu_time": 0.1}',
    "session of pyinstrument": '{"session": {"start_time": 1.5}, "frame_tree": {}}',
    "text of pyinstrument": "\n  _     ._   __/__   _ _  _  _ _/_   Recorded: 10:00:00  Samples:  120\n",
    "line_profiler": "Timer unit: 1e-06 s\n\nTotal time: 1.2 s\nFile: app.py\n",
    "memory_profiler": "CMDLINE python app.py\nMEM 12.003906 1700000000.1\n",
    "by time or line": "Filename: app.py\n\nLine #    Mem usage    Increment  Occurrences   Line Contents\n",
    "py-spy dump": "Process 11: python app.py\nPython v3.11.2 (/usr/bin/python3.11)\n\nThread 11 (active)\n",
    "importtime": "import time: self [us] | cumulative | imported package\nimport time:  120 |  120 |   _io\n",
    "table of torch.profiler": f"{'-' * 9}  {'-' * 12}  {'-' * 12}  \n     Name    Self CPU %      Self CPU  \n",
    "torch's memory": pickle.dumps({"segments": [], "device_traces": [[]]}),
    "cpuprofile of V8": '{"nodes":[{"id":1,"callFrame":{"functionName":"(root)","scriptId":"0"}}]}',
    "trace of Chrome": '{"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"Browser"}}]}',
    "output of nvprof": '==11== NVPROF is profiling\n==11== Profiling result:\n"Type","Time(%)","Time","Calls"\n',
    "rocprofv3": '"Kind","Agent_Id","Queue_Id","Kernel_Name"\n"KERNEL_DISPATCH",4,1,"gemm"\n',
    "simpleperf": "Performance counter statistics,\ncpu-cycles,1234567,1.524000 GHz,(100%),\n",
    "simpleperf stat": "Performance counter statistics:\n\n#   count  event_name   # count / runtime\n",
    "warning of perf": "WARNING: The data size field is 0.\nWas the 'perf record' command properly terminated?\n",
    "results of asv": '{"commit_hash": "abc", "env_name": "x", "results": {}}',
    "results of pyperf": '{"benchmarks": [{"metadata": {}, "runs": [{"values": [0.1]}]}]}',
    "picture": '<?xml version="1.0" standalone="no"?>\n<!DOCTYPE svg PUBLIC "x" "y">\n<svg version="1.1" width="9">',
    "Flight Recorder": b"FLR\x00\x00\x02\x00\x00" + bytes(40),
    "strace -c": "% time     seconds  usecs/call     calls    errors syscall\n------ ----- ---- ---- ----\n",
    "shell's time": "\nreal\t0m1.234s\nuser\t0m1.200s\nsys\t0m0.030s\n",
    "tool of macOS": "Analysis of sampling python (pid 11) every 1 millisecond\nProcess:  python [11]\n",
    "xplane.pb": b"\n\x10\x12\n/host:CPU\x1a\x00" + bytes(20),
    "trace in Chrome's format": '[{"pid":0,"tid":0,"ph":"B","name":"alpha","ts":0},{"pid":0,"ph":"E","ts":9}]',
    "packed with gzip": gzip.compress(b"java 19983 cycles:\n"),
    "collapsed stacks": "main;load;read 12\r\nmain;work 30\r\n",
    "autograd": '[{"name": "add", "ph": "X", "ts": 1.5, "dur": 4, "tid": 1, "pid": "CPU functions", "args": {}}]',
}


@pytest.mark.parametrize("what", NAMED)
def test_a_file_is_named_with_the_way_on(what: str, tmp_path: Path) -> None:
    path = tmp_path / "some file"
    text = NAMED[what]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UnreadableReport, match=what) as caught:
        recognise_format(path)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("tables", "whose"),
    [
        (("rocpd_string_0001", "rocpd_kernel_dispatch_0001"), "rocprofv3"),
        (("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "StringTable"), "nvprof"),
    ],
)
def test_a_database_of_another_tool_is_named_with_the_way_on(
    tables: tuple[str, ...], whose: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (id INTEGER)")
    database.close()
    with pytest.raises(UnreadableReport, match=f"database of {whose}") as caught:
        summarize_report(path)
    assert caught.value.fix


def test_a_file_is_told_by_its_content_also_where_its_name_is_that_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}],
            }
        )
    )
    assert summarize_report(path).backend == "cpu"
    path.write_text(str(NAMED["session of pyinstrument"]))
    with pytest.raises(UnreadableReport, match="session of pyinstrument"):
        summarize_report(path)
    path.write_text('{"name": "x"}')
    with pytest.raises(UnreadableReport, match="not a run document"):
        summarize_report(path)


ONE, TWO = ("work.py", 1, "<module>"), ("work.py", 2, "work")
TIMES = {ONE: (1, 1, 0.1, 0.5, {}), TWO: (3, 3, 0.4, 0.4, {ONE: (3, 3, 0.4, 0.4)})}


@pytest.mark.parametrize(
    ("texts", "version"), [(str, n) for n in range(5)] + [(str.encode, n) for n in range(3)]
)
def test_a_pstats_file_of_any_python_is_read(
    texts: Callable[[str], object], version: int, tmp_path: Path
) -> None:
    """In Python 2 a text was what bytes are in Python 3, and old versions of the format have numbers as texts."""

    def old(key: tuple[str, int, str]) -> tuple[object, ...]:
        return texts(key[0]), key[1], texts(key[2])

    path = tmp_path / "run.prof"
    table = {
        old(key): (*value[:4], {old(caller): c for caller, c in value[4].items()})
        for key, value in TIMES.items()
    }
    path.write_bytes(marshal.dumps(table, version))
    functions = next(one for one in summarize_report(path).profiles if "function" in one.title)
    assert {spot.function: (spot.calls, spot.own) for spot in functions.hotspots} == {
        "<module>": (1, 0.1),
        "work": (3, 0.4),
    }


def test_interned_texts_of_python_2_are_read(tmp_path: Path) -> None:
    table = {(b"work.py", n, b"f%d" % n): (1, 1, 0.5, 0.5, {}) for n in (1, 2)}
    text = b"\x07\x00\x00\x00work.py"
    first, second, rest = marshal.dumps(table, 2).split(b"s" + text)
    path = tmp_path / "run.prof"
    path.write_bytes(first + b"t" + text + second + b"R\x00\x00\x00\x00" + rest)
    functions = next(one for one in summarize_report(path).profiles if "function" in one.title)
    assert {(spot.function, spot.file) for spot in functions.hotspots} == {
        ("f1", "work.py"),
        ("f2", "work.py"),
    }


def test_a_file_of_pythons_own_profile_is_named(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("sum(range(9))\n")
    words = (sys.executable, "-m", "profile", "-o", "run.prof", "work.py")
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    with pytest.raises(UnreadableReport, match="stores code in it") as caught:
        summarize_report(tmp_path / "run.prof")
    assert "cProfile" in (caught.value.fix or "")


def test_a_pstats_file_of_pyinstrument_is_named_since_it_counts_no_calls(tmp_path: Path) -> None:
    path = tmp_path / "run.pstats"
    path.write_bytes(
        marshal.dumps({ONE: (-1, -1, 0.0, 0.4, {}), TWO: (-1, -1, 0.4, 0.4, {ONE: (-1, -1, 0.4, 0.4)})})
    )
    with pytest.raises(UnreadableReport, match="of pyinstrument, which does not count calls"):
        summarize_report(path)


@pytest.mark.parametrize(
    "content",
    [b"\n" * 65536, b"P1;T1;" * 11_000, b"<svg " * 13_000, b"<?xml" * 13_000, b"----- " * 11_000, b"==1== x\n" * 8_000,
     b'{"traceEvents":[' + b'"name":' * 9_000, b'{"nodes":[' * 6_500, b"\x80\x04device_trace" * 5_000,
     b"CMDLINE " * 8_000,     b"\n/host:" * 9_000, b"[{" + b'"pid":"CPU ' * 5_000, b"Was the 'perf record'\n" * 3_000],
)  # fmt: skip
def test_recognising_takes_no_time_whatever_the_file_is(content: bytes, tmp_path: Path) -> None:
    started = time.process_time()
    explain_foreign(tmp_path / "file", content[:65536])
    assert time.process_time() - started < 1

"""Reports that are text are scrubbed line by line, each by its own format's habits."""

from __future__ import annotations

import gzip
import json
import marshal
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport, UsageError
from profkit.profilers.registry import recognise_format
from profkit.profilers.scrub import scrub_report

SECRET = "Pl4ntedS3cret"
HOME = f"/home/{SECRET}"

NCU_CSV = f'''==PROF== Connected to process 77 ({HOME}/bin/python3)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","gpu__time_duration.sum"
"","","","","","","","ns"
"0","77","{SECRET}","host-{SECRET}","void k<1>(const float *, float *)","1","7","12,800"
==PROF== Disconnected from process 77
'''
CALLGRIND = f"""# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 77
cmd:  {HOME}/bin/python3 train.py --key={SECRET}
part: 1

desc: I1 cache: 32768 B, 64 B, 8-way associative
positions: line
events: Ir
fl=(1) {HOME}/net.c
fn=(1) forward
3 1000
summary: 1000
"""
PERF_STAT = f"""
 Performance counter stats for '{HOME}/bin/python3 train.py --key {SECRET}':

          1,234.50 msec task-clock                #    0.990 CPUs utilized
     3,000,000,000      cycles                    #    2.430 GHz

       1.247000000 seconds time elapsed
"""
PERF_SCRIPT = f"""# hostname : host-{SECRET}
# cmdline : /usr/bin/perf record {HOME}/train.py
python3  77 100.000001:  10101010 cpu-clock:
\t    55d0 forward+0x10 ({HOME}/lib/net.so)
\t    7f10 main+0x20 (/usr/lib/x86_64-linux-gnu/libc.so.6)

"""
EVENTS: list[dict[str, object]] = [
    {"ph": "M", "name": "process_name", "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "args": {"name": "stream 7 "}},
    {"ph": "X", "cat": "kernel", "name": "silu_mul", "dur": 3.5, "args": {}},
    {"ph": "X", "cat": "python_function", "name": f"{HOME}/train.py(12): step"},
]
TORCH = json.dumps(
    {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],
        "hostname": f"host-{SECRET}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1,
        "traceEvents": [{"pid": 7, "tid": 7, "ts": 2, **event} for event in EVENTS],
        "traceName": f"{HOME}/trace.json",
    },
    indent=1,
)
TEXTS = {
    "out.csv": (NCU_CSV, ("void k<1>(const float *, float *)", '"12,800"', '"77"')),
    "callgrind.out.77": (CALLGRIND, ("fn=(1) forward", "3 1000", "/net.c", "cmd:  program", "32768 B")),
    "stat.txt": (PERF_STAT, ("3,000,000,000      cycles", "stats for 'program':")),
    "script.txt": (PERF_SCRIPT, ("forward+0x10", "/net.so)", "/usr/lib/x86_64-linux-gnu/libc.so.6")),
    "trace.json": (TORCH, ('"silu_mul"', '"dur": 3.5', "/train.py(12): step", "stream 7", "NVIDIA H200")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_secrets_go_and_the_measurements_stay(name: str, tmp_path: Path) -> None:
    text, kept = TEXTS[name]
    source, output = tmp_path / name, tmp_path / "clean"
    source.write_text(text)
    removed = scrub_report(source, output)
    clean = output.read_text()
    assert SECRET not in clean
    assert [words for words in kept if words not in clean] == []
    assert removed
    assert SECRET not in str(removed)
    assert recognise_format(output).name == recognise_format(source).name
    assert len(clean.splitlines()) == len(text.splitlines())


def test_a_trace_stays_json_and_compressed(tmp_path: Path) -> None:
    source = tmp_path / "trace.json.gz"
    with gzip.open(source, "wt") as file:
        file.write(TORCH.replace(HOME, HOME.replace("/", "\\/")))
    scrub_report(source, tmp_path / "clean.json.gz")
    with gzip.open(tmp_path / "clean.json.gz", "rt") as file:
        clean = json.load(file)
    assert SECRET not in str(clean)
    assert [event.get("dur") for event in clean["traceEvents"]] == [None, None, 3.5, None]


def test_a_cut_off_archive_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    source = tmp_path / "trace.json.gz"
    source.write_bytes(gzip.compress(TORCH.encode() * 40)[:-60])
    with pytest.raises(UnreadableReport):
        scrub_report(source, tmp_path / "clean")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json.gz"]


BINARY = {
    "x.ncu-rep": (b"NVR\0" + bytes(200), "ncu --import x.ncu-rep --csv"),
    "x.nsys-rep": (b"NVIDIA Tegra Profiler Report" + bytes(200), "nsys stats"),
    "x.sqlite": (b"SQLite format 3\0" + bytes(200), "nsys stats"),
    "perf.data": (b"PERFILE2" + bytes(200), "perf script -i perf.data"),
    "x.prof": (marshal.dumps({("/home/ann/x.py", 1, "f"): (1, 1, 0.5, 0.5, {})}), "python -m pstats x.prof"),
}


@pytest.mark.parametrize("name", BINARY)
def test_a_binary_report_is_refused_with_the_line_that_exports_it_as_text(name: str, tmp_path: Path) -> None:
    content, line = BINARY[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="only text can be scrubbed") as refused:
        scrub_report(tmp_path / name, tmp_path / "clean")
    assert line in str(refused.value.fix)
    assert not (tmp_path / "clean").exists()


def test_a_host_that_one_field_names_goes_wherever_another_repeats_it(tmp_path: Path) -> None:
    """Also before the field that names it, and with it what its command was given."""
    acme = {"host": "trainer-Pl4nted.acme"}
    command = {"cmdline": "t.py --api-key Pl4ntedKey -v"}
    kernel = {"name": "void k<8>(float*)", "cat": "kernel", "pid": 0, "tid": 7, "dur": 1, "args": {}}
    told = [
        {"name": "on trainer-Pl4nted and trainer-Pl4nted.acme", "dur": 1},
        {"name": "Pl4ntedAnn's step in /home/Pl4ntedAnn/x/y.py", "dur": 1},
        kernel,
        {"name": "saw Pl4ntedKey", "args": acme},
        {"name": "x", "args": command},
    ]
    events = [{"ph": "X", "pid": 1, "tid": 1, "ts": number, **event} for number, event in enumerate(told)]
    trace = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}
    source, output = tmp_path / "trace.json", tmp_path / "out.json"
    source.write_text(json.dumps(trace, indent=1))
    scrub_report(source, output)
    text = output.read_text()
    assert "Pl4nted" not in text
    names = [event["name"] for event in json.loads(text)["traceEvents"]]
    assert names[:3] == ["on <host> and <host>", "<user>'s step in /folder-1/y.py", "void k<8>(float*)"]

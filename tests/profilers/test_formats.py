"""The list of formats: complete, and paid for only as far as it is read."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

from profkit.cli.profile import record
from profkit.core.errors import UnreadableReport
from profkit.profilers.profiler import Format
from profkit.profilers.registry import PROFILERS, all_formats, recognise_format


@pytest.mark.parametrize("candidate", tuple(all_formats()), ids=lambda candidate: candidate.name)
def test_every_format_in_the_list_has_a_sniffer_and_a_reader(candidate: Format, tmp_path: Path) -> None:
    assert candidate.looks_like is None or candidate.looks_like(b"neither one nor the other\n") is False
    assert candidate.is_folder is None or candidate.is_folder(tmp_path) is False
    with pytest.raises(UnreadableReport, match="nowhere"):
        candidate.read(tmp_path / "nowhere")
    if candidate.conversion is not None:
        assert candidate.conversion.argv(tmp_path / "in", tmp_path / "out")
    assert candidate.as_text is None or "{name}" in candidate.as_text


@pytest.mark.parametrize("name", PROFILERS)
def test_every_profiler_is_loaded_by_its_name_and_its_formats_are_its_own(name: str) -> None:
    profiler = PROFILERS[name]
    assert profiler.name == name
    assert {form.tool for form in profiler.formats} == {name}


def test_the_help_of_record_names_every_profiler_that_records() -> None:
    options = signature(record).parameters["tool"].annotation
    for profiler in PROFILERS.values():
        assert (profiler.name in str(options)) is (profiler.recorder is not None)


def test_readers_that_come_after_the_one_that_fits_are_not_imported(tmp_path: Path) -> None:
    report = tmp_path / "stat.csv"
    report.write_text("602000000||instructions|101520000|100.00|2.00|insn per cycle\n")
    program = (
        "import sys; from pathlib import Path; from profkit.profilers.registry import recognise_format\n"
        f"print(recognise_format(Path({str(report)!r})).name)\n"
        "print(*(name for name in sys.modules if name.startswith('profkit.profilers.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    name, modules = done.stdout.splitlines()
    assert name == "perf-stat-csv"
    assert "profkit.profilers.perf.stat_csv" in modules.split()
    for later in ("profkit.profilers.perf.script", "profkit.profilers.valgrind.read"):
        assert later not in modules.split()


def test_a_pointer_of_git_lfs_is_told_from_the_report_that_it_stands_for(tmp_path: Path) -> None:
    pointer = tmp_path / "my report.sqlite"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:a1c2af0d\nsize 552960\n")
    with pytest.raises(UnreadableReport, match="pointer of Git LFS") as caught:
        recognise_format(pointer)
    assert caught.value.fix == "git lfs pull --include 'my report.sqlite'"


GONE = {
    "the JSON of perf data convert": '{\n\t"linux-perf-json-version": 1,\n\t"samples": []\n}\n',
    "a printed table of nsys stats": """[6/8] Executing 'cuda_gpu_kern_sum' stats report

 Time (%)  Total Time (ns)  Instances   Avg (ns)     Med (ns)    Min (ns)   Max (ns)   StdDev (ns)  Name
 --------  ---------------  ---------  -----------  -----------  ---------  ---------  -----------  ----
    100.0        3,000,000          2  1,500,000.0  1,500,000.0  1,000,000  2,000,000    707,106.8  add
""",
}


@pytest.mark.parametrize("form", GONE)
def test_a_form_that_is_not_read_is_refused_with_the_forms_that_are(form: str, tmp_path: Path) -> None:
    (tmp_path / "report").write_text(GONE[form])
    with pytest.raises(UnreadableReport, match=r"not a report .* reads: .*nsys SQLite.*perf script"):
        recognise_format(tmp_path / "report")


KNOWN = {
    ("perf report", "perf script -i"): """# Samples: 38  of event 'cpu-clock'
# Event count (approx.): 127946114
#
# Overhead  Command  Shared Object         Symbol
# ........  .......  ....................  ......
#
    97.37%  python3  libpython3.13.so.1.0  [.] _PyEval_EvalFrameDefault
""",
    ("speedscope", "profkit profile"): '{"$schema":"https://www.speedscope.app/file-format-schema.json"}',
    ("pytest-benchmark", "gate --init"): '{\n"machine_info": {},\n"commit_info": {}, "benchmarks": []}',
    ("hyperfine", "compare --a"): '{\n  "results": [\n    {\n      "command": "sleep 0.1"}]}',
    ("cProfile", "-o run.prof"): "         197 function calls (192 primitive calls) in 0.002 seconds\n",
    ("collapsed stacks", "artifacts/"): "main;load;read 12\nmain;work 30\nmain;work;sort 4\n",
    ("UTF-16", "utf8"): '"ID","Process ID"\n'.encode("utf-16"),
    ("gprof", "no -pg"): "Flat profile:\n\nEach sample counts as 0.01 seconds.\n  %   cumulative   self  \n",
    ("profile of gprof", "-pg"): b"gmon\x01\x00\x00\x00" + bytes(20),
    (
        "perf annotate",
        "perf script",
    ): " Percent |\tSource code & Disassembly of w2 for cpu-clock:ppp (538 samples)\n",
    ("massif", "ms_print"): "desc: --massif-out-file=m\ncmd: ./w2\ntime_unit: i\n#-----------\nsnapshot=0\n",
    ("ms_print", "peak of memory"): f"{'-' * 80}\nCommand:            ./w2\nMassif arguments:   --x\n",
    ("GNU time", "profkit profile"): '\tCommand being timed: "./w2"\n\tUser time (seconds): 0.13\n',
    ("scalene", "scalene view"): '{\n    "alloc_samples": 0,\n    "args": [\n        "loop.py"\n    ]}',
    (
        "viztracer",
        "vizviewer",
    ): '{"traceEvents": [{"ph": "M", "pid": 1, "name": "process_name"}, {"pid": 1, "tid": 1, '
    '"ts": 8.3, "ph": "X", "cat": "fee", "dur": 4.047, "name": "time.time"}]}',
    ("Firefox Profiler", "samply"): '{"meta":{"version":27,"preprocessedProfileVersion":49},"threads":[]}',
    (
        "Google Benchmark",
        "compare --a",
    ): '{\n  "context": {\n    "date": "x",\n    "num_cpus": 2}, "benchmarks": []}',
    ("go test", "compare --a"): "goos: linux\ngoarch: amd64\npkg: x\nBenchmarkA-8 1000 1234 ns/op\n",
    ("pprof", "Go"): "File: app\nType: cpu\nShowing nodes accounting for 1.2s, 100% of 1.2s total\n",
    (
        "rocprof",
        "torch.profiler",
    ): '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"k",1,2,2,100\n',
    ("line_profiler", "profkit profile"): b"\x80\x04\x95cline_profiler._line_profiler\nLineStats\n",
}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known[0])
def test_a_file_of_another_tool_is_named_with_the_way_on(known: tuple[str, str], tmp_path: Path) -> None:
    (what, way), text = known, KNOWN[known]
    path = tmp_path / "my report"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UnreadableReport, match=what) as caught:
        recognise_format(path)
    assert way in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("==ERROR== Driver returned UnknownError\n==ERROR== Failed to profile\n", "ncu"),
        ("==4711== Valgrind's memory management: out of memory:\n", "valgrind"),
        ("ERROR UnknownError in payment\n", None),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", None),
        ("Valgrind's neighbour ran out of memory\n", None),
    ],
)
def test_a_log_is_an_error_of_a_tool_only_by_that_tools_own_lines(
    text: str, tool: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "app.log"
    path.write_text(text)
    expected = f"is not a report but an error of {tool}" if tool else "is not a report that profkit can read"
    with pytest.raises(UnreadableReport, match=expected):
        recognise_format(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\n" * 70_000,
        b" " * 70_000,
        b"<!-- x -->" * 7_000,
        b'{"machine_info":' * 5_000,
        b'{"traceEvents"' * 4_600,
        b"{" + b'"meta":{' * 8_000,
        b"requires line_profiler >= 4 and https://www.speedscope.app/file-format-schema.json\n",
    ],
    ids=("lines", "blanks", "comments", "names", "events", "braces", "text about tools"),
)
def test_what_only_looks_like_another_tools_file_is_not_named_and_takes_no_time(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UnreadableReport, match=r"is not a report|pytest-benchmark"):
        recognise_format(path)

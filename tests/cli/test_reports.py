"""`summarize` and `check` on anybody's file: told by its content, and refused in words."""

from __future__ import annotations

import cProfile
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import profkit
from tests.xctrace_tables import duration, export, node, process, text, time

# Name in tests/data/reports -> reading, its value, quality. Values: computed by hand from the files' counts.
RECORDED = [
    ("perf/by-grammar/topdown.stat.csv", "ipc", 0.75, "measured"),
    ("perf/by-grammar/amd-multiplexed.stat.csv", "ipc", 0.6, "multiplexed"),
    ("perf/vm-without-pmu-perf6.1/stat.default.csv", "ipc", None, "unavailable"),
    ("valgrind/callgrind.numpy-sgemm256.roi.out", "cache.l1.miss_rate", None, "simulated"),
]


@pytest.mark.parametrize(("name", "metric", "value", "quality"), RECORDED)
def test_a_recorded_report_reads_as_what_stands_in_it(
    reports: Path, tmp_path: Path, name: str, metric: str, value: float | None, quality: str
) -> None:
    disguised = tmp_path / "some file.bin"
    shutil.copyfile(reports / name, disguised)
    said = profkit("summarize", "--format", "json", disguised, cwd=tmp_path)
    assert said.code == 0
    reading = _reading(said.json(), metric)
    assert reading["quality"] == quality
    if value is not None:
        assert reading["value"] == pytest.approx(value, rel=1e-6)


def _reading(document: Any, metric: str) -> Any:
    return next(
        r
        for r in document["readings"]
        if r["metric"] == metric and r["scope"]["kind"] == "run" and r["scope"]["id"] is None
    )


def test_what_a_report_says_of_itself_is_told_once(tmp_path: Path) -> None:
    with cProfile.Profile() as profile:
        sorted(range(9), key=lambda n: -n)
    profile.dump_stats(tmp_path / "output.prof")
    done = profkit("summarize", "output.prof", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.count("functions: ") == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "not a report that profkit can read"),
        (b"hello\nworld\n", "not a report that profkit can read"),
        (b'{"some": "json"}', "not a report that profkit can read"),
        (b"\xff\xfe\x00" * 500, "not a report that profkit can read"),
        (b"events: Ir\n", None),
        (b'{"schema": "profkit.run/6", "state": ', None),
        (b"PERFILE2" + bytes(20), None),
    ],
)
def test_a_file_that_is_no_report_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, says: str | None
) -> None:
    (tmp_path / "file").write_bytes(content)
    said = profkit("summarize", "file", cwd=tmp_path)
    assert said.code in (2, 3)
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert says is None or says in said.err


def test_check_fails_with_1_where_a_target_fails_and_with_5_where_strict_meets_an_unknown(
    tmp_path: Path,
) -> None:
    good = "1000,,cycles,100,100.00,,\n3000,,instructions,100,100.00,,\n"
    (tmp_path / "good.csv").write_text(good)
    (tmp_path / "slow.csv").write_text(good.replace("3000", "300"))
    (tmp_path / "only.yaml").write_text(
        "targets:\n"
        + "".join(f"  {name}: off\n" for name in json.loads(_defaults(tmp_path)) if name != "ipc")
    )
    options = ("--targets", "only.yaml")
    assert profkit("check", "good.csv", *options, cwd=tmp_path).code == 0
    assert profkit("check", "good.csv", "--strict", *options, cwd=tmp_path).code == 0
    assert profkit("check", "slow.csv", *options, cwd=tmp_path).code == 1
    assert profkit("check", "good.csv", cwd=tmp_path).code == 0
    assert profkit("check", "good.csv", "--strict", cwd=tmp_path).code == 5


def _defaults(folder: Path) -> str:
    """The names of the targets that speak of such a report."""
    document = profkit("check", "good.csv", "--format", "json", cwd=folder).json()
    return json.dumps([verdict["target"] for verdict in document["verdicts"]])


STATES, INTERVALS = "metal-gpu-state-intervals", "metal-gpu-intervals"
TOC = f"""<?xml version="1.0"?><trace-toc><run number="1"><info><target><process name="train" pid="7"/></target>
<summary><duration>1.5</duration><template-name>Metal System Trace</template-name></summary></info>
<data><table schema="{STATES}"/><table schema="{INTERVALS}"/></data></run></trace-toc>"""
SPAN = (("start", "start-time"), ("duration", "duration"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toc.xml").write_text(TOC)
    states = [
        [time(n * 1000), duration(1000), text("gpu-state", ("Active", "Idle")[n % 2])] for n in range(100)
    ]
    (tmp_path / "states.xml").write_bytes(export(node(STATES, (*SPAN, ("state", "gpu-state")), states)))
    work = [[time(n * 1000), duration(400), process("train", 7)] for n in range(100)]
    (tmp_path / "work.xml").write_bytes(
        export(node(INTERVALS, (*SPAN, ("process", "process")), work, position=2))
    )
    return tmp_path


@pytest.mark.parametrize(
    ("file", "what", "tells"),
    [
        ("toc.xml", "only a table of contents", "Metal System Trace"),
        ("states.xml", "only one table", "50.0 %"),
        ("work.xml", "only one table", "keeps the GPU busy 40.2 %"),
    ],
)
def test_a_file_alone_is_told_as_one(folder: Path, file: str, what: str, tells: str) -> None:
    said = profkit("summarize", file, cwd=folder)
    assert said.code == 0
    words = " ".join(said.out.split())
    assert words.count(what) == 1
    assert tells in words


def test_its_json_and_its_check_tell_all_that_is_not_there(folder: Path) -> None:
    told = profkit("summarize", "toc.xml", "--format", "json", cwd=folder).json()
    assert {one["verdict"] for one in told["verdicts"]} == {"unknown"}
    assert "UNKNOWN" in profkit("check", "toc.xml", cwd=folder).out


def test_a_folder_is_told_as_a_whole(folder: Path) -> None:
    said = profkit("summarize", ".", cwd=folder).out
    assert "UNKNOWN" in said

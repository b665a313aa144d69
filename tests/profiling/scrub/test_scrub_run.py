"""A run's folder is scrubbed: every file is scrubbed or left out, and the copy is a run that can be read and judged."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.run_folder import read_run, run_from_json, write_run
from profkit.core.types import (
    Fact,
    GpuTrace,
    Insight,
    Lane,
    MarkLabel,
    PassPlan,
    PassResult,
    Plan,
    ProgramWarning,
    Step,
    Timeline,
    Workload,
)
from profkit.profilers.redact import Redactor
from profkit.profiling.scrub import ScrubResult, scrub, scrub_document
from profkit.profiling.summarize import summarize_report
from tests.cli_runner import profkit
from tests.documents import document
from tests.profilers.ncu.writer import KernelResult, simple
from tests.profiling.scrub.test_scrub_text import NCU_CSV
from tests.spoken import spoken

SECRET = "Pl4ntedS3cret"
HOME = f"/home/{SECRET}"
COMMAND = ("python", f"{HOME}/my net/train.py", f"--key={SECRET}", "--size", "64", f"word-{SECRET}")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "20261120-gated_mlp-cuda"
    for name in ("artifacts", "logs"):
        (folder / name).mkdir(parents=True)
    step = Step(
        "counters",
        ("ncu", "-o", f"{HOME}/runs/counters", "sh", "-c", 'exec "$@"', "sh", *COMMAND),
        env={"TMPDIR": f"{HOME}/tmp"},
    )
    done = PassResult(
        "counters",
        "ncu",
        "finished",
        artifacts=("artifacts/counters.ncu-rep", "artifacts/counters.csv", "artifacts/trace.nsys-rep"),
        log="logs/counters.log",
    )
    whole = replace(
        document(),
        workload=Workload(COMMAND, "gated_mlp", f"{HOME}/my net", f"{HOME}/.venv/bin/python"),
        plan=Plan("cuda", "standard", (PassPlan("counters", "ncu", (step,)),)),
        passes=(done,),
        notes=(Fact.message(f"read from {HOME}/runs/x.csv"),),
    )
    write_run(folder, whole)
    (folder / "report.md").write_text(f"`{' '.join(COMMAND)}`")
    (folder / "report.html").write_text(" ".join(COMMAND))
    (folder / "logs" / "counters.log").write_text(f"epoch 1 {SECRET}")
    artifacts = folder / "artifacts"
    kernel = KernelResult("silu_mul(float *)", {"gpu__time_duration.sum": 12800.0})
    (artifacts / "counters.ncu-rep").write_bytes(
        simple([kernel], command=f"ncu -o x -- python3 {HOME}/train.py --key={SECRET}")
    )
    (artifacts / "counters.csv").write_text(NCU_CSV)
    (artifacts / "trace.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report" + SECRET.encode() * 9)
    with closing(sqlite3.connect(artifacts / "trace.sqlite")) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT)")
        base.execute("INSERT INTO StringIds VALUES (1, 'silu_mul'), (2, ?)", (f"KEY={SECRET}",))
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1)")
        base.commit()
    (artifacts / "trace.speedscope.json").write_text(f"main;step ({HOME}/my net/train.py:12) 40\n")
    (artifacts / "timing-1.77.json").write_text(
        json.dumps({"schema": "profkit.region/2", "pid": 77, "regions": []})
    )
    (artifacts / "counters.status").write_text("0\n")
    (artifacts / "timing-2.78.json").write_bytes(b"\x1f\x8b\x08\0damaged")
    (artifacts / "notes of mine.txt").write_text(f"remember {SECRET}")
    (artifacts / "core.dump").write_bytes(b"\x7fELF" + SECRET.encode())
    (folder / ".hidden").write_text(SECRET)
    (artifacts / "link").symlink_to(folder / ".hidden")
    return folder


def everything(folder: Path) -> bytes:
    names = "\n".join(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return names.encode() + b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_no_planted_secret_is_left_in_any_file(run: Path) -> None:
    assert everything(run).count(SECRET.encode()) > 25
    done = scrub(run)
    assert SECRET.encode() not in everything(done.output)
    assert SECRET not in str(done.removed)
    assert done.output == run.with_name(f"{run.name}-scrubbed")


def test_the_copy_is_a_run_with_the_same_readings_and_verdicts(run: Path) -> None:
    before, after = read_run(run), read_run(scrub(run).output)
    for part in ("name", "backend", "state", "readings", "timings", "machine", "peaks", "tools"):
        assert getattr(after, part) == getattr(before, part), part
    assert after.workload.name == "gated_mlp"
    command = ("python", "train.py", "--key=[masked]", "--size", "64", "[masked]")
    assert after.workload.command == command
    assert [verdict.verdict for verdict in summarize_report(run).verdicts] == [
        verdict.verdict for verdict in summarize_report(run.with_name(f"{run.name}-scrubbed")).verdicts
    ]


def test_what_cannot_be_scrubbed_is_left_out_and_named_with_the_way_round(run: Path) -> None:
    done: ScrubResult = scrub(run)
    left = {one.name: one for one in done.left_out}
    assert set(left) == {
        ".hidden",
        "artifacts/core.dump",
        "artifacts/timing-2.78.json",
        "artifacts/link",
        "artifacts/notes of mine.txt",
        "artifacts/trace.nsys-rep",
        "artifacts/trace.sqlite",
        "artifacts/counters.ncu-rep",
        "logs/counters.log",
    }
    assert "nsys stats" in str(left["artifacts/trace.nsys-rep"].fix)
    assert "ncu --import counters.ncu-rep --csv" in str(left["artifacts/counters.ncu-rep"].fix)
    assert "may be anything" in spoken(left["logs/counters.log"].reason)
    kept = {path.relative_to(done.output).as_posix() for path in done.output.rglob("*") if path.is_file()}
    assert kept == {
        "run.json",
        "report.html",
        "report.md",
        "artifacts/counters.csv",
        "artifacts/trace.speedscope.json",
        "artifacts/timing-1.77.json",
        "artifacts/counters.status",
    }
    [listed] = read_run(done.output).passes
    assert (listed.artifacts, listed.log) == (("artifacts/counters.csv",), None)


def test_nothing_is_overwritten_and_nothing_is_put_into_the_run(run: Path) -> None:
    done = scrub(run)
    report = run / "artifacts" / "counters.csv"
    for source, output, says in (
        (run, None, "exists already"),
        (run, run / "artifacts" / "copy", "is inside the run"),
        (run, run.parent / "absent" / "copy", "no folder"),
        (report, report, "exists already"),
    ):
        with pytest.raises(UsageError, match=says):
            scrub(source, output)
    assert done.output.is_dir()


def test_a_run_that_cannot_be_read_leaves_no_copy(run: Path) -> None:
    (run / "run.json").write_text('{"schema": "profkit.run/6", "workload": 3')
    with pytest.raises(UnreadableReport):
        scrub(run)
    assert not run.with_name(f"{run.name}-scrubbed").exists()


def test_it_lists_what_was_taken_out_and_the_secret_is_not_in_the_list(run: Path) -> None:
    said = profkit("scrub", run / "artifacts" / "counters.csv", "-o", "public copy.csv", cwd=run.parent)
    assert said.code == 0, said.err
    assert "Scrubbed copy: public copy.csv" in said.out
    assert "host name: 1" in said.out
    assert "Look at it" in said.out
    assert SECRET not in said.out + said.err
    assert (run.parent / "public copy.csv").stat().st_size > 0


def test_json_is_one_document(run: Path) -> None:
    said = profkit("scrub", run, "--format", "json", cwd=run.parent)
    assert said.code == 0, said.err
    told = said.json()
    assert told["schema"] == "profkit.scrub/3"
    assert {"kind", "count"} == set(told["removed"][0])
    assert any(left["name"] == "artifacts/trace.nsys-rep" for left in told["left_out"])
    assert SECRET not in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("empty",), "is empty"),
        (("folder",), "no run.json"),
        (("foreign",), "not a report that profkit can read"),
        (("good.ncu-rep",), "only text can be scrubbed"),
        (("x.nsys-rep",), ".nsys-rep"),
        (("good.csv", "-o", "good.csv"), "exists already"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    good = simple([KernelResult("k()", {"gpu__time_duration.sum": 1.0})])
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "foreign").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "good.csv").write_text(NCU_CSV)
    (tmp_path / "good.ncu-rep").write_bytes(good)
    (tmp_path / "x.nsys-rep").write_bytes(b"CDMF" + b"QuadD\0NVIDIA Nsight Systems report" * 20)
    before = sorted(path.name for path in tmp_path.iterdir())
    said = profkit("scrub", *arguments, cwd=tmp_path)
    assert said.code == 2, said.err
    assert says in said.err
    assert "Traceback" not in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_what_a_library_warned_of_goes_as_all_that_a_program_prints() -> None:
    text = "Columns (Ada Lovelace, 4711) have mixed types. Rows of Ada Lovelace are slow."
    told = Insight(
        "own-warning",
        "This line gets a DtypeWarning: " + text.partition(". ")[0],
        "",
        text.partition(". ")[2],
    )
    warned = replace(
        document(), warnings=(ProgramWarning("/app/work.py", 3, "DtypeWarning", text),), insights=(told,)
    )
    scrubbed = scrub_document(warned, Redactor())
    assert scrubbed["warnings"] == []
    assert "Lovelace" not in json.dumps(scrubbed)
    assert scrubbed["insights"][0]["title"].startswith("This line gets a DtypeWarning: ")


def test_a_timeline_keeps_its_times_and_names_of_kernels_and_no_folder() -> None:
    kernel = MarkLabel(
        "kernel", "void gemm<float>(int)", shape="1x1x1 of 32x1x1", file="/home/anna/model/train.py", line=9
    )
    line = MarkLabel("python", "step", "socket.recv", file="/home/anna/model/data.py", line=3)
    lanes = (Lane("thread", (0, 5), (4, 2), (0, 1), name="reader of /home/anna/secret.csv"),)
    whole = document()
    trace = GpuTrace("nsys", (), timeline=Timeline("step", 0.0, 1e-8, 1.0, (kernel,), lanes[:0]))
    run = replace(whole, trace=trace, timeline=Timeline("threads", 0.0, 1e-8, 1e-8, (kernel, line), lanes))
    scrubbed = scrub_document(run, Redactor())
    assert "anna" not in str(scrubbed)
    shown = run_from_json(scrubbed)
    assert shown.timeline is not None
    assert (shown.timeline.lanes[0].starts, shown.timeline.lanes[0].lengths) == ((0, 5), (4, 2))
    assert [label.name for label in shown.timeline.labels] == ["void gemm<float>(int)", "step"]
    assert str(shown.timeline.labels[1].file).endswith("data.py")

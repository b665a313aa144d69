"""Faults on the way of a run on a GPU, as a user meets them: by the command line, with stand-ins for driver and tools.

Whatever happens: the exit code of the contract, no traceback, a whole run.json by the schema, a reason and a line that
mends it for what could not be done, and no target that needs counters is kept where nothing was counted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli_runner import ENVIRONMENT, PROFKIT, Said, profkit, runs

from profkit.hardware import nvml
from tests import schemas
from tests.conftest import ROOT
from tests.cuda_stand_in import nvidia as nvidia
from tests.spoken import spoken_notes
from tests.what_comes_back import check_all_comes_back

pytestmark = pytest.mark.usefixtures("no_page")

DATA = ROOT / "tests" / "data" / "cuda"
STAND_INS = ROOT / "tests" / "stand_ins"
REPORT, TRACE = DATA / "ncu" / "truths.gate.ncu-rep", DATA / "nsys" / "truths.sqlite"
QUICK = (
    "--backend", "cuda", "--depth", "gate", "--sampling", "0.1", "--precision", "0.4", "--format", "json",
)  # fmt: skip
PROFILED = ("--passes", "trace,counters")  # where times tell nothing
MARKED = """
import json, os, sys, time
import profkit
profkit.benchmark(lambda: sum(n * n for n in range(2000)), name="truths")
PASS = json.loads(os.environ["PROFKIT_DIRECTIVE"])["pass_name"]
"""
# Between the caller and the stand-in: what it is called with is in `argv`, where it is to write in `output`.
AROUND = """#!{python} -IS
import os, signal, subprocess, sys, time
argv = sys.argv[1:]
def run():
    return subprocess.run([{stand_in!r}, *argv]).returncode
output = next((argv[i + 1] for i, word in enumerate(argv) if word in ("-o", "--export")), None)
output = output or next((word[9:] for word in argv if word.startswith("--output=")), "")
if argv == ["--version"] or "profkit-probe" in output or argv[0] == "export" and {export}:
    sys.exit(run())
{body}
"""


@dataclass
class Bench:
    """A folder with a workload in it, and an environment that shows one H200 with nsys and ncu."""

    folder: Path
    env: dict[str, str]

    def tool(self, name: str, body: str | None = None, **scenario: Any) -> None:
        """What nsys or ncu does: by its scenario, or by Python around its stand-in."""
        recorded = {"report": str(REPORT)} if name == "ncu" else {"sqlite": str(TRACE)}
        (self.folder / f"{name}.json").write_text(json.dumps({**recorded, **scenario}))
        self.env[f"{name.upper()}_SCENARIO"] = str(self.folder / f"{name}.json")
        self.env[f"PROFKIT_{name.upper()}"] = str(STAND_INS / name)
        if body is not None:
            program = self.folder / f"{name} of ours"
            stand_in, body = str(STAND_INS / name), textwrap.dedent(body)
            program.write_text(
                AROUND.format(
                    python=sys.executable, stand_in=stand_in, body=body, export="export" not in body
                )
            )
            program.chmod(0o755)
            self.env[f"PROFKIT_{name.upper()}"] = str(program)

    def profile(self, *options: str, program: str = MARKED, command: tuple[str, ...] = ()) -> Said:
        """A run by the command line; whatever becomes of it, it is told well."""
        (self.folder / "w.py").write_text(program)
        command = command or (sys.executable, str(self.folder / "w.py"))
        said = profkit("profile", *QUICK, *options, "--", *command, cwd=self.folder, env=self.env)
        assert "Traceback" not in said.err
        assert said.code in (0, 1, 2, 3, 4, 5, 130), said.err
        assert "\x1b" not in said.err
        assert said.json()
        for left in (self.folder / "reports").glob("*/"):
            check_all_comes_back(left)
        for run in runs(self.folder / "reports"):
            _validator().validate(run)
            assert run["state"] != "running"
            for done in run["passes"]:
                assert done["state"] == "finished" or (str(done["reason"]) and done["fix"]), done
        return said


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schemas.run())


@pytest.fixture
def bench(tmp_path: Path, nvidia: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(nvml, "LIBRARIES", (str(nvidia / "libnvidia-ml.so.1"),))  # of this process
    made = Bench(tmp_path, {"LD_LIBRARY_PATH": str(nvidia), "TRITON_CACHE_AUTOTUNING": "1"})
    made.tool("nsys")
    made.tool("ncu")
    return made


def _of(run: Any, name: str) -> Any:
    return next(done for done in run["passes"] if done["name"] == name)


def _counted(run: Any) -> set[str]:
    """How targets that need counters were judged."""
    free = {"gpu-busy", "copies", "time-precision", "no-leak"}
    return {verdict["verdict"] for verdict in run["verdicts"] if verdict["target"] not in free}


# ---------------------------------------------------------------- ncu

PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
)
CUT = "status = run()\nos.truncate(output, int(os.path.getsize(output) * {}))\nsys.exit(status)"
NCU: dict[str, tuple[Callable[[Bench], None], str]] = {
    "is not there": (lambda b: b.env.update(PROFKIT_NCU="/nowhere/ncu"), "PROFKIT_NCU=/nowhere/ncu"),
    "may not count": (lambda b: b.tool("ncu", text=PERMISSION, report=None, status=1), "administrators"),
    "saw other names, one with an escape": (
        lambda b: b.tool("ncu", report=None, after="Available Kernels:\n1. other\x1b[31m(int)\n"),
        "ncu saw other",
    ),
    "crashes": (lambda b: b.tool("ncu", "os.kill(os.getpid(), signal.SIGSEGV)"), "ncu was killed by SIGSEGV"),
    "ends the program": (lambda b: b.tool("ncu", "sys.exit(139)"), "ended-by-tool"),  # as it does with JAX 0.11
    "leaves a part of a report": (lambda b: b.tool("ncu", CUT.format(0.05)), "cut off"),
    "leaves the report of another workload": (
        lambda b: b.tool("ncu", report=str(DATA / "ncu" / "hostbound.nvtx.ncu-rep")),
        "none of the planned kernels",
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("fault", NCU)
def test_where_ncu_fails_the_trace_is_told_and_no_target_is_kept(bench: Bench, fault: str) -> None:
    prepare, reason = NCU[fault]
    prepare(bench)
    said = bench.profile("--strict", *PROFILED)
    run = said.json()
    assert (said.code, run["state"]) == (5, "complete")
    assert _of(run, "trace")["state"] == "finished"
    assert reason in str(_of(run, "counters")["reason"])
    assert _counted(run) == {"unknown"}


def test_an_ncu_that_hangs_is_ended_in_time(bench: Bench) -> None:
    bench.tool("ncu", "signal.signal(15, signal.SIG_IGN)\ntime.sleep(60)")
    begin = time.monotonic()
    run = bench.profile("--timeout", "4", *PROFILED).json()
    assert time.monotonic() - begin < 30
    assert "took more than 4 s and was ended" in str(_of(run, "counters")["reason"])
    assert _counted(run) == {"unknown"}


@pytest.mark.thorough
def test_kernels_that_were_not_counted_are_not_said_to_pass(bench: Bench) -> None:
    bench.tool("ncu", CUT.format(0.75))  # the file holds some of the planned kernels, and ends in the next
    run = bench.profile(*PROFILED).json()
    assert any("cut off" in note for note in spoken_notes(run))
    assert any("did not appear under ncu" in note for note in spoken_notes(run))
    whole = {v["target"]: v["verdict"] for v in run["verdicts"] if v["scope"]["kind"] == "run"}
    assert "pass" not in {whole[target] for target in ("occupancy", "warp-efficiency", "bank-conflicts")}


# ---------------------------------------------------------------- nsys, and torch's profiler after it

NSYS: dict[str, tuple[Callable[[Bench], None], str]] = {
    "is not there": (lambda b: b.env.update(PROFKIT_NSYS="/nowhere"), "PROFKIT_NSYS=/nowhere"),
    "lacks its importer": (
        lambda b: b.tool("nsys", report=False, text="Importer error status: skipping importation of the QDSTRM file"),
        "importer is missing",
    ),
    "cannot export": (lambda b: b.tool("nsys", sqlite=None), "could not export"),
    "exports another database": (lambda b: b.tool("nsys", sqlite=str(b.folder / "other")), "not an export of nsys"),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("fault", NSYS)
def test_where_nsys_fails_the_reason_is_told_and_every_kernel_is_counted(bench: Bench, fault: str) -> None:
    import sqlite3

    with sqlite3.connect(bench.folder / "other") as other:
        other.execute("CREATE TABLE a(b)")
    prepare, reason = NSYS[fault]
    prepare(bench)
    said = bench.profile(*PROFILED)
    run = said.json()
    traces = [done for done in run["passes"] if done["name"] == "trace"]
    assert said.code == 0
    assert {done["state"] for done in traces} == {"failed"}
    assert reason in str(traces[0]["reason"])
    assert _of(run, "counters")["state"] == "finished"
    assert any("each was counted at one launch" in note for note in spoken_notes(run))
    assert run["insights"] == []


# ---------------------------------------------------------------- driver and devices

DEVICES = {
    "none": ({"STAND_IN_GPUS": "0"}, "no NVIDIA GPU"),
    "a lost one": ({"STAND_IN_LOST": "15"}, "a GPU or its driver does not answer"),
    "none that is visible": ({"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES=(empty)"),
}


@pytest.mark.parametrize("fault", DEVICES)
def test_without_a_device_that_can_be_used_nothing_runs(bench: Bench, fault: str) -> None:
    more, reason = DEVICES[fault]
    bench.env |= more
    said = bench.profile()
    assert (said.code, said.json()["error"]["exit_code"]) == (3, 3)
    assert reason in said.json()["error"]["message"]
    assert said.json()["error"]["fix"]
    assert not (bench.folder / "reports").exists()


# ---------------------------------------------------------------- the workload

ENDINGS = {
    "ends with 3 under ncu": ("if PASS == 'counters': sys.exit(3)", {"counters": "exited with 3"}),
    "kills itself under nsys": (
        "if PASS == 'trace': os.kill(os.getpid(), 9)",
        {"trace": "was killed by SIGKILL"},
    ),
    "leaves without an end under both": ("if PASS != 'timing': os._exit(0)", {}),
    "leaves a child behind": ("if os.fork() == 0:\n    os.setsid(); time.sleep(60)", {}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ENDINGS)
def test_however_the_workload_ends_what_was_seen_is_kept(bench: Bench, ending: str) -> None:
    code, faults = ENDINGS[ending]
    said = bench.profile(program=f"{MARKED}\n{code}\n")
    run = said.json()
    assert (said.code, run["state"]) == (0, "complete")
    assert run["trace"]["kernels"]
    for done in run["passes"]:
        reason = faults.get(done["name"])
        assert (done["state"] == "finished") is (reason is None)
        assert reason is None or reason in str(done["reason"])


@pytest.mark.thorough
@pytest.mark.parametrize("under", ["trace", "counters"])
def test_ctrl_c_under_a_profiler_keeps_what_was_finished(bench: Bench, under: str) -> None:
    mark = bench.folder / "there"
    (bench.folder / "w.py").write_text(
        f"{MARKED}\nif PASS == {under!r}:\n    open({str(mark)!r}, 'w').close()\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [*PROFKIT, "profile", *QUICK, "--", sys.executable, "w.py"],
        cwd=bench.folder,
        env={**ENVIRONMENT, **bench.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    run = json.loads(out)
    assert (process.returncode, run["state"]) == (130, "interrupted"), err
    assert _of(run, under)["state"] == "interrupted"
    assert _of(run, "timing")["state"] == "finished"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be under sudo")
def test_under_sudo_the_run_is_the_callers(bench: Bench) -> None:
    bench.env |= {"SUDO_UID": "65534", "SUDO_GID": "65534"}
    assert bench.profile("--passes", "timing", "--output", "reports").code == 0
    made = [bench.folder / "reports", *(bench.folder / "reports").rglob("*")]
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in made} == {(65534, 65534)}
    assert (bench.folder / "w.py").stat().st_uid == 0


# ---------------------------------------------------------------- reports that mean harm


def _bomb(path: Path, head: bytes, unit: bytes, size: int) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(packer.compress(head))
        for _ in range(size // len(unit)):
            file.write(packer.compress(unit))
        file.write(packer.flush())


def _sparse(path: Path, head: bytes) -> None:
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 30)


KINETO = b'{"schemaVersion":1,"traceEvents":['
HARMFUL: dict[str, Callable[[Path], None]] = {
    "an archive of blanks": lambda path: _bomb(path, KINETO, b" " * (1 << 22), 128 << 20),
    "an archive of keys": lambda path: _bomb(
        path, b'{"schemaVersion":1,"traceEvents":[],', b"".join(b'"%d":1,' % i for i in range(1 << 18)), 1 << 24
    ),
    "a line of gigabytes": lambda path: _sparse(path, b'"ID","Process ID","Process Name","Kernel Name"\n"'),
    "gigabytes of zeros instead of results": lambda path: _sparse(path, REPORT.read_bytes()[:5000]),
    "a pipe": os.mkfifo,
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("harm", HARMFUL)
def test_a_report_that_means_harm_is_refused_in_seconds_with_little_memory(tmp_path: Path, harm: str) -> None:
    HARMFUL[harm](tmp_path / "report")
    limited = ("prlimit", f"--as={3 << 30}") if os.path.exists("/usr/bin/prlimit") else ()
    done = subprocess.run(
        [*limited, *PROFKIT, "summarize", "report", "--format", "json"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["error"]["exit_code"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["report"]

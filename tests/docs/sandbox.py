"""A folder in which what the pages show can be typed as it stands: small files under the names that the pages use.

A page that names something new gets it here: `FILES` by copying, or in `furnish`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from profkit.run import write_run
from tests.conftest import ROOT
from tests.reports.test_renderers import judged

DATA = ROOT / "tests" / "data"
NCU, NSYS = DATA / "cuda" / "ncu" / "truths.gate.ncu-rep", DATA / "cuda" / "nsys" / "truths.sqlite"
# Under the names of the pages what was recorded; placeholders in capitals are names, too.
FILES = {
    "out.ncu-rep": NCU,
    "kernels.ncu-rep": NCU,
    "trace.sqlite": NSYS,
    "out.sqlite": NSYS,
    "callgrind.out.4711": DATA / "valgrind" / "kernels.l2.callgrind",
    "perf.txt": DATA / "perf" / "script.two-events.txt",
    "REPORT": DATA / "valgrind" / "kernels.l2.callgrind",
    "FILE": DATA / "valgrind" / "kernels.l2.callgrind",
}
RUNS = ("RUN", "reports/20261120-054700-train-cpu", "reports/20261120-054700-gated_mlp-cpu")
# A workload that takes any arguments and as long as it always takes: its time is known after a few entries, however
# busy the machine is. What the GPU's tools tell of it was recorded elsewhere.
WORKLOAD = """import time
import profkit
for _ in range(5):
    with profkit.region("training step"):
        time.sleep(0.05)
"""
TARGETS = "targets:\n  ipc: off\n"
# What shell lines on the pages call beside profkit. perf and valgrind are left out: their passes are tested elsewhere,
# and each probe of them costs a second.
PROGRAMS = (
    "bash",
    "sh",
    "env",
    "cat",
    "ls",
    "mkdir",
    "rm",
    "cp",
    "mv",
    "head",
    "tail",
    "grep",
    "sed",
    "date",
    "git",
    "uname",
)


@dataclass(frozen=True)
class Sandbox:
    """The folder, and the environment in which its commands run."""

    folder: Path
    env: dict[str, str]

    def without(self, name: str) -> None:
        """Take a file away: a command that is going to write it would find it there."""
        if (self.folder / name).is_file():
            (self.folder / name).unlink()

    def type(self, line: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """What a shell makes of the line."""
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )


def furnish(folder: Path, libraries: Path | None = None) -> Sandbox:
    """Everything in `folder`. `libraries` holds stand-ins for NVIDIA's driver: with them there is an H200."""
    work, home = folder / "work", folder / "home"
    for made in (work / "benchmark", work / "reports", home / "bin", home / "tmp"):
        made.mkdir(parents=True)
    for name in ("train.py", "benchmark/gated_mlp.py", "your_script.py"):
        (work / name).write_text(WORKLOAD)
    (work / "ours.yaml").write_text(TARGETS)
    (work / "targets.yaml").write_text(TARGETS)
    for name, source in FILES.items():
        shutil.copy(source, work / name)
    for name in RUNS:
        write_run(work / name, judged())
    (work / "out.nsys-rep").write_bytes(b"a stand-in's report")
    _hide(home / "hidden", "torch", *(() if libraries is not None else ("numpy",)))
    (home / "bin" / "COMMAND").write_text(f"#!{sys.executable}\n{WORKLOAD}")
    (home / "bin" / "COMMAND").chmod(0o755)
    for program in PROGRAMS:
        (home / "bin" / program).symlink_to(shutil.which(program) or "/bin/false")
    env = {
        "HOME": str(home),
        "PATH": f"{home / 'bin'}:{Path(sys.executable).parent}",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
        "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
        "PROFKIT_VALGRIND": "/nowhere/valgrind",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONPATH": str(home / "hidden"),
    }
    return Sandbox(work, env | (_gpu(home, libraries) if libraries is not None else {}))


def _hide(folder: Path, *libraries: str) -> None:
    """Libraries that take seconds where they are: the peaks of every run on the CPU, torch of every doctor."""
    for library in libraries:
        (folder / library).mkdir(parents=True)
        said = f"there is no {library} in this sandbox"
        (folder / library / "__init__.py").write_text(f"raise ImportError({said!r})\n")


def _gpu(home: Path, libraries: Path) -> dict[str, str]:
    env = {"LD_LIBRARY_PATH": str(libraries), "TRITON_CACHE_AUTOTUNING": "1"}
    for name, told in (("ncu", {"report": str(NCU)}), ("nsys", {"sqlite": str(NSYS)})):
        scenario = home / f"{name}.json"
        scenario.write_text(json.dumps(told))
        env[f"{name.upper()}_SCENARIO"] = str(scenario)
        (home / "bin" / name).symlink_to(ROOT / "tests" / "stand_ins" / name)
    (home / "bin" / "python3").symlink_to(sys.executable)
    return env

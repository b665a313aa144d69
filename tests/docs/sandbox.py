"""A folder in which what the pages show can be typed as it stands: small files under the names that the pages use.

A page that names something new gets it here: `FILES` by copying, or in `furnish`.
"""

from __future__ import annotations

import cProfile
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from profkit.core.run_folder import write_run
from profkit.core.types import RunDocument, SampleSet
from profkit.regression.history import open_history
from profkit.regression.history.actions import entry_at
from tests import documents
from tests.cli_runner import call_in_process
from tests.conftest import ROOT
from tests.reporting.test_renderers import judged

DATA = ROOT / "tests" / "data"
NCU, NSYS = DATA / "cuda" / "ncu" / "truths.gate.ncu-rep", DATA / "cuda" / "nsys" / "truths.sqlite"
# What was recorded, under the names that the pages use; a name in capitals stands for a file of the reader's own.
FILES = {
    "out.ncu-rep": NCU,
    "kernels.ncu-rep": NCU,
    "trace.sqlite": NSYS,
    "out.sqlite": NSYS,
    "callgrind.out.4711": DATA / "valgrind" / "kernels.l2.callgrind",
    "trace.json.gz": DATA / "cuda" / "torch" / "torch.cpu.json.gz",
    "raw.csv": DATA / "cuda" / "ncu.truths.raw.base-units.csv",
    "details.csv": DATA / "cuda" / "ncu.scale.details.csv",
    "cuda_gpu_kern_sum.csv": DATA / "cuda" / "nsys" / "stats" / "hostbound_cuda_gpu_kern_sum.csv",
    "perf.txt": DATA / "perf" / "script.two-events.txt",
    "REPORT": DATA / "valgrind" / "kernels.l2.callgrind",
    "FILE": DATA / "valgrind" / "kernels.l2.callgrind",
}
RUNS = (
    "RUN",
    "BASELINE",
    "CANDIDATE",
    "reports/20261120-054700-train-cpu",
    "reports/20261120-054700-gated_mlp-cpu",
)
# A workload that takes any arguments and as long as it always takes: its time is known after a few entries, however
# busy the machine is. What the GPU's tools tell of it was recorded elsewhere.
WORKLOAD = """import time
import profkit
for _ in range(5):
    with profkit.region("training step"):
        time.sleep(0.05)
"""
TARGETS = "targets:\n  ipc: off\n"
KERNELS = "targets:\n  correct: {metric: operations.correct, at_least: 100}\n"
# A nightly whose nights are over at once, in the place of a file that a page has its reader fill.
NIGHTLY = """version: 1
defaults: {backend: cpu, depth: gate, passes: [timing]}
workloads:
  - {name: train, command: [python, train.py]}
paired: never
"""
CONFIGS = ("nightly.yaml", "CONFIG.yaml")
# What starts nothing and has nothing for a shell to expand is called in the process of the tests; so is what has a
# comment behind it, which a shell leaves away.
PLAIN = re.compile(
    r"profkit (?:(?:summarize|check|report|compare|history|scrub|nightly --plan|profile --plan(?!.*(?:cuda|mps)))"
    r" [\w ./:,%+\"-]*|nightly --example)(?: +#.*)?"
)
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

    def type(self, line: str, timeout: float = 180) -> subprocess.CompletedProcess[str]:
        """What a shell makes of the line. Before a night runs, its reader has put small workloads into the file."""
        for name in CONFIGS:
            if f"profkit nightly {name}" in line:
                (self.folder / name).write_text(NIGHTLY)
        if PLAIN.fullmatch(line):
            said = call_in_process(shlex.split(line, comments=True)[1:], self.folder, self.env)
            return subprocess.CompletedProcess(line, said.code, said.out, said.err)
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


def furnish(
    folder: Path, libraries: Path | None = None, *, numpy: bool = True, history: bool = False
) -> Sandbox:
    """Everything in `folder`. `libraries` holds stand-ins for NVIDIA's driver: with them there is an H200.

    Without `numpy` no peaks are measured, which take three seconds of every run on the CPU. `history` fills one.
    """
    work, home = folder / "work", folder / "home"
    for made in (work / "benchmark", work / "reports", home / "bin", home / "tmp"):
        made.mkdir(parents=True)
    for name in ("train.py", "benchmark/gated_mlp.py", "your_script.py"):
        (work / name).write_text(WORKLOAD)
    (work / "ours.yaml").write_text(TARGETS)
    (work / "targets.yaml").write_text(TARGETS)
    (work / "kernels.yaml").write_text(KERNELS)
    for name in CONFIGS:
        (work / name).write_text(NIGHTLY)
    for name, source in FILES.items():
        shutil.copy(source, work / name)
    shutil.copytree(DATA / "xctrace" / "m1", work / "exports")
    evaluation = DATA / "evaluations" / "own-kernels"
    for name in ("EVALUATION", "EARLIER"):
        shutil.copytree(evaluation, work / name)
    for name in RUNS:
        write_run(work / name, _run())
    (work / "out.nsys-rep").write_bytes(b"a stand-in's report")
    profiler = cProfile.Profile()
    profiler.runcall(sorted, range(1000), key=str)
    profiler.dump_stats(work / "output.prof")
    _hide(home / "hidden", "torch", *(() if numpy else ("numpy",)))
    (work / "series.csv").write_text(
        "".join(f"{100 + night % 3 + 10 * (night > 20)}\n" for night in range(40))
    )
    if history:
        _remember(work)
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


# Each folder is furnished with the same runs: they are judged once.
@cache
def _run() -> RunDocument:
    return judged()


@cache
def _run_of(night: int) -> RunDocument:
    timing = replace(documents.timing(), processes=_slower(1.0 if night < 6 else 1.2))
    started = f"2026-11-0{night}T05:47:00+00:00"
    return judged(replace(documents.document(), started=started, timings=(timing,)))


def _remember(work: Path) -> None:
    """A history of nine nights of the workloads that the pages name, the last ones slower, and one trace."""
    with open_history(work / "reports" / "history.sqlite") as history:
        for night in range(1, 10):
            write_run(work / "night", _run_of(night))
            for name in ("gated_mlp", "NAME", "WORKLOAD"):
                history.add(replace(entry_at(work / "night", name), id=f"{name}{night}"))
        history.add(replace(entry_at(work / "trace.sqlite", "gated_mlp"), id="ENTRY"))


def _slower(times: float) -> tuple[SampleSet, ...]:
    return tuple(
        replace(one, seconds=tuple(seconds * times for seconds in one.seconds))
        for one in documents.timing().processes
    )


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

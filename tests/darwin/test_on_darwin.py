"""Nothing in profkit needs Linux: every module, and verbs that need no GPU, in Pythons that believe to be on a Mac."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from tests.mac_stand_in import IOREG, M3_MAX, accelerator, ioreg, programs

PROJECT = Path(__file__).resolve().parents[2]
PRETEND = Path(__file__).with_name("pretend")
WORKLOAD = """
import profkit
with profkit.region("sum"):
    for _ in range(20):
        sum(i * i for i in range(5000))
"""
IMPORT_ALL = """
import importlib, os, pkgutil, sys, time
import profkit
assert sys.platform == "darwin" and not hasattr(os, "waitid") and not os.path.exists("/proc/self")
names = [m.name for m in pkgutil.walk_packages(profkit.__path__, "profkit.")]
names = [name for name in names if not name.endswith("__main__") and ".passes.host" not in name]
# Kernels for NVIDIA's GPUs are loaded where there is one, and kernels are evaluated on Linux, with a torch that is no
# stand-in.
elsewhere = ("profkit.kernels.operations.cuda.", "profkit.kernels.operations.triton.")
elsewhere += ("profkit.kernels.evaluation.", "profkit.evaluation.", "profkit.kernels.operations.in_float64")
names = [name for name in names if not name.startswith(elsewhere)]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
# What is needed of the system's own, since nothing else on PATH may be: perf and valgrind are Linux's.
_KEPT = ("sh", "env", "uname", "git", "true", "sleep", "cat", "mv", "rm", "kill")


@pytest.fixture(scope="module")
def mac(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a Mac with an M3 Max, the bare command line tools, and a stand-in for torch."""
    answers: dict[str, str | int] = {
        IOREG: ioreg(accelerator("Apple M3 Max", 40)),
        "xcode-select -p": "/Library/Developer/CommandLineTools\n",
        "DevToolsSecurity -status": "Developer mode is currently disabled.\n",
        "xcrun": 72,
    }
    folder = programs(tmp_path_factory.mktemp("mac") / "bin", answers, M3_MAX)
    for name in _KEPT:
        where = next(
            (Path(place) / name for place in ("/bin", "/usr/bin") if (Path(place) / name).exists()), None
        )
        if where is not None:
            (folder / name).symlink_to(where)
    packages = folder.parent / "packages"
    packages.mkdir()
    (packages / "torch.py").write_text(
        "class backends:\n    class mps:\n        is_built = is_available = staticmethod(lambda: True)\n"
        "__version__ = '2.11.0'\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROFKIT_", "PYTHON"))}
    path = os.pathsep.join((str(folder), str(Path(sys.executable).parent)))
    python = os.pathsep.join((str(PRETEND), str(packages), str(PROJECT)))
    return {**kept, "PATH": path, "PYTHONPATH": python, "COLUMNS": "120", "NO_COLOR": "1"}


def run(mac: Mapping[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *words], env=dict(mac), cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def profkit(mac: Mapping[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run(mac, "-m", "profkit", *words, cwd=cwd)


@pytest.mark.thorough
def test_every_module_is_imported(mac: Mapping[str, str]) -> None:
    done = run(mac, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def test_help_is_shown(mac: Mapping[str, str]) -> None:
    assert "doctor" in profkit(mac, "--help").stdout


def test_the_doctor_speaks_of_a_mac_and_of_nothing_that_only_linux_has(
    mac: Mapping[str, str], tmp_path: Path
) -> None:
    done = profkit(mac, "doctor", "--quiet", "--format", "json", cwd=tmp_path)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    failed = [check["detail"] for check in checks.values() if "this check failed" in check["detail"]]
    assert failed == []
    assert "Apple M3 Max (Apple), 16 usable cores" in checks["processor"]["detail"]
    assert checks["GPU 0"]["detail"] == "Apple M3 Max"
    assert checks["xctrace"]["state"] == "missing"
    told = " ".join(f"{check['detail']} {check['fix'] or ''}" for check in checks.values())
    for word in ("apt-get", "valgrind", "/proc", "cpupower", "paranoid"):
        assert word not in told, word
    assert {"perf", "valgrind", "NMI watchdog", "stolen time"}.isdisjoint(checks)


def test_a_report_from_elsewhere_is_read(mac: Mapping[str, str]) -> None:
    done = profkit(mac, "summarize", "--format", "json", "tests/data/perf/script.one-line.txt", cwd=PROJECT)
    assert json.loads(done.stdout)["schema"] == "profkit.run/6"


@pytest.mark.thorough
def test_a_workload_is_profiled(mac: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORKLOAD)
    words = (
        "profile",
        "--backend",
        "cpu",
        "--depth",
        "gate",
        "--sampling",
        "1",
        "--output",
        "runs",
        "--format",
        "json",
    )
    done = profkit(mac, *words, "--", "python", "work.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["state"] == "complete"
    assert (document["machine"]["system"], document["machine"]["cpu"]) == ("Darwin", "Apple M3 Max")
    passes = {one["name"]: one for one in document["passes"]}
    assert passes["timing"]["state"] == "finished"
    assert passes["counters"]["state"] == "skipped"
    assert passes["counters"]["reason"]["code"] == "no-counts-on-a-mac"


def test_what_a_workload_leaves_behind_is_ended_where_nobody_can_adopt_it(
    mac: Mapping[str, str], tmp_path: Path
) -> None:
    left = tmp_path / "pid"
    code = (
        "import sys; from profkit.core.process import run\n"
        f"done = run(['sh', '-c', 'sh -c \"echo \\\\$\\\\$ > {left}; exec sleep 60\" & sleep 0.4'])\n"
        "print(done.ok)\n"
    )
    done = run(mac, "-c", code)
    assert done.stdout.split() == ["True"], done.stdout + done.stderr
    pid = int(left.read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.thorough
def test_perf_is_said_to_be_linuxs(mac: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORKLOAD)
    done = profkit(
        mac, "record", "--tool", "perf", "--report", "out.data", "--", "python", "work.py", cwd=tmp_path
    )
    assert done.returncode == 3
    assert "perf exists only on Linux" in done.stderr
    assert "--tool xctrace" in done.stderr
    assert "apt-get" not in done.stderr


def test_a_stranger_that_got_the_pid_of_a_member_is_left_alone(mac: Mapping[str, str]) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        code = (
            "import subprocess; from profkit.core.process_tree import ProcessTree as Tree\n"
            "child = subprocess.Popen(['true'], start_new_session=True)\n"
            f"tree = Tree(child.pid); tree._seen[{stranger.pid}] = 1.0; child.wait()\n"
            "tree._born = 0.0\n"
            "tree.end(grace=0.0)\n"
        )
        assert run(mac, "-c", code).returncode == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()

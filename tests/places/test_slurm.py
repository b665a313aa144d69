"""`--on srun:` against a real Slurm of one machine with two nodes and made-up GPUs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_runner import PROFKIT

NEEDED = ("srun", "slurmctld", "slurmd", "munged", "unshare", "nsenter", "ip")
GPU = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['SLURMD_NODENAME'])"
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not all(map(shutil.which, NEEDED)),
    reason="root, and: apt-get install --no-install-recommends slurmd slurmctld slurm-client munge iproute2",
)


@dataclass
class Slurm:
    """Its daemons run in namespaces of their own, and so does what is called through it, in `folder`."""

    folder: Path
    inside: tuple[str, ...]

    def start(self, *words: str) -> subprocess.Popen[str]:
        argv = [*self.inside, "env", f"SLURM_CONF={self.folder / 'slurm.conf'}", *words]
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def profkit(self, *words: str) -> subprocess.Popen[str]:
        return self.start(*PROFKIT, *words)

    def says(self, *words: str) -> str:
        return self.start(*words).communicate(timeout=20)[0]

    def wait_for(self, is_so: Callable[[str], bool]) -> str:
        """The jobs in the queue, once that is so."""
        deadline = time.monotonic() + 20.0
        while not is_so(jobs := self.says("squeue", "-h", "-o", "%j %t %N")):
            assert time.monotonic() < deadline, jobs
            time.sleep(0.1)
        return jobs


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    folder = tmp_path_factory.mktemp("slurm")
    work = folder / "work"
    work.mkdir()
    script = str(Path(__file__).with_name("slurm_lab.sh"))
    namespaces = ["unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"]
    with subprocess.Popen(
        [*namespaces, "sh", script, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stdout is not None
        assert lab.stderr is not None
        if lab.stdout.readline() != "up\n":
            pytest.skip(f"no Slurm can be started here: {lab.stderr.read()[-500:]}")
        yield Slurm(folder, ("nsenter", "-t", str(child_of(lab)), "-n", "-m", "-p", f"--wd={work}"))
        lab.kill()


def child_of(process: subprocess.Popen[str]) -> int:
    """What unshare and nsenter have started in the namespace of processes."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def finish(run: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = run.communicate(timeout=30)
    assert "Traceback" not in err
    return run.returncode, out, err


def test_a_run_gets_the_gpu_that_slurm_gives_it_and_leaves_no_job(slurm: Slurm) -> None:
    words = (
        "--backend",
        "cpu",
        "--passes",
        "timing",
        "--sampling",
        "0.1",
        "--precision",
        "0.4",
        "--format",
        "json",
    )
    command = ("--", sys.executable, "-c", GPU)
    code, out, err = finish(slurm.profkit("profile", "--on", "srun:--gres=gpu:t4:1", *words, *command))
    assert code == 0, err
    run = json.loads(out)
    assert run["place"] == "srun:--gres=gpu:t4:1"
    (folder,) = (slurm.folder / "work" / "reports").iterdir()
    assert "0 n2" in "".join(log.read_text() for log in (folder / "logs").iterdir())
    assert slurm.wait_for(lambda jobs: not jobs) == ""


def test_a_gpu_that_no_node_has_is_said_at_once(slurm: Slurm) -> None:
    code, _, err = finish(slurm.profkit("doctor", "--on", "srun:--gres=gpu:b200:1"))
    assert code == 3
    assert "Requested node configuration is not available" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_who_waits_in_the_queue_says_so_and_leaves_it_at_the_end(
    slurm: Slurm, number: signal.Signals
) -> None:
    blocker = slurm.start("srun", "--gres=gpu:h200:2", "--job-name=blocker", "sleep", "60")
    slurm.wait_for(lambda jobs: "blocker R" in jobs)
    run = slurm.profkit("doctor", "--on", "srun:--gres=gpu:h200:1")
    assert run.stderr is not None
    said = run.stderr.readline() + run.stderr.readline()
    assert "queued and waiting for resources" in said
    slurm.wait_for(lambda jobs: "profkit PD" in jobs)
    os.kill(child_of(run), number)
    code, _, _ = finish(run)
    assert code == (130 if number == signal.SIGINT else -number)
    slurm.wait_for(lambda jobs: "profkit" not in jobs)
    os.kill(child_of(blocker), signal.SIGTERM)
    finish(blocker)


@pytest.mark.parametrize("fault", ["cancelled", "killed"])
def test_what_a_cancelled_job_had_finished_comes_back_and_a_killed_one_is_done_elsewhere(
    slurm: Slurm, fault: str
) -> None:
    words = (
        "--backend",
        "cpu",
        "--passes",
        "timing",
        "--timeout",
        "1" if fault == "killed" else "20",
        "--output",
        fault,
    )
    places = "srun:--gres=gpu:h200:1,srun:--gres=gpu:t4:1"
    run = slurm.profkit("profile", "--on", places, *words, "--", "sleep", "31.4")
    while not slurm.says("pgrep", "-fx", "sleep 31.4"):
        assert run.poll() is None
    if fault == "cancelled":
        slurm.says("scancel", "--name=profkit")
        code, _, err = finish(run)
        assert code == 130, err
    else:
        slurm.says("pkill", "-KILL", "-f", r"^\S*python\S* -u -c")
        slurm.wait_for(lambda jobs: "profkit R n2" in jobs)
        code, _, err = finish(run)
        assert code == 4, err  # its own time limit
        assert "the next place is tried" in err
    assert ("CANCELLED AT" in err) == (fault == "cancelled"), err
    assert slurm.wait_for(lambda jobs: not jobs) == ""

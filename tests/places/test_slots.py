"""A pool and a sweep whose workers are at other places: behind plain pipes, each with its shell and its store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, Silent
from profkit.execution.child import JobStatus
from profkit.execution.places.connection import Connection, PlaceWorker
from profkit.execution.places.files import Sending
from profkit.execution.places.kinds import ExecutionPlace, parse_places
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from profkit.hardware.gpu_locks import lock_gpus
from profkit.kernels.places import RELAY, PlaceSlots, SlotWork
from tests.cli_runner import profkit
from tests.cuda_stand_in import nvidia as nvidia

IN_HOME = Path(".cache", "profkit", "elsewhere")  # the store of a place that names no other
JOBS = str(Path(__file__).parents[1] / "execution")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, fill_store: Callable[[Path], Path]) -> Path:
    """What was sent once is there for all tests."""
    return fill_store(tmp_path_factory.mktemp("there"))


@pytest.fixture
def workers(store: Path, tmp_path: Path) -> Iterator[list[PlaceWorker]]:
    """Three slots at one place."""
    slots = []
    pairs = [f"PATH={os.environ['PATH']}", f"PROFKIT_CACHE={store}", f"PYTHONPATH={JOBS}"]
    for number in range(3):
        place = ExecutionPlace("prefix", f"prefix:{number}", ("env", "-i", *pairs, "sh"))
        connection = Connection(place, tmp_path / f"log{number}", sys.executable)
        connection.open()
        data = {"factory": "made_up_jobs:plain", "arguments": [], "env": {"SLOT": str(number)}}
        connection.start(RELAY, data, work=None, name="slot")
        slots.append(PlaceWorker(connection))
    yield slots
    for slot in slots:
        slot.close()


def settle_all(
    workers: list[PlaceWorker], jobs: dict[str, dict[str, object]], timeout: float = 30.0
) -> tuple[dict[str, JobOutcome], WorkerPool]:
    """The outcome of each job, which it gets once."""
    settled: dict[str, JobOutcome] = {}

    def settle(outcome: JobOutcome) -> None:
        assert outcome.job.key not in settled
        settled[outcome.job.key] = outcome

    pool = WorkerPool(workers, settle, timeout=timeout)
    pool.open()
    pool.run([[Job(key, data)] for key, data in jobs.items()])
    return settled, pool


@pytest.mark.thorough
def test_what_a_job_does_to_its_worker_is_told_as_it_is_here(workers: list[PlaceWorker]) -> None:
    jobs: dict[str, dict[str, object]] = {
        "crash": {"do": "crash"},
        "leave": {"do": "leave"},
        "raise": {"do": "raise"},
        "break the device": {"do": "break the device"},
        "print": {"do": "print"},
        "hang": {"do": "sleep", "seconds": 1000.0},
        **{f"sleep {number}": {"do": "sleep", "seconds": 0.0} for number in range(6)},
    }
    settled, pool = settle_all(workers, jobs, timeout=3.0)
    assert {key: settled[key].status.value for key in list(jobs)[:6]} == {
        "crash": "crash",
        "leave": "crash",
        "raise": "error",
        "break the device": "crash",
        "print": "ok",
        "hang": "timeout",
    }
    assert "SIGSEGV" in settled["crash"].reason
    assert all(settled[f"sleep {number}"].status is JobStatus.ok for number in range(6))
    assert pool.fault is None


@pytest.mark.thorough
def test_a_job_whose_place_is_lost_is_tried_once_more_and_the_others_go_on(
    workers: list[PlaceWorker],
) -> None:
    jobs: dict[str, dict[str, object]] = {
        "bad": {"do": "kill its supervisor"},
        **{f"sleep {number}": {"do": "sleep", "seconds": 0.02} for number in range(20)},
    }
    settled, pool = settle_all(workers, jobs)
    assert len(settled) == len(jobs)
    assert settled["bad"].status is JobStatus.lost
    assert "was lost" in settled["bad"].reason
    assert {settled[f"sleep {number}"].status for number in range(20)} == {JobStatus.ok}, pool.fault
    assert isinstance(pool.fault, MachineError)
    assert sum(worker.running for worker in workers) == 0


def test_a_slot_waits_for_its_gpu_there_and_says_so(
    store: Path, tmp_path: Path, nvidia: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = tmp_path / "locks"
    pairs = (
        f"PROFKIT_LOCKS={locks}",
        f"LD_LIBRARY_PATH={nvidia}",
        f"PROFKIT_CACHE={store}",
        f"PYTHONPATH={JOBS}",
    )
    place = ExecutionPlace("prefix", "prefix:gpu", ("env", "-i", f"PATH={os.environ['PATH']}", *pairs, "sh"))
    slots = PlaceSlots((place,), Sending(python=sys.executable))
    notes: list[str] = []
    try:
        slots.connect(
            SlotWork("made_up_jobs:plain", (), ({"CUDA_VISIBLE_DEVICES": "0"},), locks=True), Silent()
        )
        monkeypatch.setenv("PROFKIT_LOCKS", str(locks))
        held = ExitStack()
        held.enter_context(lock_gpus(["GPU-00000001-bbbb"], Silent()))

        def note(text: str) -> None:
            notes.append(text)
            held.close()

        slots._note = note
        settled, _ = settle_all(slots.workers, {"work": {"do": "sleep", "seconds": 0.0}})
    finally:
        slots.close()
    assert settled["work"].status is JobStatus.ok
    assert notes[0].startswith("prefix:gpu: wait: GPU-00000001-bbbb is in use by another run of profkit")
    assert notes[1].startswith("prefix:gpu: the GPU is free after ")


@pytest.mark.thorough
@pytest.mark.torch
def test_two_places_share_a_sweep_and_a_third_that_is_gone_costs_nothing(
    tmp_path: Path, fill_store: Callable[[Path], Path]
) -> None:
    fill_store(tmp_path / "home" / IN_HOME)
    inside = "prefix:env -i HOME=" + str(tmp_path / "home")
    words = (
        "--device",
        "cpu",
        "--operations",
        "GELU",
        "--batch",
        "2",
        "--sequence",
        "16",
        "--dimension",
        "8,16,32,64",
    )
    quick = ("--budget", "0.05", "--threads", "1", "--format", "json")
    on = ("--on", f"local,{inside},prefix:false", "--on-python", sys.executable)
    said = profkit("sweep", *on, *words, *quick, cwd=tmp_path, process=True)
    assert said.code == 0, said.err
    assert "prefix:false cannot be reached" in said.err
    document = said.json()["sweep"]
    assert document["complete"] is True
    assert {case["state"] for case in document["results"]} == {"measured"}
    again = profkit(
        "sweep", "--resume", said.json()["folder"], *on, "--format", "json", cwd=tmp_path, process=True
    )
    assert again.code == 0, again.err
    assert "connect" not in again.err  # every case is known


def test_the_line_that_goes_on_names_the_places_as_far_as_they_may_be_shown() -> None:
    for texts, option in (
        (["ssh:gpu1,ssh:gpu2"], "--on ssh:gpu1,ssh:gpu2 --on-python /bin/py"),
        (
            ["local", "srun:--gres=gpu:1 -p short"],
            "--on 'local,srun:--gres=gpu:1 -p short' --on-python /bin/py",
        ),
        (["prefix:env TOKEN=1"], "--on PLACES --on-python /bin/py"),
    ):
        assert PlaceSlots(parse_places(texts), Sending(python="/bin/py")).options == option


@pytest.mark.thorough
def test_what_cannot_be_asked_of_other_places_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    for words in (
        (),
        ("--device", "cpu", "--profile", "fastest"),
        ("--device", "cpu", "--gpus", "0"),
        ("--device", "cuda", "--gpus", "0,1"),
        ("--device", "cuda", "--gpus", "0,1", "--on", "srun:--gres=gpu:1"),
    ):
        said = profkit("sweep", "--on", "ray:auto" if "0,1" in words else "ssh:gpu1", *words, cwd=tmp_path)
        assert said.code == 2, said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.torch
def test_an_evaluation_is_judged_at_another_place_with_what_git_tracks_beside_the_kernels(
    tmp_path: Path, fill_store: Callable[[Path], Path]
) -> None:
    fill_store(tmp_path / "home" / IN_HOME)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "mine.py").write_text(
        "import helper\nfrom profkit.evaluation import kernel\n\n"
        "@kernel('relu.default')\ndef relu(x):\n    return helper.clamp(x)\n"
    )
    (tmp_path / "kernels" / "helper.py").write_text(
        "import torch\n\ndef clamp(x):\n    return torch.clamp(x, min=0)\n"
    )
    for words in (("init", "-q"), ("add", "kernels")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    on = ("--on", f"prefix:env -i TOKEN=hunter2 HOME={tmp_path / 'home'}", "--on-python", sys.executable)
    words = ("evaluate", "kernels/mine.py", *on, "--device", "cpu", "--correctness-only", "--format", "json")
    said = profkit(*words, cwd=tmp_path, process=True)
    assert said.code == 0, said.err
    document = said.json()
    assert document["statuses"] == {"passed": len(document["tests"])}, document["tests"]
    assert document["complete"] is True
    assert (
        "prefix:env" in json.loads((tmp_path / document["folder"] / "evaluation.json").read_text())["command"]
    )
    assert "[masked]" in document["command"]
    for file in (tmp_path / "reports").rglob("*.*"):
        assert "hunter2" not in file.read_text(errors="replace"), file


def test_what_an_evaluation_does_here_is_not_done_there(tmp_path: Path) -> None:
    for words in (("--profile", "1"), ("--replay", "0123456789ab", "FOLDER")):
        said = profkit("evaluate", "--on", "ssh:gpu1", *words, cwd=tmp_path)
        assert said.code == 2, said.err
        assert "is done on this machine" in said.err

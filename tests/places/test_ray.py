"""A shell in an actor: by a stand-in for Ray, and by two nodes of Ray itself where there is one.

Those with Ray are run by `PROFKIT_RAY_PYTHON=/path/to/python`, one that has `pip install 'ray[client]'`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from profkit.core.errors import UsageError
from profkit.execution.job import Batch, Job, JobQueue, JobStatus
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.parse import parse_places
from profkit.execution.places.slot import PlaceWorker
from profkit.execution.pool import WorkerPool
from profkit.kernels.places import RELAY
from tests.places.test_connection import HERE, ask, assert_gone

STAND_IN = Path(__file__).parent / "ray_stand_in"
JOBS = str(Path(__file__).parents[1] / "execution")
CLUSTER = """
import ray, sys
from ray.cluster_utils import Cluster
size = dict(num_cpus=2, num_gpus=2, object_store_memory=100 << 20)
head = {**size, "resources": {"accelerator_type:H200": 2}, "include_dashboard": False}
cluster = Cluster(True, False, head_node_args=head)
nodes = [cluster.add_node(**size, resources={"accelerator_type:T4": 2})]
print("address", cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(nodes.pop(), allow_graceful=False)
cluster.shutdown()
"""


def request_of(text: str) -> dict[str, Any]:
    (place,) = parse_places([text])
    request: dict[str, Any] = json.loads(place.start[2])
    return request


def test_options_stand_before_the_address_and_a_type_means_one_gpu() -> None:
    assert request_of("ray:auto") == {
        "address": "auto",
        "gpus": 0,
        "accelerator": None,
        "cpus": 0,
        "resources": {},
        "wait": None,
    }
    request = request_of(
        "ray:--accelerator H100 --cpus 4 --resource node:10.0.0.5=0.01 --wait 9 ray://h:10001"
    )
    assert request == {
        "address": "ray://h:10001",
        "gpus": 1,
        "accelerator": "H100",
        "cpus": 4,
        "wait": 9,
        "resources": {"node:10.0.0.5": 0.01},
    }
    assert [p.title for p in parse_places(["ray:--gpus 0.5 h:1,ray:auto"])] == [
        "ray:--gpus 0.5 h:1",
        "ray:auto",
    ]


@pytest.mark.parametrize(
    "text",
    ["--gpus", "--gpus x auto", "--gpus -1 auto", "local", "host", "--slots 2 auto", "auto auto", "h:p"],
)
def test_what_is_no_cluster_is_refused_before_anything_starts(text: str) -> None:
    with pytest.raises(UsageError, match="ray: ") as caught:
        parse_places([f"ray:{text}"])
    assert "--on" in str(caught.value.fix)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill_store: Callable[[Path], Path]) -> Path:
    """The file with what the actor was started with."""
    monkeypatch.setenv("PROFKIT_RAY_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", f"{STAND_IN}{os.pathsep}{HERE}")
    monkeypatch.setenv("PROFKIT_CACHE", str(fill_store(tmp_path / "store")))
    monkeypatch.setenv("RAY_OPTIONS", str(tmp_path / "options"))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "hunter2")
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")  # needs no node here
    return tmp_path / "options"


def shell(text: str, script: str) -> subprocess.CompletedProcess[str]:
    (place,) = parse_places([text])
    return subprocess.run(place.start, input=script, capture_output=True, text=True, timeout=60)


def test_a_shell_is_relayed_to_its_end_and_leaves_nothing(stand_in: Path) -> None:
    script = "head -c 300000 /dev/zero; sleep 1000 & setsid sleep 1000 & echo $! >&2; env >&2; exit 7\n"
    said = shell("ray:--gpus 1 --accelerator T4 auto", script)
    assert (said.returncode, said.stdout) == (7, "\0" * 300_000)
    first, *env = said.stderr.splitlines()
    assert_gone([int(first)])
    assert not [line for line in env if line.startswith("RAY_")]
    chosen = json.loads(stand_in.read_text())
    assert (chosen["num_gpus"], chosen["accelerator_type"]) == (1, "T4")
    assert (chosen["max_restarts"], chosen["max_task_retries"]) == (0, 0)


def test_what_keeps_a_shell_away_is_told_with_the_line_that_fixes_it(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assert_refused(text: str, reason: str, fix: str) -> None:
        (place,) = parse_places([text])
        with pytest.raises(PlaceUnreachable, match=reason) as caught:
            Connection(place, tmp_path / "log").open()
        assert fix in str(caught.value.fix)

    del stand_in
    assert_refused(
        "ray:--accelerator B200 auto", r"no node has 1 GPU B200: there are 1 x \(2 CPU 2 GPU T4\)", "--wait"
    )
    assert_refused("ray:ray://127.0.0.1:1", "refused", "ray.init('ray://127.0.0.1:1')")
    if not any(process.name() == "raylet" for process in psutil.process_iter()):
        assert_refused("ray:127.0.0.1:1", "this machine is no node", "ray://HOST:10001")
    monkeypatch.setenv("RAY_BUSY", "1")
    assert_refused("ray:--gpus 2 --wait 0.1 auto", "2 GPU is in use", "--wait")
    versions = (
        "Version mismatch: cluster:\n Ray: 2.9\n Python: 3.12.1\nThis process:\n Ray: 2.60\n Python: 3.11.7\n"
    )
    monkeypatch.setenv("RAY_FAULT", versions)
    assert_refused(
        "ray:auto", r"Ray 2.9 on Python 3.12.1, this is Ray 2.60", "one with ray==2.9 on Python 3.12.1"
    )
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("PROFKIT_RAY_PYTHON", shutil.which("python3", path="/usr/bin:/bin") or sys.executable)
    assert_refused("ray:auto", "Ray is not installed for", "pip install 'ray[client]'")


def test_where_the_actor_dies_what_it_started_ends(stand_in: Path) -> None:
    del stand_in
    (place,) = parse_places(["ray:auto"])
    with subprocess.Popen(place.start, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as actor:
        assert actor.stdin is not None
        assert actor.stdout is not None
        actor.stdin.write(b"setsid sleep 1000 & echo $!; read line\n")
        actor.stdin.flush()
        pid = int(actor.stdout.readline())
        actor.kill()
    assert_gone([pid])


def test_profkit_works_in_an_actor(stand_in: Path, tmp_path: Path) -> None:
    (place,) = parse_places(["ray:auto"])
    value, _, _ = ask(place, tmp_path, {"do": "look"}, env={"NAMED": "2"})
    assert value["environ"]["NAMED"] == "2"
    assert "RAY_AUTH_TOKEN" not in value["environ"]
    assert value["path"][0].startswith(str(stand_in.parent))


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Two nodes, with two H200 and two T4 that are none, behind a token, in a network of their own."""
    python = os.environ.get("PROFKIT_RAY_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import ray"], capture_output=True).returncode:
        pytest.skip("no Ray: PROFKIT_RAY_PYTHON=/path/to/python, one with pip install 'ray[client]'")
    own = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
    if subprocess.run([*own, "true"], capture_output=True).returncode:
        pytest.skip("no network can be made here")
    folder = tmp_path_factory.mktemp("ray")
    token = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    env = {**os.environ, **token, "PROFKIT_CACHE": str(folder / "store"), "PYTHONPATH": JOBS}
    cluster = subprocess.Popen(
        [*own, python, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )
    assert cluster.stdout is not None
    address = next(line.split()[1] for line in cluster.stdout if line.startswith("address"))
    inside = folder / "python"
    enter = f"nsenter -t {cluster.pid} -U -n --preserve-credentials"
    inside.write_text(f'#!/bin/sh\nexec {enter} {python} "$@"\n')
    inside.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**token, "PROFKIT_RAY_PYTHON": str(inside)}.items():
            patch.setenv(name, value)
        yield address, cluster
    members = psutil.Process(cluster.pid).children(recursive=True)
    for process in [*members, psutil.Process(cluster.pid)]:
        process.kill()
    cluster.communicate()


def test_ray_gives_gpus_of_the_type_that_was_asked_for(ray_cluster: tuple[str, Any]) -> None:
    address, _ = ray_cluster
    script = "sleep 1; env | grep -E '^(CUDA_V|RAY_|OMP_N)'; nice\n"
    said = shell(f"ray:--gpus 2 --accelerator T4 {address}", script)
    assert "CUDA_VISIBLE_DEVICES=0,1" in said.stdout, said.stderr
    assert "RAY_" not in said.stdout
    assert "OMP_" not in said.stdout
    said = shell(f"ray:--accelerator B200 {address}", "")
    assert said.returncode == 3
    assert "(2 CPU 2 GPU H200)" in said.stderr


def test_an_actor_that_is_killed_is_lost_and_nothing_goes_on(
    ray_cluster: tuple[str, Any], tmp_path: Path
) -> None:
    address, cluster = ray_cluster
    (place,) = parse_places([f"ray:{address}"])
    connection = Connection(place, tmp_path / "log", sys.executable)
    connection.open()
    connection.stage(None)
    work = {"factory": "made_up_jobs:plain", "arguments": [], "env": {}}
    connection.start(RELAY, work, work=None, name="slot")
    worker = PlaceWorker(connection)
    worker.open({}, 30.0)
    actors = [p for p in psutil.Process(cluster.pid).children(recursive=True) if "Shell" in p.name()]
    assert actors
    for actor in actors:
        actor.send_signal(signal.SIGKILL)
    time.sleep(0.1)
    with pytest.raises(PlaceLost, match=r"was lost: .*the actor is gone"):
        list(worker.run(Batch((Job("a", {"do": "sleep", "seconds": 5.0}),), "a"), 30.0))
    connection.close()


def test_two_actors_share_work_and_one_whose_node_dies_is_lost(
    ray_cluster: tuple[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    address, cluster = ray_cluster
    settled = {}
    workers = []
    for place in parse_places([f"ray:--accelerator H200 {address},ray:--accelerator T4 {address}"]):
        connection = Connection(place, tmp_path / f"log{len(workers)}", sys.executable)
        connection.open()
        connection.stage(None)
        connection.start(
            RELAY, {"factory": "made_up_jobs:plain", "arguments": [], "env": {}}, work=None, name="slot"
        )
        workers.append(PlaceWorker(connection))
    pool = WorkerPool(
        workers, lambda outcome: settled.__setitem__(outcome.job.key, outcome), timeout=30.0, moves=True
    )
    try:
        pool.begin()
        pool.open()
        jobs = {str(n): {"do": "sleep", "seconds": 0.05} for n in range(60)} | {"crash": {"do": "crash"}}
        batches = JobQueue(Batch((Job(key, data),), key) for key, data in jobs.items())
        assert cluster.stdin is not None
        cluster.stdin.write("\n")
        cluster.stdin.flush()
        pool.run(batches)
    finally:
        for worker in workers:
            worker.close()
    assert settled.pop("crash").status is JobStatus.crash
    assert {outcome.status for outcome in settled.values()} == {JobStatus.ok}
    assert [worker.was_lost for worker in workers] == [False, True]

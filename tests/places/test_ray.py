"""A shell in an actor, by a stand-in for Ray."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UsageError
from profkit.execution.places.connection import Connection, PlaceUnreachable
from profkit.execution.places.kinds import parse_places
from tests.places.test_connection import HERE, ask, sleeping
from tests.workload_process import assert_gone

STAND_IN = Path(__file__).parent / "ray_stand_in"


def request_of(text: str) -> dict[str, Any]:
    (place,) = parse_places([text])
    request: dict[str, Any] = json.loads(place.start[2])
    return request


def test_options_stand_before_the_address_and_a_type_means_one_gpu() -> None:
    auto = {"num_gpus": 0, "num_cpus": 0, "accelerator_type": None}
    assert request_of("ray:auto") == {"address": "auto", "options": auto}
    asked = {"num_gpus": 1, "num_cpus": 0, "accelerator_type": "H100"}
    request = request_of("ray:--accelerator H100 ray://h:10001")
    assert request == {"address": "ray://h:10001", "options": asked}
    assert [p.title for p in parse_places(["ray:--gpus 0.5 h:1,ray:auto"])] == [
        "ray:--gpus 0.5 h:1",
        "ray:auto",
    ]


@pytest.mark.parametrize(
    "text",
    ["--gpus", "--gpus x auto", "local", "host", "--slots 2 auto", "auto auto", "h:p"],
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


def test_a_shell_is_relayed_to_its_end(stand_in: Path) -> None:
    script = "head -c 300000 /dev/zero; env >&2; exit 7\n"
    said = shell("ray:--gpus 1 --accelerator T4 auto", script)
    assert (said.returncode, said.stdout) == (7, "\0" * 300_000)
    assert not [line for line in said.stderr.splitlines() if line.startswith(("RAY_", "OMP_NUM"))]
    chosen = json.loads(stand_in.read_text())
    assert (chosen["num_gpus"], chosen["accelerator_type"]) == (1, "T4")
    assert (chosen["max_restarts"], chosen["max_task_retries"]) == (0, 0)


def test_what_keeps_a_shell_away_is_told_with_the_line_that_fixes_it(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assert_refused(text: str, reason: str) -> None:
        (place,) = parse_places([text])
        with pytest.raises(PlaceUnreachable, match=reason):
            Connection(place, tmp_path / "log").open()

    del stand_in
    assert_refused("ray:ray://127.0.0.1:1", "refused")
    monkeypatch.setenv("RAY_BUSY", "1")
    assert_refused("ray:--gpus 2 auto", r"no node had what was asked for to give for 60 s")
    monkeypatch.setenv("RAY_FAULT", "Version mismatch: cluster:\n Ray: 2.9\nThis process:\n Ray: 2.60\n")
    assert_refused("ray:auto", r"Ray: 2.9 This process: Ray: 2.60")
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("PROFKIT_RAY_PYTHON", shutil.which("python3", path="/usr/bin:/bin") or sys.executable)
    assert_refused("ray:auto", r"Ray is not installed for .*pip install 'ray\[client\]'")


def test_where_the_actor_dies_what_profkit_does_there_ends(stand_in: Path, tmp_path: Path) -> None:
    del stand_in
    (place,) = parse_places(["ray:auto"])
    with sleeping(place, tmp_path) as (_, pids, connection):
        os.kill(connection._child.pid, signal.SIGKILL)
        assert_gone(*pids)


def test_profkit_works_in_an_actor(stand_in: Path, tmp_path: Path) -> None:
    (place,) = parse_places(["ray:auto"])
    value, _ = ask(place, tmp_path, {"do": "look"}, env={"NAMED": "2"})
    assert value["environ"]["NAMED"] == "2"
    assert "RAY_AUTH_TOKEN" not in value["environ"]
    assert value["path"][0].startswith(str(stand_in.parent))

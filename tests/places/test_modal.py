"""`modal:GPU`, against a stand-in of its package: Modal's own service was never reached."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UsageError
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.kinds import parse_places
from tests.conftest import ROOT
from tests.workload_process import assert_gone

HERE = Path(__file__).parent


@dataclass
class Modal:
    """A folder that says how Modal behaves, and the environment in which profkit meets it."""

    folder: Path
    env: dict[str, str]

    def notes(self, name: str, seconds: float = 10.0) -> str:
        """What was noted there, as soon as it is."""
        deadline = time.monotonic() + seconds
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, f"no {name}"
            time.sleep(0.02)
        return (self.folder / name).read_text()


@pytest.fixture
def modal(tmp_path: Path, fill_store: Callable[[Path], Path]) -> Modal:
    folder = tmp_path / "modal"
    folder.mkdir()
    store = fill_store(folder / "store")
    inside = {"PATH": os.environ["PATH"], "PROFKIT_CACHE": str(store), "PYTHONPATH": str(HERE)}
    (folder / "environ").write_text(json.dumps({**inside, "HOME": str(folder)}))
    token = {"MODAL_TOKEN_ID": "ak-1", "MODAL_TOKEN_SECRET": "as-1", "MODAL_CONFIG_PATH": "/no/such/file"}
    paths = [str(HERE / "modal_stand_in"), str(ROOT)]
    return Modal(folder, {**token, "FAKE_MODAL": str(folder), "PYTHONPATH": os.pathsep.join(paths)})


@pytest.fixture
def here(modal: Modal, monkeypatch: pytest.MonkeyPatch) -> Modal:
    """The same, for what starts a connection in this process."""
    for name, value in modal.env.items():
        monkeypatch.setenv(name, value)
    return modal


def open_there(
    tmp_path: Path, text: str = "modal:T4", patience: float = 30.0, data: Any = None
) -> tuple[Connection, Iterator[Any]]:
    """A connection whose work has begun, and what it says."""
    (place,) = parse_places([text])
    connection = Connection(replace(place, patience=patience), tmp_path / "log", sys.executable)
    connection.open()
    connection.start("made_up_work:work", data or {"do": "sleep"}, work=None, name="work")
    return connection, connection.events()


def test_a_shell_there_does_the_work_and_the_container_ends_with_it(here: Modal, tmp_path: Path) -> None:
    connection, events = open_there(
        tmp_path, "modal:--timeout 900 --image me/mine:1 H100:2", data={"do": "look"}
    )
    *_, result = events
    connection.close()
    environ = result["value"]["environ"]
    assert not [name for name in environ if "MODAL" in name]  # neither the token nor anything of it
    assert here.notes("beats")
    assert here.notes("ended") == "137"
    assert (here.folder / "left").exists()
    asked = json.loads(here.notes("asked"))
    assert asked["gpu"] == "H100!:2"  # exactly the one that was named
    assert (asked["cpu"], asked["memory"]) == ([4, 4], [32768, 32768])
    assert (asked["timeout"], asked["idle_timeout"]) == (900, 120)
    assert asked["command"][:2] == ["bash", "-c"]
    assert not asked.keys() & {"env", "secrets"}


def test_a_container_that_dies_is_lost(here: Modal, tmp_path: Path) -> None:
    connection, events = open_there(tmp_path)
    next(events)
    (here.folder / "die").touch()
    with pytest.raises(PlaceLost, match="modal:T4 was lost: its process "):
        list(events)
    connection.close()


def test_where_this_side_is_killed_the_container_ends(here: Modal, tmp_path: Path) -> None:
    (here.folder / "silence").write_text("8")
    connection, events = open_there(tmp_path)
    next(events)
    os.kill(connection._child.pid, signal.SIGKILL)  # it can end nothing any more
    pids = [int(word) for word in here.notes("pids").split()]
    assert_gone(*pids)
    connection.close()


def test_no_token_no_gpu_and_no_package_are_told_with_what_to_do(
    here: Modal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.folder / "full").touch()
    with pytest.raises(PlaceUnreachable, match=r"Modal says ResourceExhaustedError: Insufficient capacity"):
        open_there(tmp_path)
    for name in ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"):
        monkeypatch.delenv(name)
    with pytest.raises(PlaceUnreachable, match=r"Modal says AuthError: Token missing"):
        open_there(tmp_path)
    (tmp_path / "modal.py").write_text("raise ModuleNotFoundError(\"No module named 'modal'\", name='modal')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    with pytest.raises(PlaceUnreachable, match=r"the package modal is not installed .*pip install"):
        open_there(tmp_path)


@pytest.mark.thorough
@pytest.mark.torch
def test_an_evaluator_of_python_runs_code_on_the_gpu_that_its_configuration_names(here: Modal) -> None:
    pytest.importorskip("torch")
    from profkit.evaluation import BackendBenchConfig, CodeEvaluator, open_suite

    evaluator = CodeEvaluator(BackendBenchConfig(gpu="A100"), device="cpu", budget=0.1, python=sys.executable)
    (op_test,) = open_suite("smoke", ops="relu", device="cpu", seed=3)
    code = "def relu_kernel_impl(x):\n    return torch.clamp(x, min=0)\n"
    score, speedup, correctness, performance = evaluator.run_code(op_test, code)
    assert json.loads(here.notes("asked"))["gpu"] == "A100-80GB"
    assert (score, evaluator.is_modal) == (1.0, True)
    assert len(correctness) == len(op_test.correctness_tests)
    assert len(performance) == len(op_test.performance_tests) > 0
    assert speedup > 0
    assert all(record.is_correct and record.op_name == "relu.default" for record in correctness)
    assert here.notes("ended")


@pytest.mark.parametrize("text", ["h100", "H100!", "H100:0", "H100:9", "--timeout x T4", "T4 T4"])
def test_what_modal_cannot_be_asked_for_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_places([f"modal:{text}"])


def test_a_worker_for_each_gpu_would_rent_them_all_each_time_and_is_refused() -> None:
    with pytest.raises(UsageError, match="is given its GPUs there") as refused:
        parse_places(["modal:H100:2"])[0].refuse_devices()
    assert (
        refused.value.fix
        == "leave out --gpus, and name one place for each GPU: --on modal:H100:2,modal:H100:2"
    )

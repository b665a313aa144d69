"""Locks of GPUs, with real processes: by a list of UUIDs, or with a stand-in for NVIDIA's driver."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_runner import PROFKIT

from profkit.core.errors import MachineError, Silent
from profkit.hardware.gpu_locks import FOLDER, HELD, lock_gpus
from tests.cuda_stand_in import nvidia as nvidia

HOLDS = (
    "import sys, time; from profkit.core.errors import Silent; from profkit.hardware.gpu_locks import lock_gpus\n"
    "with lock_gpus(sys.argv[1:], Silent()): print('held', flush=True); time.sleep(60)"
)
UUID = "GPU-00000001-bbbb"  # of the stand-in's first device


class Told(Silent):
    """What a progress was told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def begin(self, title: str, detail: str = "") -> None:
        self.words.append(f"{title}: {detail}")

    def end(self, result: str) -> None:
        self.words.append(result)

    def note(self, text: str) -> None:
        self.words.append(text)


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "locks"
    monkeypatch.setenv(FOLDER, str(folder))
    return folder


@contextmanager
def another_run(*uuids: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has these devices."""
    argv = [sys.executable, "-c", HOLDS, *uuids]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def test_a_second_run_waits_and_goes_on_when_the_first_was_killed(locks: Path) -> None:
    told = Told()
    with another_run("GPU-1") as child:

        def tick(_: float) -> None:
            child.kill()

        told.tick = tick  # type: ignore[method-assign]
        with lock_gpus(["GPU-1", "GPU-2"], told):
            assert os.environ[HELD] == "1,2"
    assert HELD not in os.environ
    waited, free = told.words
    assert waited == "wait: GPU-1 is in use by another run of profkit"
    assert free.startswith("the GPU is free after ")
    assert stat.S_IMODE(locks.stat().st_mode) == 0o1777
    assert {stat.S_IMODE(path.stat().st_mode) for path in locks.iterdir()} == {0o644}


def test_after_its_patience_a_run_is_refused_and_keeps_nothing_of_what_was_free(locks: Path) -> None:
    with another_run("GPU-2"):
        with (
            pytest.raises(MachineError, match="GPU-2 is in use"),
            lock_gpus(["GPU-1", "GPU-2"], Silent(), 0.0),
        ):
            pass
        with lock_gpus(["GPU-1"], Silent(), 0.0):  # also in another process
            pass


def test_what_a_process_above_has_is_not_waited_for(locks: Path) -> None:
    inner = "import sys; from profkit.core.errors import Silent; from profkit.hardware.gpu_locks import lock_gpus\n"
    inner += "with lock_gpus(['GPU-1'], Silent(), 0.0): print('in')"
    with lock_gpus(["GPU-1"], Silent()), lock_gpus(["MIG-7"], Silent()):
        assert os.environ[HELD] == "1,7"
        assert subprocess.check_output([sys.executable, "-c", inner], text=True) == "in\n"


@pytest.mark.parametrize("kind", ["link to a folder", "pipe", "link"])
def test_what_somebody_has_put_there_is_not_followed_and_stops_nobody(
    tmp_path: Path, locks: Path, kind: str
) -> None:
    victim = tmp_path / "victim"
    if kind == "link to a folder":
        victim.mkdir()
        locks.symlink_to(victim)
    else:
        locks.mkdir()
        name = locks / "gpu-1.lock"
        os.mkfifo(name) if kind == "pipe" else name.symlink_to(victim)
    told = Told()
    with lock_gpus(["GPU-1"], told):
        assert HELD not in os.environ
    assert len(told.words) == 1
    assert told.words[0].startswith("no GPU is locked: ")
    assert not victim.is_dir() or not list(victim.iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("profile", "--backend", "cuda", "--", sys.executable, "-c", ""),
        ("sweep", "--device", "cuda", "--operations", "GELU"),
        ("evaluate", "--device", "cuda", "--suite", "smoke", "--ops", "relu"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_measures_on_a_gpu_waits_for_it_until_ctrl_c(
    words: tuple[str, ...], tmp_path: Path, locks: Path, nvidia: Path
) -> None:
    env = {**os.environ, "LD_LIBRARY_PATH": str(nvidia), FOLDER: str(locks)}
    with another_run(UUID):
        with subprocess.Popen(
            [*PROFKIT, *words],
            cwd=tmp_path,
            env=env,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        ) as run:
            assert run.stderr is not None
            for line in run.stderr:
                if line.startswith("wait: "):
                    break
            else:
                pytest.fail("it did not wait")
            run.send_signal(signal.SIGINT)
            rest = run.stderr.read()
        assert f"{UUID} is in use by another run" in line
        assert run.returncode == 130, rest
        assert "Traceback" not in rest

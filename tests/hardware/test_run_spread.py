"""How far equal runs lie apart here: learned run by run, kept without names, and whatever the file holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import pytest

from profkit.core.types import Machine
from profkit.hardware.conditions import keep_time, kept_spread
from profkit.hardware.machine import read_machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[..., Path]) -> Machine:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return read_machine(tree("amd_zen4"))


def file_of(tmp_path: Path) -> Path:
    (file,) = (tmp_path / "cache/profkit/spread").iterdir()
    return file


def test_each_run_of_a_known_program_adds_its_ratio_to_the_one_before(machine: Machine) -> None:
    assert kept_spread(machine) is None
    keep_time(machine, "one", 1.0)
    keep_time(machine, "two", 5.0)
    assert kept_spread(machine) is None
    keep_time(machine, "one", 2.0)
    keep_time(machine, "one", 1.0)
    keep_time(machine, "two", 5.0)
    spread = kept_spread(machine)
    assert spread is not None
    assert (spread.trials, spread.largest) == (3, pytest.approx(log(2)))
    assert spread.rms == pytest.approx(log(2) * sqrt(2 / 3))


def test_a_run_that_lost_time_to_others_says_nothing_of_the_machine(machine: Machine) -> None:
    keep_time(machine, "one", 1.0, lost=0.02)
    keep_time(machine, "one", 5.0, lost=0.4)
    assert kept_spread(machine) is None
    keep_time(machine, "one", 1.1, lost=0.02)
    spread = kept_spread(machine)
    assert spread is not None
    assert (spread.trials, spread.largest) == (1, pytest.approx(log(1.1)))


def test_another_kind_of_machine_and_another_program_are_not_the_same(machine: Machine) -> None:
    keep_time(machine, "one", 1.0)
    keep_time(machine, "other", 2.0)
    keep_time(replace(machine, cores=1), "one", 4.0)
    keep_time(replace(machine, virtual="kvm"), "one", 4.0)
    assert kept_spread(machine) is None
    keep_time(machine, "one", 1.1)
    assert kept_spread(machine) is not None
    assert kept_spread(replace(machine, cores=1)) is None


def test_neither_the_command_nor_the_machine_stands_in_the_file(machine: Machine, tmp_path: Path) -> None:
    for _ in range(2):
        keep_time(machine, "python train.py --token=hunter2", 1.0)
    text = file_of(tmp_path).name + file_of(tmp_path).read_text()
    for word in ("train", "hunter2", machine.cpu, os.uname().nodename):
        assert word not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"times": 3, "trials": []}',
        '{"times": {"a": [1]}, "trials": []}',
        '{"times": {}, "trials": [[1, 1e999]]}',
        '{"times": {}, "trials": [[1, "x"]]}',
    ],
)
def test_a_damaged_file_is_as_none_and_is_written_anew(machine: Machine, tmp_path: Path, text: str) -> None:
    keep_time(machine, "one", 1.0)
    file_of(tmp_path).write_text(text)
    assert kept_spread(machine) is None
    keep_time(machine, "one", 1.0)
    keep_time(machine, "one", 2.0)
    assert kept_spread(machine) is not None

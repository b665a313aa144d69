"""Every input that ever failed is read or refused today, quickly and in little memory."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import mutate, watch
from tests.fuzz.__main__ import CORPUS
from tests.fuzz.folders import pack, unpack
from tests.fuzz.targets import JUDGE, READ, SHOW, TARGETS, Target
from tests.fuzz.watch import failure_of, shrink


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_an_input_that_once_failed_is_read_or_refused(name: str, tmp_path: Path) -> None:
    kept = sorted((CORPUS / name).glob("*"))
    failures = {
        path.name: failure
        for path in kept
        for depth in (READ, SHOW)
        if (failure := failure_of(TARGETS[name], path.read_bytes(), tmp_path, depth)[1]) is not None
    }
    assert failures == {}


def test_every_input_that_is_kept_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("name", ["run", "series", "callgrind", "nightly", "sweep"])
def test_the_same_seed_makes_the_same_changes(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    changes = [
        [mutate.several(target.mutate, seeds[0], by, seeds) for _ in range(20)]
        for by in (random.Random("a"), random.Random("a"))
    ]
    assert changes[0] == changes[1]
    assert len(set(changes[0])) > 10


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_seed_is_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    read = [target.try_input(data, tmp_path, depth) for data in target.seeds() for depth in (READ, JUDGE)]
    assert read
    assert all(read)


def test_a_folder_is_packed_as_it_was() -> None:
    files = {"run.json": b"{}", "artifacts/a.json": b"== b 3\nabc", "c": b""}
    assert unpack(pack(files)) == files


def test_a_fault_of_a_reader_is_seen_and_made_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from profkit.regression import trends as series_file

    def read_series_file(path: Path) -> None:
        if b"bad" in path.read_bytes():
            raise KeyError("a field")

    monkeypatch.setattr(series_file, "read_series_file", read_series_file)
    data = b"line\n" * 50 + b"a bad one\n" + b"line\n" * 50
    was_read, failure = failure_of(TARGETS["series"], data, tmp_path, READ)
    assert not was_read
    assert failure is not None
    assert failure.startswith("KeyError at ")
    assert shrink(TARGETS["series"], data, failure) == b"bad"


def reader(read: Callable[[bytes], None]) -> Target:
    return Target("made-up", lambda: (b"seed",), mutate.mutate_bytes, lambda path, _: read(path.read_bytes()))


def test_processor_time_is_bounded_and_waiting_for_a_busy_machine_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(watch, "LEAST_SECONDS", 0.2)

    def compute(data: bytes) -> None:
        while True:
            pass

    failure = failure_of(reader(compute), b"a", tmp_path)[1]
    assert failure is not None
    assert failure.startswith("TooSlow")
    assert failure_of(reader(lambda _: time.sleep(0.5)), b"a", tmp_path)[1] is None


def test_an_input_that_holds_its_process_once_is_no_failure_and_one_that_always_does_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(watch, "LEAST_SECONDS", 0.2)
    held = tmp_path / "held"

    def hold_once(data: bytes) -> None:
        if data != b"seed" and not held.exists():
            held.touch()
            time.sleep(30)

    def hold(data: bytes) -> None:
        if data != b"seed":
            time.sleep(30)

    once = watch.run_child(reader(hold_once), 2.0, 1)
    assert held.exists()
    assert once.failures == {}
    assert list(watch.run_child(reader(hold), 1.0, 1).failures) == ["the process ended: signal 9"]

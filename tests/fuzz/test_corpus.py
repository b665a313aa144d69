"""Every input that ever failed is read or refused today, quickly and in little memory."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz import mutate
from tests.fuzz.targets import JUDGE, READ, SHOW, TARGETS, Target


def test_every_input_that_is_kept_belongs_to_a_target() -> None:
    assert {path.name for path in fuzz.CORPUS.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_seed_is_read_and_an_input_that_once_failed_is_read_or_refused(
    name: str, tmp_path: Path
) -> None:
    target = TARGETS[name]
    read = [target.try_input(data, tmp_path, depth) for data in target.seeds() for depth in (READ, JUDGE)]
    assert read
    assert all(read)
    for path in (fuzz.CORPUS / name).glob("*"):
        for depth in (READ, SHOW):
            assert fuzz.failure_of(target, path.read_bytes(), tmp_path, depth)[1] is None, path


@pytest.mark.parametrize("name", ["run", "series", "nsys", "ncu", "xctrace", "torch"])
def test_the_same_seed_makes_the_same_changes(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    changes = [
        [mutate.several(target.mutate, seeds[0], by, seeds) for _ in range(20)]
        for by in (random.Random("a"), random.Random("a"))
    ]
    assert changes[0] == changes[1]
    assert len(set(changes[0])) > 10


def test_what_fails_computes_too_long_or_holds_its_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "LEAST_SECONDS", 0.2)

    def read(path: Path, depth: int) -> None:
        data = path.read_bytes()
        if data == b"seed":
            return
        if len(data) % 3 == 0:
            raise KeyError("a field")
        while len(data) % 3 == 1:
            pass
        time.sleep(30)

    target = Target("made-up", lambda: (b"seed",), mutate.mutate_bytes, read)
    inputs, failures = fuzz.run_child(target, 4.0, 1)
    assert inputs > 3
    kinds = {failure.split()[0] for failure in failures}
    assert kinds == {"KeyError", "TooSlow", "the"}, failures

"""Every input that ever failed is read or refused today, quickly and in little memory."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz import mutate
from tests.fuzz.targets import JUDGE, READ, SHOW, TARGETS, Target


def test_every_input_that_is_kept_belongs_to_a_target() -> None:
    assert {path.name for path in fuzz.CORPUS.iterdir()} <= TARGETS.keys()


@pytest.mark.thorough
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


def fail(data: bytes) -> None:
    raise KeyError("a field")


def compute(data: bytes) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("act", "kind"),
    [(fail, "KeyError at"), (compute, "TooSlow at"), (lambda _: time.sleep(30), "TooSlow at")],
)
def test_what_fails_computes_too_long_or_waits_is_found(
    act: Callable[[bytes], None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "MIN_SECONDS", 0.1)

    def read(path: Path, depth: int) -> None:
        if (data := path.read_bytes()) != b"seed":
            act(data)

    target = Target("made-up", lambda: (b"seed",), mutate.mutate_bytes, read)
    _, failures = fuzz.try_inputs(target, 0.0, 1)
    assert [failure for failure in failures if failure.startswith(kind)] == list(failures)
    assert failures

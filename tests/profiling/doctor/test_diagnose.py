from __future__ import annotations

from collections.abc import Iterable

import pytest

from profkit.backends import CheckGroup
from profkit.core.errors import MachineError, UsageError
from profkit.core.types import Check
from profkit.hardware.nvidia import read_gpus
from profkit.profiling import doctor
from profkit.profiling.doctor import (
    blocking_reason,
    diagnose,
)


class Watched:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, title: str, detail: str = "") -> None:
        self.told.append(title)

    def tick(self, seconds: float) -> None: ...

    def end(self, result: str) -> None:
        self.told.append(result)

    def note(self, text: str) -> None: ...


def _good() -> Iterable[Check]:
    return (Check("fine", "ok", "works"),)


def _breaks() -> Iterable[Check]:
    yield Check("first", "ok", "works")
    raise ZeroDivisionError("a bug of ours")


def _refuses() -> Iterable[Check]:
    raise MachineError("no such hardware", "buy some")


def test_a_look_that_fails_is_told_and_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = (
        CheckGroup("broken", _breaks),
        CheckGroup("refused", _refuses),
        CheckGroup("good", _good),
    )
    monkeypatch.setattr(doctor, "groups_for", lambda _: looks)
    watched = Watched()
    found = {check.name: check for check in diagnose("cpu", watched)}
    assert found["broken"].state == "refused"
    assert "a bug of ours" in found["broken"].detail
    assert (found["refused"].detail, found["refused"].fix) == ("no such hardware", "buy some")
    assert found["fine"].state == "ok"
    assert watched.told[::2] == ["broken", "refused", "good"]
    assert watched.told[-1].startswith("good (")


def test_a_backend_there_is_not_is_a_usage_error_that_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="cpu, cuda, mps"):
        diagnose("tpu")


def test_the_other_backends_of_this_machine_are_diagnosed_for_real() -> None:
    found = {check.name: check for check in diagnose("cuda")}
    assert (blocking_reason("cuda", tuple(found.values())) is None) == bool(read_gpus())
    assert {"processor", "quiet machine"} <= set(found)
    assert all(check.fix or check.detail for check in found.values() if check.state != "ok")

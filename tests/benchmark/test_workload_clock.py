"""What the scripts ask of profkit's clock: the device it runs on, and a cold cache where that is asked for."""

from __future__ import annotations

import json

import pytest
from workload_cases import KINDS

import profkit
from benchmark import harness
from benchmark.engines import NumpyEngine

SMALL = ["-b", "1", "--sequence", "4", "--hidden", "16"]


@pytest.fixture
def asked(monkeypatch):
    """The options that profkit.benchmark was called with; nothing is timed."""
    seen = []
    monkeypatch.setattr(profkit, "benchmark", lambda step, **options: seen.append(options), raising=False)
    return seen


def on(backend, monkeypatch):
    """NumPy on the processor, under the name of another device."""
    engine = NumpyEngine()
    engine.backend = backend
    monkeypatch.setattr(harness, "choose", lambda request, implementations: (engine, "numpy", []))


@pytest.mark.parametrize(("backend", "device"), [("cuda", "cuda"), ("cpu", "cpu"), ("mps", "mps")])
def test_the_clock_is_that_of_the_device(backend, device, asked, monkeypatch):
    on(backend, monkeypatch)
    assert harness.main(KINDS["rms_norm"], SMALL) == 0
    assert [(options["device"], options["cold"]) for options in asked] == [(device, False)]


@pytest.mark.parametrize("backend", ["cuda", "mps"])
@pytest.mark.parametrize("more", [[], ["--warmup", "2"]])
def test_cold_on_a_gpu_is_handed_on(backend, more, asked, monkeypatch):
    on(backend, monkeypatch)
    assert harness.main(KINDS["rms_norm"], [*SMALL, "--cold", *more]) == 0
    assert [options["cold"] for options in asked] == [True]


def test_under_profkit_cold_is_handed_on_whatever_the_number_of_calls(asked, monkeypatch):
    on("cuda", monkeypatch)
    monkeypatch.setenv("PROFKIT_DIRECTIVE", json.dumps({"pass_name": "timing", "record": "/nowhere"}))
    assert harness.main(KINDS["rms_norm"], [*SMALL, "--cold", "--iters", "3"]) == 0
    assert [options["cold"] for options in asked] == [True]


@pytest.mark.parametrize(
    ("backend", "argv", "sentence"),
    [
        ("cpu", [], "--cold flushes the caches of a GPU, and this runs on cpu"),
        ("cuda", ["--iters", "3"], "--cold is timed by profkit, call by call; leave out --iters"),
    ],
)
def test_where_nothing_can_be_flushed_cold_is_refused_before_anything_runs(
    backend, argv, sentence, asked, monkeypatch, capsys
):
    on(backend, monkeypatch)
    assert harness.main(KINDS["rms_norm"], [*SMALL, "--cold", *argv]) == 2
    assert capsys.readouterr() == ("", f"error: {sentence}\n")
    assert asked == []


class Waited(NumpyEngine):
    """NumPy under the name of MPS, with something to wait for."""

    def __init__(self):
        super().__init__()
        self.backend, self.waits = "mps", []

    @property
    def wait(self):
        return lambda: self.waits.append(1)


def test_on_mps_the_first_call_whose_result_is_checked_is_told_as_the_first_time(asked, monkeypatch):
    engine = Waited()
    monkeypatch.setattr(harness, "choose", lambda request, implementations: (engine, "numpy", []))
    assert harness.main(KINDS["rms_norm"], SMALL) == 0
    (options,) = asked
    assert options["first"] > 0
    assert engine.waits == [1]


def test_elsewhere_there_is_no_first_time_of_its_own(asked, monkeypatch):
    on("cuda", monkeypatch)
    assert harness.main(KINDS["rms_norm"], SMALL) == 0
    assert asked[0]["first"] is None


def test_a_number_of_calls_on_mps_is_timed_call_by_call_and_says_so(monkeypatch, capsys):
    engine = Waited()
    monkeypatch.setattr(harness, "choose", lambda request, implementations: (engine, "numpy", []))
    assert harness.main(KINDS["rms_norm"], [*SMALL, "--iters", "3"]) == 0
    said = capsys.readouterr().out
    assert "3 samples" in said
    assert "MPS, waited for; each call is waited for, and the wait is in these times" in said
    assert len(engine.waits) == 1 + 2 * 4

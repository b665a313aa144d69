"""What the scripts ask of profkit's clock: the device it runs on, and a cold cache where that is asked for."""

from __future__ import annotations

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

"""Every script computes the right thing, with torch, with NumPy, and as the plain baseline."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest
from workload_cases import KINDS, ODD, case_id

from benchmark import harness
from profkit.core.run_folder import read_run
from profkit.reporting.facts import fact_text
from tests.cli_runner import profkit
from tests.conftest import ROOT

FEW = ["--warmup", "1", "--iters", "2"]


def arguments(workload) -> list[str]:
    words = []
    for name, value in vars(workload).items():
        option = "--" + name.replace("_", "-")
        words += [option, str(value)] if not isinstance(value, bool) else [option if value else "--no-causal"]
    return words


def run(kind, *argv: str) -> int:
    return harness.main(kind, ["--backend", "cpu", *FEW, *argv])


@pytest.mark.parametrize("workload", ODD, ids=case_id)
def test_numpy_is_right_at_odd_sizes(workload, capsys):
    assert run(type(workload), "--impl", "numpy", *arguments(workload)) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{workload.name} (numpy): NumPy ")
    assert "every row is right" in said


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("workload", ODD, ids=case_id)
def test_torch_and_the_plain_baseline_are_right_at_odd_sizes(workload, dtype, capsys):
    baseline = import_module(f"benchmark.baselines.pytorch.{workload.name}").Baseline
    for kind in (type(workload), baseline):
        assert run(kind, "--dtype", dtype, *arguments(workload)) == 0
        assert "every row is right" in capsys.readouterr().out


@pytest.mark.parametrize(("warmup", "iters"), [(0, 1), (3, 4)])
def test_warmup_and_iters_are_the_numbers_of_calls(warmup, iters, monkeypatch, capsys):
    calls = []
    kind = KINDS["rms_norm"]
    step = kind.numpy

    def counted(self, *inputs):
        prepared = step(self, *inputs)
        return lambda: (calls.append(1), prepared())[1]

    monkeypatch.setattr(kind, "numpy", counted)
    chosen = ["--impl", "numpy", "--warmup", str(warmup), "--iters", str(iters)]
    assert harness.main(kind, [*chosen, "-b", "1", "--sequence", "2", "--hidden", "8"]) == 0
    assert len(calls) == 1 + warmup + iters  # the first is the check's


def test_a_wrong_result_ends_with_one_sentence_and_exit_code_1(monkeypatch, capsys):
    kind = KINDS["rms_norm"]
    monkeypatch.setattr(kind, "numpy", lambda self, x, w: lambda: x * 0)
    assert run(kind, "--impl", "numpy", "-b", "2") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: rms_norm is wrong: row ")
    assert said.count("\n") == 1


def test_without_torch_numpy_computes_and_the_output_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)  # what a missing module looks like to an import
    assert run(KINDS["rms_norm"], "-b", "1") == 0
    said = capsys.readouterr().out
    assert said.startswith("rms_norm (numpy): NumPy ")
    assert "torch is not installed, so NumPy computes this" in said


@pytest.mark.thorough
def test_that_numpy_stood_in_for_torch_is_on_the_screen_of_profile_and_in_the_notes_of_the_run(tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    argv = ("profile", "--backend", "cpu", "--passes", "timing,cprofile", "--depth", "quick", "--")
    command = (sys.executable, ROOT / "benchmark" / "rms_norm.py", "-b", "1", "--backend", "cpu")
    said = profkit(*argv, *command, cwd=tmp_path, env={"PYTHONPATH": str(hidden)}, process=True)
    assert said.code in (0, 1), said.err  # 1: it may miss a target
    sentence = "torch is not installed, so NumPy computes this (with torch: PROFKIT_TORCH=1 ./setup.sh)"
    assert " ".join(said.out.split()).count(sentence) == 1
    document = read_run(next(tmp_path.glob("reports/*")))
    assert [fact_text(note) for note in document.notes].count(sentence) == 1

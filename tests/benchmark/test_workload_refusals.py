"""What a script cannot do it says in one sentence, with the shared exit codes and no traceback."""

from __future__ import annotations

import sys
from shlex import quote

import pytest
from workload_cases import KINDS

from benchmark import choice, engines, harness

INSTALL = f"{quote(sys.executable)} -m pip install"
TINY = ["-b", "1", "--warmup", "0", "--iters", "1"]

USAGE = [
    (["-b", "0"], "argument -b/--batch: '0' is not a whole number of at least 1"),
    (["--warmup", "-1"], "argument --warmup: '-1' is not a whole number of at least 0"),
    (["--dtype", "int7"], "argument --dtype: invalid choice: 'int7'"),
    (["--hid", "8"], "unrecognized arguments: --hid 8"),
]

REFUSED = [
    (
        ["--impl", "numpy", "--backend", "cuda"],
        2,
        "NumPy computes on the CPU only, not on cuda",
    ),
    (["--impl", "numpy", "--dtype", "float16"], 2, "NumPy computes in float32 only here, not in float16"),
    (["--impl", "numpy", "-b", "999999999999"], 3, "more than the"),
]


def refusal(capsys, code: int, kind, argv: list[str]) -> str:
    assert harness.main(kind, argv) == code
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1, "one sentence"
    return said.err


@pytest.mark.parametrize(("argv", "sentence"), USAGE)
def test_a_wrong_argument_is_named_and_exits_with_2(argv, sentence, capsys):
    with pytest.raises(SystemExit) as stopped:
        harness.main(KINDS["gated_mlp"], argv)
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("argv", "code", "sentence"), REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(argv, code, sentence, capsys):
    assert sentence in refusal(capsys, code, KINDS["gated_mlp"], [*TINY, *argv])


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["cuda", "mps"])
def test_an_absent_device_exits_with_3_and_names_torch_and_the_way_out(backend, capsys):
    import torch

    if getattr(choice, f"_no_{backend}")(torch) is None:
        pytest.skip(f"{backend} is here")
    said = refusal(capsys, 3, KINDS["gated_mlp"], [*TINY, "--backend", backend])
    assert said.startswith(f"error: no {backend.upper()} device here: torch {torch.__version__} ")
    assert said.endswith("; try --backend cpu\n")


@pytest.mark.torch
def test_triton_on_the_cpu_needs_its_interpreter(monkeypatch, capsys):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    said = refusal(capsys, 2, KINDS["lora"], [*TINY, "--backend", "cpu", "--impl", "triton"])
    assert "set TRITON_INTERPRET=1" in said


@pytest.mark.parametrize("argv", [["--impl", "torch"], ["--impl", "triton"], ["--backend", "cuda"]])
def test_an_absent_torch_exits_with_3_where_numpy_will_not_do(argv, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    said = refusal(capsys, 3, KINDS["gated_mlp"], [*TINY, *argv])
    assert said == (f"error: torch is not installed: {INSTALL} torch; or try --backend cpu --impl numpy\n")


def test_a_torch_that_does_not_load_is_told_from_an_absent_one(monkeypatch, tmp_path, capsys):
    (tmp_path / "torch.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    said = refusal(capsys, 3, KINDS["gated_mlp"], [*TINY, "--impl", "torch"])
    assert "torch does not load (libgomp.so.1: cannot open shared object file)" in said


@pytest.mark.parametrize(
    "fault", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")]
)
def test_running_out_of_memory_exits_with_3_and_says_how_much_it_takes(fault, monkeypatch, capsys):
    def draw(*args, **kwargs):
        raise fault

    monkeypatch.setattr(engines.NumpyEngine, "draw", draw)
    said = refusal(capsys, 3, KINDS["gated_mlp"], [*TINY, "--impl", "numpy"])
    assert "inputs and output take" in said
    assert "there was not enough memory" in said


def test_ctrl_c_exits_with_130(monkeypatch):
    def draw(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(engines.NumpyEngine, "draw", draw)
    assert harness.main(KINDS["gated_mlp"], [*TINY, "--impl", "numpy"]) == 130

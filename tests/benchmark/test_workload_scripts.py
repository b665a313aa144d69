"""The scripts as programs: from any folder, by any path, and with a help that costs nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from workload_cases import KINDS, ROOT

SCRIPTS = [
    *(ROOT / "benchmark" / f"{name}.py" for name in KINDS),
    *(ROOT / "benchmark/baselines/pytorch" / f"{name}.py" for name in KINDS),
]
TINY = ["-b", "1", "--backend", "cpu", "--warmup", "0", "--iters", "1"]


def script(path, *argv, cwd=None, **env):
    environment = {**os.environ, **env}
    command = [sys.executable, str(path), *argv]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=60)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT / "benchmark").as_posix())
def test_help_loads_nothing_heavy_and_has_an_example(path, tmp_path):
    # torch takes seconds to import and is not even needed here: an unusable one is put in its place
    for heavy in ("torch", "numpy", "triton"):
        (tmp_path / f"{heavy}.py").write_text("raise SystemExit('imported for --help')")
    done = script(path, "--help", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    name = path.relative_to(ROOT).as_posix()
    assert f"python {name} -b 8 --backend cpu" in done.stdout
    assert "--iters" in done.stdout


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize("words", [("rms_norm.py", "--impl", "numpy"), ("baselines/pytorch/gated_mlp.py",)])
def test_a_script_runs_from_another_folder(words, tmp_path):
    done = script(ROOT / "benchmark" / words[0], *words[1:], *TINY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "every row is right" in done.stdout

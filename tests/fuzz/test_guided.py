"""Inputs that reach new code are kept where atheris is installed; without it the trial goes on as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz import guided, mutate
from tests.fuzz.targets import TARGETS

WITHOUT_ATHERIS = "import sys; sys.modules['atheris'] = None; sys.argv[0] = 'fuzz'; "
MAIN = "from tests.fuzz.__main__ import main; sys.exit(main())"


def fuzz(folder: Path, *options: str, begin: str = "import sys; ") -> subprocess.CompletedProcess[str]:
    words = [
        "--seconds",
        "4",
        "--seed",
        "1",
        "--target",
        "cubin",
        "--corpus",
        str(folder / "corpus"),
        *options,
    ]
    return subprocess.run(
        [sys.executable, "-c", begin + MAIN, *words], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_inputs_that_reach_new_code_are_kept_for_the_next_call(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="needs atheris: pip install -e '.[fuzz]'")
    done = fuzz(tmp_path, "--guided", "yes", "--pool", str(tmp_path / "pool"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "guided by what is reached" in done.stdout
    seeds = len(TARGETS["cubin"].seeds())
    assert len(list((tmp_path / "pool" / "cubin").iterdir())) >= seeds + 5


def test_without_atheris_inputs_are_tried_unguided(tmp_path: Path) -> None:
    done = fuzz(tmp_path, begin=WITHOUT_ATHERIS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "not guided" in done.stdout


def test_without_atheris_guidance_that_is_asked_for_is_refused_with_what_installs_it(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--guided", "yes", begin=WITHOUT_ATHERIS)
    assert done.returncode == 2
    assert "pip install -e '.[fuzz]', or --guided no" in done.stderr


def test_a_target_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--guided", "no", "--target", "made-up")
    assert done.returncode == 2
    assert "there is no 'made-up', only run, run-folder" in done.stderr


def test_what_is_not_watched_lies_in_the_packages_that_show_results() -> None:
    modules = guided.modules_without_readers()
    assert "profkit.reporting" in modules
    assert "profkit.cli.summarize" in modules
    assert not any(
        name.startswith(("profkit.profilers", "profkit.core", "profkit.kernels")) for name in modules
    )


def test_a_pool_is_bounded_in_number_and_size() -> None:
    import random

    pool, by = mutate.Pool([b"seed"]), random.Random(1)
    for number in range(2 * mutate.POOL):
        pool.keep(b"%d" % number, by)
    pool.keep(b"x" * 2000, by)
    assert len(pool.inputs) == mutate.POOL
    assert max(map(len, pool.inputs)) < 2000

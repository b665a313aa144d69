"""A wheel in an empty environment: what it brings, how much that is, and that it profiles."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import profkit
from tests.conftest import ROOT

installs = pytest.mark.skipif(
    os.environ.get("PROFKIT_INSTALL") != "1",
    reason="PROFKIT_INSTALL=1 installs wheels with each extra: minutes, and a package index",
)
# What each extra is there for; `dev` and `docs` are for this repository.
EXTRAS = {
    "torch": ("torch",),
    "triton": ("torch", "triton"),
    "cuda": ("nvtx",),
    "attach": (),  # a program
    "mcp": ("mcp",),
    "modal": ("modal",),
    "notebook": ("IPython",),
    "llm": ("openai", "anthropic"),
}
MOST_MIB = 150  # of the base install: 26 pip and setuptools, 73 numpy
PROGRAM = "total = 0\nfor i in range(20_000_000):\n    total += i * i % 7\n"


SETTINGS = (ROOT / "pyproject.toml").read_text()
PRESENT = re.findall(
    r"^(\w+) = \[", SETTINGS.partition("[project.optional-dependencies]")[2].partition("\n[")[0], re.MULTILINE
)


def test_each_extra_is_tried_and_the_version_stands_once() -> None:
    assert {*PRESENT} - {"dev", "docs"} == {*EXTRAS}
    assert 'dynamic = ["version"]' in SETTINGS
    assert f"## {profkit.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert (ROOT / "profkit" / "py.typed").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since a build leaves a folder beside its sources."""
    source = tmp_path_factory.mktemp("source")
    for name in ("profkit", "setup"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, source], check=True
    )
    return next(folder.glob("profkit-*.whl"))


def install(wheel: Path, folder: Path, extra: str = "") -> Path:
    """The `bin` of a new environment with the wheel in it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip"]
    subprocess.run([*pip, "install", "-q", f"{wheel}[{extra}]" if extra else wheel], check=True)
    subprocess.run([*pip, "check"], check=True)
    return folder / "bin"


@installs
def test_the_base_install_is_light_and_profiles_a_program(wheel: Path, tmp_path: Path) -> None:
    begun = time.perf_counter()
    bin = install(wheel, tmp_path / "base")
    mib = sum(path.lstat().st_size for path in (tmp_path / "base").rglob("*")) / 2**20
    print(f"with pip: {time.perf_counter() - begun:.0f} s, {mib:.0f} MiB")
    assert mib < MOST_MIB
    (tmp_path / "yours.py").write_text(PROGRAM)
    env = {"PATH": f"{bin}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [bin / "profkit", "profile", "--passes", "timing,stacks", "--", "python", "yours.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "at yours.py:3" in done.stdout
    code = "import profkit, sys; profkit.profile; profkit.load; print({'numpy', 'torch', 'IPython'} & {*sys.modules})"
    said = subprocess.run([bin / "python", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


@installs
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_installs_and_what_it_brings_is_imported(extra: str, wheel: Path, tmp_path: Path) -> None:
    bin = install(wheel, tmp_path, extra)
    code = "; ".join(f"import {name}" for name in ("profkit", *EXTRAS[extra]))
    subprocess.run([bin / "python", "-c", code], check=True)
    if extra == "notebook":
        done = subprocess.run(
            [bin / "ipython", "--no-banner", "-c", "%load_ext profkit\n%profkit sum(range(30_000_000))"],
            capture_output=True,
            text=True,
        )
        assert "What to do" in done.stdout, done.stdout + done.stderr

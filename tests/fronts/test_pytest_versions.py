"""The plugin in pytest 6.2 to 9 with pluggy 0.13 to the newest: invisible without its options, and works with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.run_folder import read_run
from tests.wheel import build_wheel, installs

pytestmark = installs
# 6.2.5 and 0.13.1 are about Ubuntu 22.04's, 7.2.1 and 1.0.0 are Debian 12's. None: the newest that fits.
VERSIONS = [
    ("6.2.5", "0.13.1"),
    ("6.2.5", "1.1.0"),
    ("7.0.1", "0.13.1"),
    ("7.2.1", "1.0.0"),
    ("7.4.4", "1.2.0"),
    ("8.0.2", "1.3.0"),
    ("8.3.5", "1.5.0"),
    ("8.4.2", "1.6.0"),
    ("9.0.0", "1.6.0"),
    (None, None),
]
NO_INDEX = "from versions: none"  # pip found nothing of this name
OLD = sys.version_info >= (3, 12)  # pytest 6.2 to 7.2 import what Python 3.12 has no more
SUITE = """
import time

import pytest

def test_busy():
    until = time.process_time() + 0.4
    while time.process_time() < until:
        sum(i * i for i in range(1000))

def test_wrong():
    assert False
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment without any package."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def install(folder: Path, *what: str) -> Path:
    """Install into a folder; skip where no package index answers."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--target",
        str(folder),
    ]
    done = subprocess.run([*pip, *what], capture_output=True, text=True)
    if done.returncode and NO_INDEX in done.stderr:
        pytest.skip(f"no package index has {what[0]}: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def profkit_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Profkit as its wheel installs it, with what it needs."""
    return install(tmp_path_factory.mktemp("profkit"), str(build_wheel(tmp_path_factory.mktemp("wheel"))))


@pytest.mark.parametrize(("pytest_version", "pluggy"), VERSIONS)
def test_the_plugin_in_an_environment_with(
    pytest_version: str | None, pluggy: str | None, python: Path, profkit_folder: Path, tmp_path: Path
) -> None:
    if OLD and pytest_version is not None and pytest_version < "7.3":
        pytest.skip(f"pytest {pytest_version} does not run with this Python")
    wanted = [
        f"{name}=={version}" if version else name
        for name, version in (("pytest", pytest_version), ("pluggy", pluggy))
    ]
    packages = install(tmp_path / "packages", *wanted)
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_shop.py").write_text(SUITE)

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [str(python), "-m", "pytest", "-p", "no:cacheprovider", *words],
            cwd=suite,
            env={
                "PATH": f"{python.parent}:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "PYTHONPATH": f"{packages}:{profkit_folder}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    code, said = run("--version")
    assert (code, f"pytest {pytest_version or ''}" in said, "Traceback" in said) == (0, True, False), said
    code, said = run()
    assert (code, "1 failed, 1 passed" in said, "arning" in said) == (1, True, False), said
    assert "profkit-" in said  # so it was loaded
    code, said = run("--help")
    assert (code, "--profkit-test=NAME" in said) == (0, True), said
    code, said = run("--profkit")
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    assert "test_shop.py::test_busy" in said.partition("Slowest tests")[2], said
    assert "% at test_shop.py:" in said, said
    whole = {path.name for path in suite.glob("reports/*")}
    code, said = run("--profkit-test", "test_shop.py::test_busy")
    assert code == 0, said
    (folder,) = (path for path in suite.glob("reports/*") if path.name not in whole)
    document = read_run(folder)
    assert (document.name, document.timings[0].name) == ("test_busy", "test_busy")

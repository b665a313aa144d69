"""What is not tried is counted and said: by pytest at its end, and by check.sh in its last lines."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import browser
from tests.cli_runner import WITHOUT_OTHERS
from tests.conftest import ROOT
from tests.skips import reason_of

SUITE = {
    "conftest.py": "from tests.skips import pytest_terminal_summary as pytest_terminal_summary\n",
    "test_whole.py": """
import pytest

pytest.importorskip("no_such_package")

def test_one(): ...
def test_two(): ...
@pytest.mark.timed
def test_timed(): ...
def helper(): ...
""",
    "test_some.py": """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_marked(n): pytest.skip("no_such_package is not installed")
@pytest.mark.skipif(True, reason="needs a GPU")
def test_gpu(): ...
@pytest.mark.xfail(reason="known")
def test_expected(): assert False
def test_runs(): ...
""",
}

THOROUGH = """
import pytest

@pytest.mark.thorough
@pytest.mark.parametrize("n", range(2))
def test_thorough(n): assert False
@pytest.mark.thorough
@pytest.mark.timed
def test_both(): assert False
def test_runs(): ...
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name, text in SUITE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run_suite(folder: Path, *words: str, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PROFKIT_SKIPPED"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WITHOUT_OTHERS, *words]
    environment |= {"PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True).stdout


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_each_reason_is_a_line_with_its_tests_also_those_of_files_skipped_whole(
    suite: Path, workers: tuple[str, ...]
) -> None:
    said = run_suite(suite, "-m", "not timed", *workers)
    assert re.findall(r"^\d+ tests? skipped: .*", said, re.MULTILINE) == [
        "5 tests skipped: no_such_package is not installed",
        "1 test skipped: needs a GPU",
    ]
    said = run_suite(suite, "-m", "timed", *workers)
    assert re.findall(r"^\d+ tests? skipped: .*", said, re.MULTILINE) == [
        "1 test skipped: no_such_package is not installed"
    ]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Skipped: torch is not installed", "torch is not installed (PROFKIT_TORCH=1 ./setup.sh)"),
        (
            "Skipped: could not import 'torch': No module named 'torch'",
            "torch is not installed (PROFKIT_TORCH=1 ./setup.sh)",
        ),
        ("Skipped: needs a CUDA device\nand more", "needs a CUDA device"),
    ],
)
def test_a_package_has_one_reason_with_what_brings_it(reason: str, said: str) -> None:
    assert reason_of(reason) == said


def check(suite: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run check.sh itself on a small suite, with a set-up that makes nothing and this Python."""
    (suite / "tests").mkdir()
    for file in suite.glob("*.py"):
        shutil.move(file, suite / "tests" / file.name)
    shutil.copy(ROOT / "check.sh", suite)
    (suite / "setup.sh").write_text("#!/bin/sh\n")
    # lint, format, types and spelling are no part of what is tried here
    (suite / ".venv" / "bin").mkdir(parents=True)
    (suite / ".venv" / "bin" / "python").write_text(
        f'#!/bin/sh\ncase $2 in ruff | mypy | codespell_lib) exit 0 ;; esac\nexec {sys.executable} "$@"\n'
    )
    for program in (suite / "setup.sh", suite / ".venv" / "bin" / "python"):
        program.chmod(0o755)
    (suite / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nmarkers =\n  timed: real time\n  thorough: costly\n"
    )
    # Not in the way of the imported package `tests`: only the files of this folder are collected.
    (suite / "tests" / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n" + SUITE["conftest.py"]
    )
    return subprocess.run(
        [suite / "check.sh", *words],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": shlex.join(WITHOUT_OTHERS)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.thorough
def test_check_ends_with_the_sums_of_its_steps_and_names_what_took_most_of_the_processor(suite: Path) -> None:
    (suite / "test_thorough.py").write_text(THOROUGH)
    (suite / "test_costs.py").write_text(
        "import subprocess, sys\n"
        "code = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "def test_of_a_child(): subprocess.run([sys.executable, '-c', code])\n"
    )
    lines = check(suite).stdout.splitlines()
    assert lines[-5:] == [
        "6 tests skipped: no_such_package is not installed",
        "3 tests skipped: thorough: left out here, and run by ./check.sh --all",
        "1 test skipped: needs a GPU",
        "",
        "lint, format, types, spelling and tests passed",
    ], lines
    (cost,) = (line for line in lines if line.endswith("test_costs.py::test_of_a_child"))
    assert float(cost.split()[0]) >= 0.3


@pytest.mark.thorough
def test_with_all_what_is_thorough_runs(suite: Path) -> None:
    (suite / "test_thorough.py").write_text(THOROUGH)
    done = check(suite, "--all")
    assert done.stdout.partition("\nfailed: ")[2].startswith("tests timed tests"), done.stdout + done.stderr
    assert "./check.sh --all" not in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("passes", [True, False], ids=["passes then", "fails again"])
def test_check_runs_a_failed_test_once_more_alone_and_names_it(
    suite: Path, tmp_path: Path, passes: bool
) -> None:
    (suite / "test_fails.py").write_text(
        "from pathlib import Path\n"
        f"seen = Path({str(tmp_path / 'seen')!r})\n"
        "def test_first_run_only():\n"
        "    if not seen.exists():\n"
        "        seen.touch()\n"
        "        assert False\n"
        "def test_always():\n"
        f"    assert {passes}\n"
    )
    done = check(suite)
    only_alone = "passed only with nothing beside it:\ntests/test_fails.py::test_first_run_only\n"
    assert (only_alone in done.stdout) == passes
    failed = done.stdout.partition("\nfailed: ")[2].split()
    assert ("tests" in failed) != passes, done.stdout + done.stderr


@pytest.mark.thorough
def test_many_failures_are_not_run_again(suite: Path) -> None:
    (suite / "test_fails.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_fails(n):\n    assert False\n"
    )
    done = check(suite)
    assert "once more" not in done.stdout
    assert "tests" in done.stdout.partition("\nfailed: ")[2].split()


def test_a_browser_whose_driver_does_not_start_is_a_reason_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    text = "/a/driver/node: error while loading shared libraries: libatomic.so.1: cannot open"
    (tmp_path / "python").write_text(f"#!/bin/sh\necho '{text}' >&2\nexit 127\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("PROFKIT_BROWSER", "sh")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert browser.why_not() == (
        "the browser's driver does not start: node: error while loading shared libraries: libatomic.so.1: cannot open"
    )


def test_what_a_pytest_skips_that_a_test_starts_is_not_counted(tmp_path: Path) -> None:
    code = "import os; from tests import skips; print(os.environ.get(skips.FILE))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PROFKIT_SKIPPED": str(tmp_path / "sum")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "None"

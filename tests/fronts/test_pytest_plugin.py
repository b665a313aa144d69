"""`pytest --profkit` on a suite of its own: parts, slowest tests, workers; and nothing without the option."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.analysis.stacks.python_code import PythonSample
from profkit.core.run_folder import read_run
from profkit.core.types import Frame
from profkit.fronts import pytest_plugin
from profkit.fronts.pytest_plugin import DEEP, FILE, part_of
from tests.cli_runner import PROFKIT

SUITE = {
    "shop.py": """
def unique(items):
    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
""",
    "test_shop.py": """
import time

import pytest

from shop import unique


@pytest.fixture
def database():
    time.sleep(0.3)


def test_database(database):
    pass


def test_unique():
    for _ in range(5):
        assert len(unique([str(number) for number in range(4000)])) == 4000


def test_wrong():
    assert False
""",
}
PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "profkit.fronts.pytest_plugin",
)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name, text in SUITE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run_pytest(folder: Path, *words: str) -> tuple[int, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PROFKIT_"))
    }
    done = subprocess.run(
        [*PYTEST, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_suite_has_its_parts_and_the_hot_line_of_slow_tests(suite: Path, workers: tuple[str, ...]) -> None:
    code, said = run_pytest(suite, "--profkit", *workers)
    assert code == 1, said
    slow = said.partition("Slowest tests")[2]
    assert "test_shop.py::test_unique\n" in slow
    assert "at shop.py:5  if item not in found:" in slow
    assert "ms of it in its fixtures" in slow
    parts = said.partition("of pytest's processes: ")[2].partition("\n")[0]
    assert {part.rpartition(" ")[0].rpartition(" ")[0] for part in parts.split(", ")} >= {"tests", "fixtures"}
    assert "waiting" not in parts
    document = read_run(next(suite.glob("reports/*")))
    assert {(spot.where.function, spot.kind) for spot in document.hot_spots} >= {
        ("unique", "python"),
        ("database", "sleep"),
    }
    assert not [
        spot for spot in document.hot_spots if spot.where.file == "<string>"
    ]  # how xdist starts a worker


def test_without_the_option_nothing_is_loaded(suite: Path) -> None:
    (suite / "test_loaded.py").write_text(
        "import os, sys\n\n"
        "def test_loaded():\n"
        "    loaded = {name for name in sys.modules if name.split('.')[0] == 'profkit'}\n"
        "    assert loaded == {'profkit', 'profkit.fronts', 'profkit.fronts.pytest_plugin'}\n"
        f"    assert {FILE!r} not in os.environ\n"
    )
    code, said = run_pytest(suite, "test_loaded.py")
    assert code == 0, said


def test_a_run_without_tests_says_nothing(suite: Path) -> None:
    code, said = run_pytest(suite, "--profkit", "-k", "nothing")
    assert (code, "profkit" in said) == (5, False)


def frame(function: str, file: str) -> Frame:
    return Frame(function, file=file)


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        ((frame("pytest_pyfunc_call", "/x/_pytest/python.py"), frame("test_a", "/t.py")), "tests"),
        ((frame("TestCaseFunction.runtest", "/x/_pytest/unittest.py"),), "tests"),
        ((frame("call_fixture_func", "/x/_pytest/fixtures.py"), frame("database", "/t.py")), "fixtures"),
        (
            (frame("Session.perform_collect", "/x/_pytest/main.py"), None, frame("<module>", "/t.py")),
            "imports",
        ),
        ((None, frame("_rewrite_test", "/x/_pytest/assertion/rewrite.py")), "pytest itself"),
        ((frame("TestQueue.get", "/x/xdist/remote.py"),), "waiting for other workers"),
        ((frame("get", "/x/cache.py"), frame("runtest", "/mine.py")), "pytest itself"),
    ],
)
def test_each_stack_is_part_of_one_thing(frames: tuple[Frame | None, ...], part: str) -> None:
    assert part_of(PythonSample(frames, (1,) * len(frames), 0.0, 1.0, True)) == part


def test_one_test_is_handed_over_and_is_a_region(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def call(argv: list[str], env: dict[str, str], cwd: Path) -> int:
        called.append(argv)
        quick = [
            "profile",
            "--passes",
            "timing",
            "--depth",
            "quick",
            "-q",
            *argv[argv.index("profile") + 1 :],
        ]
        return subprocess.run(
            [*PROFKIT, *quick], env=env, cwd=cwd, check=False, capture_output=True
        ).returncode

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.chdir(suite)
    name = "test_shop.py::test_unique"
    plugins = ["-p", "no:cacheprovider", "-p", pytest_plugin.__name__]
    assert pytest.main([*plugins, "--profkit-test", name]) == 0
    assert called[0][-2:] == ["-n0", name]
    document = read_run(next(suite.glob("reports/*")))
    assert (document.name, document.timings[0].name) == ("test_unique", "test_unique")
    assert DEEP not in os.environ

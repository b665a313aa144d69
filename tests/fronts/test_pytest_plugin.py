"""`pytest --profkit` on a suite of its own: parts, slowest tests, workers; and nothing without the option."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from profkit.analysis.stacks.lines import LineTally
from profkit.analysis.stacks.python_code import PythonSample
from profkit.core.run_folder import read_run
from profkit.core.types import Frame
from profkit.fronts import pytest_plugin, pytest_suite
from profkit.fronts.in_process import uncollected
from profkit.fronts.pytest_plugin import DEEP
from profkit.fronts.pytest_suite import FILE, _tally_of, part_of
from tests.cli_runner import PROFKIT
from tests.conftest import ROOT

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


def run_pytest(folder: Path, *words: str, **variables: str) -> tuple[int, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PROFKIT_"))
    }
    done = subprocess.run(
        [*PYTEST, *words],
        cwd=folder,
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.thorough
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


def test_the_plugin_imports_nothing_but_itself() -> None:
    code = (
        "import sys, pytest\n"
        "before = {*sys.modules}\n"
        f"import {pytest_plugin.__name__}\n"
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["profkit", "profkit.fronts", "profkit.fronts.pytest_plugin"]


@pytest.mark.thorough
@pytest.mark.timed
def test_the_plugin_loads_in_less_than_a_millisecond(tmp_path: Path) -> None:
    """More than an empty module as deep in a package: to find one takes half a millisecond, and more on slow disks."""
    package = tmp_path / "empty" / "folder"
    package.mkdir(parents=True)
    for file in (package.parent / "__init__.py", package / "__init__.py", package / "module.py"):
        file.touch()
    code = (
        "import sys, time, pytest\n"
        "sys.dont_write_bytecode = False\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "begun = time.thread_time()\n"
        "__import__(sys.argv[2])\n"
        "print(time.thread_time() - begun)"
    )

    def seconds(folder: Path, module: str) -> float:
        argv = [sys.executable, "-c", code, str(folder), module]
        return float(subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)

    pairs = [
        (seconds(ROOT, pytest_plugin.__name__), seconds(tmp_path, "empty.folder.module")) for _ in range(7)
    ]
    ours, empty = map(min, zip(*pairs, strict=True))
    assert ours - empty < 1e-3


@pytest.mark.parametrize("module", [pytest_plugin, pytest_suite])
def test_hooks_are_wrapped_in_the_way_that_every_pluggy_knows(module: ModuleType) -> None:
    calls = [
        {word.arg for word in node.keywords}
        for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.hookimpl"
    ]
    assert calls == [{"hookwrapper"}]


@pytest.fixture
def broken_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which whatever profkit needs cannot be imported."""
    folder = tmp_path_factory.mktemp("broken")
    for name in ("yaml", "numpy", "rich", "psutil", "jinja2", "typer", "capstone"):
        (folder / f"{name}.py").write_text(f"raise RuntimeError('{name} is broken')\n")
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 1, "1 failed, 2 passed"),
        (("--version",), 0, "pytest"),
        (("--help",), 0, "--profkit-test=NAME"),
        (("--profkit",), 4, "ERROR: --profkit: profkit cannot be loaded: RuntimeError: psutil is broken"),
    ],
)
def test_a_broken_package_ends_only_a_run_that_needs_it(
    suite: Path, broken_packages: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    ended, text = run_pytest(suite, *words, PYTHONPATH=str(broken_packages))
    assert (ended, said in text, "Traceback (most" in text) == (code, True, False), text


@pytest.mark.thorough
def test_a_fault_of_the_result_leaves_the_result_of_the_tests(suite: Path, broken_packages: Path) -> None:
    (broken_packages / "psutil.py").unlink()
    code, said = run_pytest(suite, "--profkit", PYTHONPATH=str(broken_packages))
    assert (code, "no result: " in said, "is broken" in said, "INTERNALERROR" in said) == (
        1,
        True,
        True,
        False,
    ), said
    assert "1 failed, 2 passed" in said


THEIRS = """
def pytest_addoption(parser):
    parser.addoption("--profkit", default="none", help="an option of theirs")

def pytest_report_header(config):
    return "theirs: " + config.getoption("--profkit")
"""


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["conftest", "plugin"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "theirs: none"),
        (("--help",), "an option of theirs"),
        (("--profkit", "3"), "theirs: 3"),
        (("--profkit=3",), "theirs: 3"),
    ],
)
def test_an_option_of_the_same_name_stays_that_of_its_owner(
    suite: Path, place: str, words: tuple[str, ...], said: str
) -> None:
    (suite / f"{place}.py").write_text(THEIRS)
    plugin = ("-p", "plugin") if place == "plugin" else ()
    code, text = run_pytest(suite, "-v", *plugin, *words, "-k", "database", PYTHONPATH=str(suite))
    assert (code, said in text) == (0, True), text
    assert not (suite / "reports").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["addopts", "file"])
def test_the_option_may_stand_in_the_settings_and_in_a_file_of_words(suite: Path, where: str) -> None:
    (suite / "words").write_text("--profkit\n")
    (suite / "pytest.ini").write_text(
        "[pytest]\naddopts = --profkit\n" if where == "addopts" else "[pytest]\n"
    )
    code, said = run_pytest(suite, *(("@words",) if where == "file" else ()), "-k", "database")
    assert (code, "Slowest tests" in said) == (0, True), said


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


QUICK = ("--passes", "timing", "--depth", "quick", "-q")


@pytest.fixture
def called(suite: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that `--profkit-test` runs in the suite, each done; a profile in its quickest form."""
    found: list[list[str]] = []

    def call(argv: list[str], cwd: Path, env: dict[str, str] | None = None, stdin: int | None = None) -> int:
        found.append(argv)
        quick = (
            [*PROFKIT, "profile", *QUICK, *argv[argv.index("profile") + 1 :]] if "profile" in argv else argv
        )
        return subprocess.run(
            quick, env=env, cwd=cwd, stdin=stdin, check=False, capture_output=True
        ).returncode

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.chdir(suite)
    return found


def profile_test(name: str) -> int:
    return int(pytest.main(["-p", "no:cacheprovider", "-p", pytest_plugin.__name__, "--profkit-test", name]))


@pytest.mark.thorough
def test_one_test_is_handed_over_and_is_a_region(suite: Path, called: list[list[str]]) -> None:
    name = "test_shop.py::test_unique"
    assert profile_test(name) == 0
    assert [argv[-2:] for argv in called] == [["-n0", name]] * 2
    document = read_run(next(suite.glob("reports/*")))
    assert (document.name, document.timings[0].name) == ("test_unique", "test_unique")
    assert DEEP not in os.environ


@pytest.mark.thorough
def test_what_all_instruments_of_a_test_may_take_is_stated_in_its_own_runs(
    called: list[list[str]], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 102.5])
    monkeypatch.setattr(pytest_suite, "now", lambda: next(clock))
    assert profile_test("test_shop.py::test_database") == 0
    plain, profile = called
    assert "profile" not in plain
    assert profile[profile.index("--budget") + 1] == "23"  # 5 x 2.5 s, and 10 s
    said = capfd.readouterr().out
    assert "23 s at most for all instruments" in said
    assert f"$ {DEEP}=1 profkit profile --name test_database --budget 23 -- " in said


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "code"), [("test_shop.py::test_wrong", 1), ("test_nowhere", 5)])
def test_a_test_that_fails_or_is_not_there_is_not_profiled(
    suite: Path, called: list[list[str]], name: str, code: int
) -> None:
    assert profile_test(name) == code
    assert len(called) == 1
    assert not list(suite.glob("reports/*"))


ALIKE = {
    "test_alike.py": """
import time
import unittest


class FirstTests(unittest.TestCase):
    def test_same(self):
        time.sleep(0.5)  # the first


class SecondTests(unittest.TestCase):
    def test_same(self):
        time.sleep(0.4)  # the second


def test_parts(subtests):
    for part in range(4):
        with subtests.test(part=part):
            time.sleep(0.2)
"""
}
LOADERS = """
import sys


def pytest_unconfigure():
    rewritten = {
        name
        for name, module in sys.modules.items()
        if name.startswith("profkit.") and "Rewriting" in type(module.__spec__.loader).__name__
    }
    assert "profkit.fronts.read_recording" in sys.modules
    print("rewritten:", *sorted(rewritten - {"profkit.fronts", "profkit.fronts.pytest_plugin"}))
"""


@pytest.fixture
def alike(tmp_path: Path) -> Path:
    for name, text in ALIKE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def rows_of_tests(shown: str) -> dict[str, tuple[float, str]]:
    """Seconds, and the line below, of each of the slowest tests."""
    lines = shown.partition("Slowest tests")[2].splitlines()[1:]
    rows = {}
    for row, below in zip(lines, [*lines[1:], ""], strict=True):
        if "::" in row:
            value, unit, name = row.split()[:3]
            rows[name] = float(value) * {"s": 1.0, "ms": 1e-3}[unit], below
    return rows


@pytest.mark.thorough
@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="it has no subtests of its own")
def test_the_time_of_a_subtest_counts_once(alike: Path) -> None:
    code, shown = run_pytest(alike, "--profkit")
    assert code == 0, shown
    seconds, _ = rows_of_tests(shown)["test_alike.py::test_parts"]
    assert 0.8 <= seconds < 1.4  # 1.6 with that of its subtests


@pytest.mark.thorough
@pytest.mark.skipif(sys.version_info < (3, 11), reason="a sample names no class")
def test_tests_of_one_name_have_each_their_own_line(alike: Path) -> None:
    rows = rows_of_tests(run_pytest(alike, "--profkit")[1])
    assert "# the first" in rows["test_alike.py::FirstTests::test_same"][1]
    assert "# the second" in rows["test_alike.py::SecondTests::test_same"][1]


def test_of_tests_that_samples_do_not_tell_apart_none_has_a_line() -> None:
    tally = LineTally()
    both = {("test_a.py", "First.test_same"): tally, ("test_a.py", "Second.test_same"): LineTally()}
    assert _tally_of(("test_a.py", "Third.test_same"), both) is None
    assert _tally_of(("test_a.py", "Inherits.test_same"), {("test_a.py", "test_same"): tally}) is tally


@pytest.mark.thorough
def test_pytest_rewrites_nothing_of_what_makes_the_page(alike: Path) -> None:
    (alike / "conftest.py").write_text(LOADERS)
    _, shown = run_pytest(alike, "--profkit", "-s", PYTHONDONTWRITEBYTECODE="1")
    assert [line.strip() for line in shown.splitlines() if line.startswith("rewritten:")] == ["rewritten:"]


def test_the_collector_is_left_as_the_program_had_it() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

"""What every room's tests share: the recorded reports, and whether a tool works here."""

from __future__ import annotations

import gc
import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import settings

# Here and nowhere else: playwright runs once in a process, so all tests of a session share one browser.
from tests.browser import browser as browser
from tests.lines_run import pytest_unconfigure as pytest_unconfigure
from tests.skips import pytest_terminal_summary as pytest_terminal_summary
from tests.temporary import TEMPORARY

ROOT = Path(__file__).resolve().parent.parent

# Hundreds of tests start Python. Without the compiled files each start compiles the package anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# `python` and `python3` in a script are the Python of the tests, also where its environment is not activated.
# Stand-ins for a GPU all have the same UUID, and tests run side by side.
os.environ["PROFKIT_LOCKS"] = ""
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


# How long an example takes depends on the machine and on who else uses it.
settings.register_profile("profkit", deadline=None, max_examples=40)
settings.load_profile("profkit")


def pytest_configure() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and every child would inherit that.

    So it is with SIGHUP below nohup.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests are made and stay: looking for garbage among them again and again took half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # nor does any later collection look at them, or a test wait that asks for one
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For `-m timed` only files with such tests are loaded: to collect all takes as long as some of these tests."""
    if config.option.markexpr != "timed" or collection_path.suffix != ".py":
        return None
    return "pytest.mark.timed" not in collection_path.read_text(encoding="utf-8") or None


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tests/data/reports with its files unpacked."""
    packed, folder = ROOT / "tests" / "data" / "reports", tmp_path_factory.mktemp("reports")
    for path in filter(Path.is_file, packed.rglob("*")):
        copy = folder / path.relative_to(packed)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".gz":
            copy.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        else:
            shutil.copyfile(path, copy)
    return folder


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are profiled in this process write no page: a fifth of their time, for tests that open none."""
    from profkit.profiling import profile

    monkeypatch.setattr(profile, "write_page", lambda *_: None)


@lru_cache
def _why_not(tool: str) -> str | None:
    if tool == "torch":
        try:
            import torch  # noqa: F401
        except ImportError:
            return "torch is not installed"
        return None
    if shutil.which(tool) is None:
        return f"{tool} is not installed"
    probe = {
        "perf": ["perf", "stat", "-e", "task-clock", "true"],
        "valgrind": ["valgrind", "--tool=none", "true"],
    }[tool]
    done = subprocess.run(probe, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{tool} does not work here: {done.stderr.strip()[:120]}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what needs a tool that does not work here."""
    for tool in ("perf", "valgrind", "torch"):
        if item.get_closest_marker(tool) is not None and (reason := _why_not(tool)) is not None:
            pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_in_the_temporary_folder() -> Iterator[None]:
    """No test leaves a folder or a file of profkit's there, nor does what it starts."""
    yield
    gc.collect()
    folder = Path(TEMPORARY.name)
    left = sorted(str(path.relative_to(folder)) for path in folder.glob("profkit-*/**/*"))
    left += sorted(path.name for path in folder.glob("profkit-*"))
    assert not left, f"tests left these in the temporary folder: {left[:20]}"


LEAVING_SECONDS = 10.0  # for threads that are just ending what they have started


@pytest.fixture(scope="module", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """No module leaves a child under way: beside another one nobody could say whose an orphan is.

    Where several children may have orphans, none is taken for its member, and a later test of that would fail.
    """
    yield
    judging = sys.modules.get("profkit.evaluation.judging")
    if judging is not None:
        judging._kept.close()  # it stays until the process ends
    trees = sys.modules.get("profkit.core.process_tree")
    deadline = time.monotonic() + LEAVING_SECONDS
    while trees is not None and trees._running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert trees is None or not trees._running

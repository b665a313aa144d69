"""What every room's tests share: the recorded reports beside the project, and whether a tool works here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import settings

# Here and nowhere else: playwright runs once in a process, so all tests of a session share one browser.
from tests.browser import browser as browser

ROOT = Path(__file__).resolve().parent.parent

# Hundreds of tests start Python. Without the compiled files each start compiles the package anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# `python` and `python3` in a script are the Python of the tests, also where its environment is not activated.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


# How long an example takes depends on the machine and on who else uses it.
settings.register_profile("profkit", deadline=None)
settings.load_profile("profkit")


def pytest_configure() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and every child would inherit that.

    So it is with SIGHUP below nohup.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of recorded reports beside the project (override: PROFKIT_FIXTURES)."""
    folder = Path(os.environ.get("PROFKIT_FIXTURES", ROOT.parent / "shared" / "fixtures"))
    if not folder.is_dir():
        pytest.skip(f"recorded reports are not here: {folder} (set PROFKIT_FIXTURES)")
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

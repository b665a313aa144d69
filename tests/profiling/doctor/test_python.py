from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.profilers.programs import CommandTrial, try_command
from profkit.profiling.doctor import flag_gems_check, frames_check, package_check, python_checks


@pytest.mark.parametrize(
    ("version", "state", "word"),
    [
        ((3, 10), "limited", "no perf trampoline"),
        ((3, 11), "limited", "no perf trampoline"),
        ((3, 12), "limited", "innermost"),
        ((3, 13), "ok", "perf_jit"),
        ((3, 14), "ok", "perf_jit"),
    ],
)
def test_what_perf_sees_of_python_depends_on_the_version(
    version: tuple[int, int], state: str, word: str
) -> None:
    [check] = frames_check(version)
    assert check.state == state
    assert word in check.detail
    assert (check.fix is None) == (state == "ok")


def _import(name: str, folder: Path) -> CommandTrial:
    from profkit.profiling.doctor import _IMPORT

    return try_command([sys.executable, "-c", _IMPORT, name], env={"PYTHONPATH": str(folder)})


@pytest.mark.parametrize(
    ("content", "state", "word"),
    [
        ("__version__ = '9.1'", "ok", "measures the peaks"),
        ("print('chatter'); __version__ = '9.1'", "ok", "measures the peaks"),
        ("import not_there_at_all", "refused", "not_there_at_all"),
        ("raise RuntimeError('built for another numpy')", "refused", "another numpy"),
        ("import os; os.abort()", "refused", "SIGABRT"),
        ("raise SystemExit(0)", "refused", "cannot be imported"),
        (None, "missing", "not installed"),
    ],
)
def test_a_package_is_judged_by_importing_it(
    tmp_path: Path, content: str | None, state: str, word: str
) -> None:
    if content is not None:
        (tmp_path / "package_x.py").write_text(content)
    trial = _import("package_x", tmp_path)
    [check] = package_check("package_x", "measures the peaks", "pip install package_x", trial)
    assert check.state == state
    assert word in check.detail
    assert check.version == ("9.1" if state == "ok" else None)
    assert check.fix == (None if state == "ok" else "pip install package_x")


def test_this_interpreter_and_its_packages_are_told_with_their_versions() -> None:
    found = {check.name: check for check in python_checks()}
    assert found["python"].version == ".".join(map(str, sys.version_info[:3]))
    assert found["psutil"].state == "ok", found["psutil"].detail
    assert found["psutil"].version


def test_what_only_workloads_need_is_looked_for_in_the_python_that_runs_them(
    fake_tools: Callable[[dict[str, str]], Path],
) -> None:
    other = fake_tools(
        {"python": 'case $3 in "") echo /elsewhere; echo 3.13.1;; *) echo "version 9.9";; esac'}
    )
    found = {check.name: check for check in python_checks()}
    assert (found["torch"].state, found["torch"].version) == ("ok", "9.9")
    assert found["python on PATH"].path == str(other / "python")
    assert "Python 3.13" in found["python frames in perf"].detail
    assert found["psutil"].version != "9.9"


def test_a_package_is_installed_into_the_python_that_lacks_it(
    fake_tools: Callable[[dict[str, str]], Path],
) -> None:
    other = fake_tools(
        {
            "python": 'test -z "$3" && echo /elsewhere && echo 3.12.1 && exit\n'
            "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1"
        }
    )
    found = {check.name: check for check in python_checks()}
    assert found["torch"].fix == f"{other / 'python'} -m pip install torch"


def test_flag_gems_is_looked_for_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profkit.hardware.gpu.read_gpus", lambda: ())
    [useless] = flag_gems_check()
    assert (useless.state, useless.fix) == ("missing", None)
    monkeypatch.setattr("profkit.hardware.gpu.read_gpus", lambda: ("a GPU",))
    [missing] = flag_gems_check()
    assert (missing.state, "pip install" in (missing.fix or "")) == ("missing", True)
    (tmp_path / "flag_gems.py").write_text("raise RuntimeError('no GPU')")
    monkeypatch.syspath_prepend(tmp_path)
    assert next(flag_gems_check()).state == "ok"

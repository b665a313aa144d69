"""A workload, and what lies beside it, may be called anything: as any module of the library that a pass imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from profkit.runtime.passes.command import HOST_PROGRAM, START_FOLDER
from tests.conftest import ROOT

BARE = {key: value for key, value in os.environ.items() if not key.startswith(("PROFKIT_", "PYTHON"))}
HOSTS = ("cprofile", "tracemalloc", "torch", "simulation-window")
STARTS = {"PROFKIT_STACKS": "out", "PROFKIT_OPERATION_CALLS": ".", "PROFKIT_LOADED_FILES": "."}
SWITCHES: dict[str, dict[str, str]] = {
    "perf-control": {"control": "fifo"},
    "valgrind": {},
    "cuda": {},
    "signpost": {},
}
PASSES = (*HOSTS, *STARTS, "perf-control", "cuda")
RESULTS = {"cprofile": "out", "tracemalloc": "out", "PROFKIT_STACKS": "out*", "PROFKIT_LOADED_FILES": "*.txt"}
RESULTS |= dict.fromkeys(SWITCHES, "record.*.json")

# Loads each module of profkit that runs inside of a workload, and says which files of the library came with it.
_IMPORT_ALL = """
import sys
before = set(sys.modules)
import importlib, pathlib
sys.path.insert(0, sys.argv[1])
for path in sorted(pathlib.Path(sys.argv[1], "profkit", "runtime").rglob("*.py")):
    if path.parent.name != "start_up" and path.name != "__main__.py":
        parts = path.relative_to(sys.argv[1]).with_suffix("").parts
        importlib.import_module(".".join(part for part in parts if part != "__init__"))
print(*{name.partition(".")[0] for name in set(sys.modules) - before if getattr(sys.modules[name], "__file__", None)})
"""


@cache
def library_names() -> frozenset[str]:
    """Every module of the library, by its file, that a pass imports."""
    argv = [sys.executable, "-I", "-S", "-c", _IMPORT_ALL, str(ROOT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split()) & sys.stdlib_module_names


NEIGHBOUR = "print('loaded', __name__)\n"
REGION = "import profkit\nwith profkit.region('a'): pass\n"
# Each name of the library, as the program finds it.
LOOK = """
import sys
for name in {names}:
    module = __import__(name)
    print(name, module.__file__, module.__spec__.name, type(module.__spec__.loader).__name__)
    print(module is sys.modules[name])
"""
# What there is to say of a switch whose tool is not there.
REMARKS = re.compile(
    r"profkit: (?:the program did not use CUDA|perf does not (?:read|listen)|not under valgrind).*\n"
)
PLAINLY = "plainly"


def environment(name: str, path: str = "") -> dict[str, str]:
    """The variables of a pass, or of a workload that is run plainly; `path` is on PYTHONPATH."""
    env = {**BARE, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT)))), "PYTHONWARNINGS": "ignore"}
    if name in STARTS:
        return {**env, name: STARTS[name], "PYTHONPATH": f"{START_FOLDER}{os.pathsep}{env['PYTHONPATH']}"}
    directive: dict[str, object] = {"pass_name": "cprofile", "record": "record"}
    if name in HOSTS:
        directive |= {"delay": 60, "longest": 60}  # what the hosts themselves read of it
    elif name in SWITCHES:
        directive |= {"pass_name": "timing", "switch": {"kind": name, **SWITCHES[name]}}
    return env if name == PLAINLY else {**env, "PROFKIT_DIRECTIVE": json.dumps(directive)}


def run(folder: Path, name: str, program: list[str], path: str = "") -> tuple[str, str]:
    """What a program prints under a pass."""
    host = [str(HOST_PROGRAM), name, "out", "--"] if name in HOSTS else []
    argv = [sys.executable, *host, *program]
    done = subprocess.run(
        argv, cwd=folder, env=environment(name, path), capture_output=True, text=True, timeout=60
    )
    return done.stdout, REMARKS.sub("", done.stderr)


def neighbours(folder: Path, names: Iterable[str]) -> None:
    """A file of each name."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(NEIGHBOUR)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "first"),
    [*((name, "region") for name in PASSES), ("cprofile", "own"), ("PROFKIT_STACKS", "own")],
)
def test_beside_files_of_all_names_a_pass_works_and_the_workload_gets_what_it_gets_alone(
    tmp_path: Path, name: str, first: str
) -> None:
    neighbours(tmp_path, library_names())
    look = LOOK.format(names=sorted(library_names()))
    (tmp_path / "work.py").write_text(look + REGION if first == "own" else REGION + look)
    assert run(tmp_path, name, ["work.py"]) == run(tmp_path, PLAINLY, ["work.py"])
    assert name not in RESULTS or list(tmp_path.glob(RESULTS[name]))


@pytest.mark.parametrize(("name", "form"), [("cprofile", "-c"), ("PROFKIT_STACKS", "PYTHONPATH")])
def test_so_it_is_however_the_program_finds_them(tmp_path: Path, name: str, form: str) -> None:
    beside = tmp_path / "beside"
    neighbours(beside, library_names())
    code = REGION + LOOK.format(names=sorted(library_names()))
    (tmp_path / "work.py").write_text(code)
    if form == "-c":
        assert run(beside, name, ["-c", code]) == run(beside, PLAINLY, ["-c", code])
    else:
        alone = run(tmp_path, PLAINLY, ["work.py"], str(beside))
        assert run(tmp_path, name, ["work.py"], str(beside)) == alone


@pytest.mark.parametrize("name", ["copy", "tracemalloc"])
def test_a_workload_of_the_name_of_a_module_that_a_pass_imports_runs_once_and_leaves_its_result(
    tmp_path: Path, name: str
) -> None:
    assert name in library_names()
    (tmp_path / f"{name}.py").write_text(f"print(__name__, flush=True)\n{REGION}")
    assert run(tmp_path, "tracemalloc", [f"{name}.py"]) == ("__main__\n", "")
    assert (tmp_path / "out").exists()
    assert list(tmp_path.glob("record.*"))

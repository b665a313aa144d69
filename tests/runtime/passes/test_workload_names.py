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
HOSTS = ("cprofile", "tracemalloc", "tracemalloc-region", "torch", "simulation-window")
STARTS = {"PROFKIT_STACKS": "out", "PROFKIT_OPERATION_CALLS": ".", "PROFKIT_LOADED_FILES": "."}
SWITCHES: dict[str, dict[str, str]] = {
    "perf-control": {"control": "fifo"},
    "valgrind": {},
    "cuda": {},
    "signpost": {},
    "torch-profiler": {"output": "trace"},
}
PASSES = (*HOSTS, *STARTS, *SWITCHES)
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
_RUN_MODULE = "import sys; before = set(sys.modules); import runpy; print(*set(sys.modules) - before)"


@cache
def imported(code: str) -> frozenset[str]:
    argv = [sys.executable, "-I", "-S", "-c", code, str(ROOT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split()) & sys.stdlib_module_names


def library_names() -> frozenset[str]:
    """Every module of the library, by its file, that a pass imports."""
    return imported(_IMPORT_ALL)


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
    r"profkit: (?:the region was entered before torch|perf does not listen|this process does not run under) .*\n"
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


@pytest.mark.parametrize("first", ["own", "region"])
@pytest.mark.parametrize("name", PASSES)
def test_beside_files_of_all_names_a_pass_works_and_the_workload_gets_what_it_gets_alone(
    tmp_path: Path, name: str, first: str
) -> None:
    neighbours(tmp_path, library_names())
    look = LOOK.format(names=sorted(library_names()))
    (tmp_path / "work.py").write_text(look + REGION if first == "own" else REGION + look)
    assert run(tmp_path, name, ["work.py"]) == run(tmp_path, PLAINLY, ["work.py"])
    assert name not in RESULTS or list(tmp_path.glob(RESULTS[name]))


@pytest.mark.parametrize("name", ["cprofile", "PROFKIT_OPERATION_CALLS", "PROFKIT_STACKS", "cuda"])
@pytest.mark.parametrize("form", ["-m", "-c", "PYTHONPATH", "runpy", "child", "path"])
def test_so_it_is_however_the_program_is_started(tmp_path: Path, name: str, form: str) -> None:
    modules_of_runpy = (
        imported(_RUN_MODULE) if form in ("-m", "runpy") else frozenset()
    )  # those it needs itself
    names = library_names() - modules_of_runpy
    beside = tmp_path / "beside"
    neighbours(beside, names)
    code = REGION + LOOK.format(names=sorted(names))
    (beside / "work.py").write_text(code)
    (beside / "start.py").write_text("import runpy\nrunpy.run_path('work.py', run_name='__main__')")
    (beside / "child.py").write_text("import os, sys\nos.execv(sys.executable, [sys.executable, 'work.py'])")
    (tmp_path / "work.py").write_text(code)
    (tmp_path / "later.py").write_text(f"import sys\nsys.path.insert(0, {str(beside)!r})\n{code}")
    program = {"-m": ["-m", "work"], "-c": ["-c", code], "runpy": ["start.py"], "child": ["child.py"]}.get(
        form
    )
    if program is not None:
        assert run(beside, name, program) == run(beside, PLAINLY, program)
    elif form == "PYTHONPATH":
        alone = run(tmp_path, PLAINLY, ["work.py"], str(beside))
        assert run(tmp_path, name, ["work.py"], str(beside)) == alone
    else:  # put into sys.path by the program itself
        assert run(tmp_path, name, ["later.py"]) == run(tmp_path, PLAINLY, ["later.py"])


# One process for all names: each is forked before anything is imported, and becomes the host and then the workload.
_RUN_EACH = """
import os, sys
for name in sys.argv[3:]:
    if os.fork() == 0:
        host, folder = sys.argv[1], sys.argv[2]
        os.chdir(os.path.join(folder, name))
        sys.argv[:] = [host, "cprofile", "out", "--", f"{name}.py"]
        sys.path[0] = os.path.dirname(host)
        with open(host) as file:
            code = compile(file.read(), host, "exec")
        sys.modules["__main__"].__dict__.update(__file__=host)
        exec(code, sys.modules["__main__"].__dict__)
        break
    os.wait()
"""


def test_a_workload_of_the_name_of_any_module_that_a_pass_imports_runs_once_and_leaves_its_result(
    tmp_path: Path,
) -> None:
    names = sorted(library_names())
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(f"print(__name__, {name!r}, flush=True)\n{REGION}")
    argv = [sys.executable, "-c", _RUN_EACH, str(HOST_PROGRAM), str(tmp_path), *names]
    done = subprocess.run(argv, env=environment("cprofile"), capture_output=True, text=True, timeout=120)
    assert (done.stdout.splitlines(), done.stderr) == ([f"__main__ {name}" for name in names], "")
    assert {name for name in names if not (tmp_path / name / "out").exists()} == set()
    assert {name for name in names if not list((tmp_path / name).glob("record.*"))} == set()

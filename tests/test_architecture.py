"""What docs/architecture.md says, held against the code: who imports whom, what loads when, how long a file is."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from profkit.core import types as core_types
from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = ROOT / "profkit"
FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {
    "torch", "triton", "numpy", "psutil", "yaml", "rich", "capstone", "pyarrow", "typer", "jinja2",
    "openai", "anthropic", "httpx", "httpx2", "pydantic",
}  # fmt: skip
# typer makes the options; process_tree is itself loaded when the first child is started.
HEAVY_AT_TOP = {"cli/": {"typer"}, "core/process_tree.py": {"psutil"}}
# Only the processes that measure or judge load these: they are torch and Triton, from the first line on.
BENCH = (
    "evaluation/judging",
    "evaluation/functions",
    "evaluation/suites",
    "kernels/operations/float64_check.py",
    "kernels/operations/cuda/",
    "kernels/operations/in_float64.py",
    "kernels/operations/triton/",
    "kernels/sweep/bench",
    "kernels/sweep/device.py",
    "kernels/evaluation/batches.py",
    "kernels/evaluation/devices.py",
    "kernels/evaluation/evaluator.py",
    "kernels/evaluation/fresh_values.py",
    "kernels/evaluation/judging/correctness.py",
    "kernels/evaluation/judging/reference.py",
    "kernels/evaluation/timing.py",
    "kernels/evaluation/trial.py",
    "kernels/evaluation/worker/arguments.py",
    "kernels/evaluation/worker/cuda_memory.py",
    "kernels/evaluation/worker/memory.py",
    "kernels/evaluation/suites/capture.py",
    "kernels/evaluation/suites/op",
    "kernels/evaluation/suites/values.py",
)
LATE = ("profkit.core.process_tree",)
STANDARD_ONLY = ("runtime/region/", "runtime/passes/host/")  # what is loaded into somebody's program
# In a tool's folder these start the tool, and those need to know where it is; all other files read, or build command
# lines out of what they are given.
RUNNERS = {"programs.py", "find.py", "probe.py", "export.py", "window.py", "looks.py"}
CALLERS = RUNNERS | {"record.py"}


def package_of(parts: tuple[str, ...]) -> str:
    """The part of the package as the table of docs/architecture.md names it: `profilers/`, `__main__.py`."""
    return parts[0] + "/" if (PACKAGE / parts[0]).is_dir() else f"{parts[0].removesuffix('.py')}.py"


def rows_of_the_table() -> list[list[str]]:
    """Return the packages of each row of the table in docs/architecture.md, the highest row first."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n## Packages\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    return [re.findall(r"`([^`]+)`", names) for names in rows]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imports_of(path: Path) -> tuple[tuple[int, str], ...]:
    """The imports of a file: it is parsed once for most tests here; all trees together would be hundreds of MB."""
    return tuple(imports(parsed(path)))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is imported anywhere in the tree, in functions too.

    A relative import begins with a dot: it stays in its folder.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def contracts() -> list[dict[str, Any]]:
    """Return import-linter's contracts as pyproject.toml has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def lint_imports(settings: Path, source: Path) -> subprocess.CompletedProcess[str]:
    """Hold the package in `source` against the contracts of `settings`."""
    run = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", run, str(settings), "--no-cache", "--no-logo"],
        cwd=source,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(source), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )


def test_every_package_stands_in_the_table_and_every_row_is_a_package() -> None:
    packages = {package_of(path.relative_to(PACKAGE).parts) for path in FILES}
    assert packages == {name for row in rows_of_the_table() for name in row}


def test_the_layers_that_are_checked_are_those_of_the_table() -> None:
    """`__init__.py` cannot be a layer, since all packages are below it: it has a contract of its own."""
    table = [{name.rstrip("/").removesuffix(".py") for name in row} for row in rows_of_the_table()]
    layers, own = contracts()
    assert [set(row.split(" : ")) for row in layers["layers"]] == [
        row for row in table if row != {"__init__"}
    ]
    above = table[: table.index({"__init__"})]
    forbidden = {name.removeprefix("profkit.").removesuffix(".**") for name in own["forbidden_modules"]}
    assert forbidden == set().union(*above)


def test_an_import_goes_down_or_stays_in_its_package() -> None:
    done = lint_imports(ROOT / "pyproject.toml", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("analysis/stacks/added.py", "from profkit.profilers.perf import probe\n"),
        ("runtime/region/added.py", "def late():\n    import profkit.profiling.profile\n"),
        ("core/types/added.py", "if TYPE_CHECKING:\n    from profkit.hardware import machine\n"),
        ("__init__.py", "def late():\n    from profkit.cli import app\n"),
    ],
)
def test_an_upward_import_is_seen(file: str, source: str, tmp_path: Path) -> None:
    """Also late, in a function, and for type checkers only."""
    shutil.copytree(PACKAGE, tmp_path / "profkit", ignore=shutil.ignore_patterns("__pycache__", "data"))
    with (tmp_path / "profkit" / file).open("a", encoding="utf-8") as module:
        module.write(source)
    done = lint_imports(ROOT / "pyproject.toml", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 kept, 1 broken" in done.stdout


def test_no_folder_has_two_dozen_entries() -> None:
    folders = {path.parent for path in FILES}
    # What Python compiled stays in folders that git has removed.
    entries = {
        place(folder): sum(
            entry.suffix == ".py" or (entry.name != "__pycache__" and any(entry.glob("[!_]*")))
            for entry in folder.iterdir()
        )
        for folder in folders
    }
    assert {name: count for name, count in entries.items() if count >= 24} == {}


@pytest.mark.thorough
def test_no_two_files_import_each_other() -> None:
    """Also inside a package, and also late, in a function: two files that need each other are one, or three.

    A file may use its own package's `__init__`, which Python has loaded before it in any case.
    """
    modules = {
        ".".join(("profkit", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in FILES
    }
    names = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    arrows = {
        name: {
            target
            for _, imported in imports_of(path)
            for target in (imported, imported.rpartition(".")[0])
            if target in names
            and (target == imported or imported not in names)
            and not f"{name}.".startswith(f"{target}.")
        }
        for name, path in names.items()
    }
    waiting = dict(arrows)
    while leaves := [name for name, below in waiting.items() if not below & waiting.keys()]:
        for name in leaves:
            del waiting[name]
    assert sorted(waiting) == []


def test_heavy_libraries_load_where_they_are_used() -> None:
    found = []
    for path in FILES:
        if not any(name.startswith((*HEAVY, *LATE)) for _, name in imports_of(path)):
            continue
        for node in _run_on_import(parsed(path)):
            for line, name in imports(node):
                top = name.split(".")[0]
                meant = {
                    library
                    for start, library_set in HEAVY_AT_TOP.items()
                    if place(path).startswith(start)
                    for library in library_set
                } | ({"torch", "triton"} if place(path).startswith(BENCH) else set())
                if top in HEAVY - meant or name.startswith(LATE):
                    found.append(f"{place(path)}:{line} loads {top} on import")
    assert found == []


def _run_on_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """The import statements that run when the module is imported: none in functions, none for type checkers."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def test_importing_profkit_and_its_region_loads_nothing_heavy() -> None:
    code = "import sys, profkit; profkit.region; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded.split())


def test_a_benchmark_loads_only_the_types_that_its_process_is_told_and_records() -> None:
    code = "import sys, profkit; profkit.benchmark; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    types = {name for name in loaded.split() if name.startswith("profkit.core.types.")}
    assert types == {"profkit.core.types.readings"}


def test_every_type_is_found_where_type_checkers_find_it() -> None:
    """By those that read the imports, and by those that run: what several modules have is the same there."""
    names = [name for _, name in imports(parsed(PACKAGE / "core" / "types" / "__init__.py"))]
    listed = [name.split(".")[3] for name in names if name.startswith("profkit.core.types.")]
    assert sorted(listed) == sorted(core_types._MODULES)
    found: dict[str, object] = {}
    for module in map(
        importlib.import_module, (f"profkit.core.types.{name}" for name in core_types._MODULES)
    ):
        for name, value in vars(module).items():
            if getattr(value, "__module__", "").startswith("profkit.core.types."):
                assert found.setdefault(name, value) is value
                assert getattr(core_types, name) is value


@pytest.mark.parametrize("folder", STANDARD_ONLY)
def test_what_is_loaded_into_a_program_needs_only_the_standard_library(folder: str) -> None:
    found = [
        f"{place(path)}:{line} imports {name}"
        for path in FILES
        if place(path).startswith(folder)
        for line, name in imports_of(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"profkit", ""}
    ]
    assert found == []


def test_the_host_of_python_passes_works_where_profkit_is_not_installed() -> None:
    found = [
        f"{place(path)}:{line} imports {name}"
        for path in FILES
        if place(path).startswith("runtime/passes/host/")
        for line, name in imports_of(path)
        if name.split(".")[0] == "profkit"
    ]
    assert found == []


def test_a_reader_starts_no_process() -> None:
    found = [
        f"{place(path)}:{line} imports {name}"
        for path in FILES
        if place(path).startswith(("profilers/", "analysis/", "reporting/"))
        and not (place(path).startswith("profilers/") and path.name in RUNNERS)
        for line, name in imports_of(path)
        if name.startswith(
            ("subprocess", "multiprocessing", "profkit.core.process.run", "profkit.core.process.process")
        )
        or name in ("profkit.core.process", "os.system", "os.popen", "asyncio.subprocess")
    ]
    assert found == []


def test_a_reader_needs_no_tool() -> None:
    """A tool's `__init__` names both, and imports what is called."""
    found = [
        f"{place(path)}:{line} imports {name}"
        for path in FILES
        if place(path).startswith("profilers/") and path.name not in (*CALLERS, "__init__.py")
        for line, name in imports_of(path)
        if name.startswith("profkit.profilers.") and {f"{part}.py" for part in name.split(".")} & CALLERS
    ]
    assert found == []


def test_a_relative_import_is_only_where_the_package_has_no_name_to_rely_on() -> None:
    relative = {place(path) for path in FILES for _, name in imports_of(path) if name.startswith(".")}
    assert all(name.startswith("runtime/passes/host/") for name in relative)


def test_no_two_files_of_tests_have_one_name() -> None:
    """Folders of tests are no packages, so pytest collects neither of two that are called alike."""
    names = Counter(
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    )
    assert [name for name, count in names.items() if count > 1] == []

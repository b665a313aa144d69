"""Every process that profkit starts, and every wait for one, has an end of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import FILES, PACKAGE, parsed

# Where a process is started by hand, and what ends it.
STARTS = {
    "core/process.py": "the one runner",
    "core/watcher.py": "it lives as long as profkit, whose end it sees",
    "execution/child.py": "each question to it has its time",
    "execution/places/ray_shell.py": "it is itself such a child",
    "profilers/valgrind/window.py": "it runs below a step, whose time ends both",
    "profilers/perf/looks.py": "perf and the program, which the step's own time ends",
    "profilers/xctrace/export.py": "it looks at its file while it waits, with a time for each table",
    "fronts/pytest_suite.py": "profkit itself, in the foreground of the terminal",
}
# Waits of these for what is ended by somebody else; a run that takes as long as it takes.
UNBOUNDED = {
    ("execution/places/ray_shell.py", "wait"): "the connection ends it",
    ("execution/places/modal_shell.py", "wait"): "Modal ends it after its own --timeout",
    ("profilers/valgrind/window.py", "wait"): "the step's time ends valgrind",
    ("profilers/perf/looks.py", "wait"): "the step's time ends perf",
    ("fronts/pytest_suite.py", "call"): "as long as the user's own tests take",
    ("kernels/evaluation/suites/notation.py", "run"): "the first run of the user's program",
}
RUNS = {"run", "call", "check_call", "check_output"}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def calls_in(path: Path) -> Iterator[tuple[str, str, ast.Call]]:
    """Each call: what it is called on, the name, and the call itself; names imported from `core.process` as its own."""
    tree = parsed(path)
    taken = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "profkit.core.process"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield ast.unparse(node.func.value), node.func.attr, node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in taken:
            yield "process", node.func.id, node


def has_limit(call: ast.Call) -> bool:
    """A timeout that is not None, by its name; of a wait also as its first argument."""
    given = [word.value for word in call.keywords if word.arg == "timeout"]
    return any(not (isinstance(value, ast.Constant) and value.value is None) for value in given)


def without_end(path: Path) -> Iterator[tuple[str, int]]:
    """The calls of a file that start a process or wait for one without a time limit: which, and the line."""
    for owner, name, call in calls_in(path):
        if owner == "os" and name in ("system", "popen", "wait", "spawnv"):
            yield name, call.lineno
        starts = (owner == "subprocess" and name in RUNS) or (owner == "process" and name in ("run", "ask"))
        waits = name == "wait" and owner.split(".")[-1] in CHILDREN and not call.args
        if (starts or waits or name == "communicate") and not has_limit(call):
            yield name, call.lineno


CHILDREN = {"child", "process", "_process", "shell", "proc", "watcher"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_process_is_started_or_waited_for_without_an_end(path: Path) -> None:
    found = [
        f"{name} in line {line}" for name, line in without_end(path) if (name_of(path), name) not in UNBOUNDED
    ]
    assert not found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_processes_are_started_in_few_places(path: Path) -> None:
    """All others call the runner, which ends a tree, and whose trees end also where profkit is killed."""
    starts = any(
        owner == "subprocess" and (name == "Popen" or name in RUNS) for owner, name, _ in calls_in(path)
    )
    assert starts == (name_of(path) in STARTS) or name_of(path) == "runtime/passes/command.py"


@pytest.mark.thorough
def test_what_is_excused_is_still_there() -> None:
    there = {(name_of(path), name) for path in FILES for name, _ in without_end(path)}
    assert set(UNBOUNDED) <= there


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(words)",
        "subprocess.check_output(words, timeout=None)",
        "child.communicate()",
        "child.wait()",
        "process.run(words, env=env)",
        "os.system(words)",
    ],
)
def test_a_line_without_an_end_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "made.py").write_text(f"{line}\n")
    assert len(list(without_end(tmp_path / "made.py"))) == 1

"""What was skipped, by its reason: one line each, with how many tests it is and what brings them back."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

FILE = "PROFKIT_SKIPPED"  # variable: a file to which the numbers are added, for the last lines of check.sh
# Taken out of the environment: what a pytest skips that a test starts is no test of this run.
_SUM = os.environ.pop(FILE, None)
FIXES = {
    "torch": "PROFKIT_TORCH=1 ./setup.sh",
    "triton": "./setup.sh --dev, with torch, on Linux",
    "playwright": "./setup.sh --dev",
    "mkdocs-material": "./setup.sh --dev",
    "jupyterlab": "pip install jupyterlab",
}


def reason_of(text: str) -> str:
    """The reason in one form, whether a mark, `skip` or `importorskip` gave it, and what brings the package."""
    text = text.removeprefix("Skipped: ").partition("\n")[0]
    text = re.sub(r"^could not import '([\w.]+)'.*", r"\1 is not installed", text)
    package = text.removesuffix(" is not installed")
    return f"{text} ({FIXES[package]})" if package != text and package in FIXES else text


def count_tests(file: Path, *, timed: bool) -> int:
    """How many test functions a file has that was skipped whole, of those that this call of pytest runs."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum(
        any("mark.timed" in ast.unparse(one) for one in function.decorator_list) == timed
        for function in functions
        if function.name.startswith("test")
    )


def count_skips(
    reports: Iterable[pytest.TestReport | pytest.CollectReport], root: Path, *, timed: bool
) -> Counter[str]:
    """How many tests were skipped for each reason."""
    counted: Counter[str] = Counter()
    for report in reports:
        if not isinstance(report.longrepr, tuple):
            continue  # expected to fail
        whole = isinstance(report, pytest.CollectReport)
        number = count_tests(root / report.nodeid, timed=timed) if whole else 1
        counted[reason_of(report.longrepr[2])] += number
    return counted


def lines(counted: Counter[str]) -> list[str]:
    """The most frequent first."""
    return [
        f"{count} {'test' if count == 1 else 'tests'} skipped: {reason}"
        for reason, count in counted.most_common()
        if count
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say it at the end, where nobody can miss it."""
    if hasattr(config, "workerinput"):
        return  # the process that started the workers has the reports of all
    timed = config.option.markexpr == "timed"
    counted = count_skips(terminalreporter.stats.get("skipped", []), config.rootpath, timed=timed)
    if (quick := sys.modules.get("tests.quick")) is not None:
        counted[quick.REASON] += quick.left_out()
    for line in lines(counted):
        terminalreporter.write_line(line)
    if _SUM is not None:
        with open(_SUM, "a", encoding="utf-8") as file:
            file.writelines(f"{count}\t{reason}\n" for reason, count in counted.items() if count)

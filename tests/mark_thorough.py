"""Marks the test functions thorough that take most of the processor, as `--costs` printed them.

    PROFKIT_COSTS=2000 ./check.sh --all | tee log; python -m tests.mark_thorough log [--seconds 1]

A function is marked where one of its tests took that many seconds, or all of them three times as many. Of each file of
which nothing else would be left, the cheapest function stays: what a package does for real is tried by each check.sh.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from pathlib import Path

LINE = re.compile(r"^ *(\d+\.\d) s  (tests/\S+\.py)::(\w+)(?:\[|$)")
MARK = "@pytest.mark.thorough"
ALL_TESTS = 3  # times as many seconds for all tests of a function


def costs_of(lines: list[str]) -> dict[Path, dict[str, list[float]]]:
    """Return the seconds of each test, by file and function."""
    costs: dict[Path, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if found := LINE.match(line):
            seconds, file, function = found.groups()
            costs[Path(file)][function].append(float(seconds))
    return costs


def functions_of(text: str) -> dict[str, int]:
    """Return the number of the first line of each test function, decorators included, by its name."""
    return {
        node.name: min(part.lineno for part in (node, *node.decorator_list))
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def costly_functions(functions: dict[str, int], costs: dict[str, list[float]], seconds: float) -> list[str]:
    """Return the functions to mark, of those that a file has."""
    costly = [
        name
        for name, taken in costs.items()
        if name in functions and (max(taken) >= seconds or sum(taken) >= ALL_TESTS * seconds)
    ]
    if len(costly) == len(functions):
        costly.remove(min(costly, key=lambda name: sum(costs[name])))
    return costly


def marked(text: str, costs: dict[str, list[float]], seconds: float) -> str:
    """Return the text of a file with its marks."""
    functions, lines = functions_of(text), text.splitlines(keepends=True)
    for name in sorted(costly_functions(functions, costs, seconds), key=functions.__getitem__, reverse=True):
        number = functions[name] - 1
        if MARK not in "".join(lines[number : number + 20]).partition("def ")[0]:
            lines.insert(number, f"{MARK}\n")
    return "".join(lines)


def main() -> None:
    """Mark what a log names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0, help="of the processor, for one test")
    options = parser.parse_args()
    for file, costs in sorted(costs_of(options.log.read_text().splitlines()).items()):
        text = file.read_text()
        if (new := marked(text, costs, options.seconds)) != text:
            file.write_text(new if "\nimport pytest\n" in new else _with_pytest(new))
            print(file)


def _with_pytest(text: str) -> str:
    """Return the text with an import of pytest after its future import; ruff puts it into its place."""
    return text.replace(
        "from __future__ import annotations\n", "from __future__ import annotations\n\nimport pytest\n", 1
    )


if __name__ == "__main__":
    main()

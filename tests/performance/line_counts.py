"""What counting lines costs beside cProfile, as the ratio of equal runs in turn with and without it.

Run alone: python tests/performance/line_counts.py [PYTHON]
The programs measure their own processor time. Limit: 1.1 times, of the medians.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from profkit.core.statistics import median
from profkit.runtime.passes.command import HOST_PROGRAM

ROUNDS, LIMIT = 5, 1.1
# A line that is wanted is marked; so is the first one in a loop.
PROGRAMS = {
    "many small calls": """
def small(i):
    return i + 1
def work():
    x = 0
    for i in range(2_000_000):
        x = small(x)  # wanted loop
""",
    "a loop without calls": """
def work():
    x = 0
    for i in range(6_000_000):
        x += i * i % 7  # wanted loop
""",
    "methods that compute a while": """
def inner(n):
    return sum([i * i for i in range(n)])  # wanted
def work():
    for i in range(3_000):
        inner(1000)  # wanted loop
""",
    "NumPy, arrays of 64 kB": """
import numpy as np
def work():
    x, w = np.ones((128, 128), "f4"), np.ones((128, 128), "f4")
    for i in range(3000):
        h = x @ w  # wanted loop
        a = np.maximum(h, 0)  # wanted
        g = a * 0.5 + h  # wanted
        s = g.sum(axis=1)  # wanted
""",
}
TIMED = """
import time
begin = time.process_time()
work()
print(time.process_time() - begin)
"""


def seconds(python: str, folder: Path, lines: list[dict[str, object]]) -> tuple[float, list[str]]:
    """What the work took under cProfile, and what was said of the lines."""
    directive = {"pass_name": "cprofile", "record": str(folder / "r"), "lines": lines}
    words = [python, str(HOST_PROGRAM), "cprofile", str(folder / "out.prof"), "--", str(folder / "work.py")]
    env = {
        **os.environ,
        "PROFKIT_DIRECTIVE": json.dumps(directive),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env, cwd=folder)
    said = json.loads((folder / "out.lines.json").read_text())["notes"] if lines else []
    return float(done.stdout), [one["code"] for one in said]


def wanted(text: str, file: Path) -> list[dict[str, object]]:
    """The marked lines, as a plan asks for them."""
    rows: list[dict[str, object]] = []
    function = ""
    for number, line in enumerate(text.splitlines(), 1):
        function = line[4:].partition("(")[0] if line.startswith("def ") else function
        if "# wanted" in line:
            row = {
                "file": str(file),
                "line": number,
                "function": function,
                "each": True,
                "loop": "loop" in line,
            }
            rows.append({**row, "names": [["x"], ["w"], ["h"]]})
    return rows


def main(python: str = sys.executable) -> int:
    """Print a line for each program; 1 where one is slower than the limit."""
    slow = False
    for name, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "work.py").write_text(text + TIMED)
            lines = wanted(text, folder / "work.py")
            ratios, notes = [], set[str]()
            for _ in range(ROUNDS):
                with_lines, said = seconds(python, folder, lines)
                ratios.append(with_lines / seconds(python, folder, [])[0])
                notes |= set(said)
        ratio = median(ratios)
        slow |= ratio > LIMIT
        print(
            f"{name}: {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}) {', '.join(sorted(notes)) or 'counted'}"
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

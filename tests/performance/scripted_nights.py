"""Fifteen nights of a scripted repository: is each regression found on its night, and nothing else?

    python -m tests.performance.scripted_nights [--busy 2]

Each night is one commit of the library of gate_trial, and one `profkit nightly`. Prints what was right, what was found,
by what, and the seconds. A workload that is worse stays worse until it is mended.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cli_runner import ENVIRONMENT, PROFKIT
from tests.git_repository import git
from tests.performance.gate_trial import BENCH, LIBRARY, REFACTORED

CONFIG = f"""version: 1
workloads:
  - name: parse
    command: [{sys.executable}, bench.py]
    env: {{PYTHONPATH: .}}
"""


def more(times: int, library: str = LIBRARY) -> str:
    """The library with so much more work in its inner loop, 9 % for each."""
    return library.replace("range(times)", f"range(times + {times})")


HOLDS = "\nKEPT = b'x' * 10_000_000\n"  # 10 MB, a third more
NIGHTS: tuple[tuple[str, str, str, str], ...] = (  # what, the file, its text, what is right
    ("the first", "csvlib.py", LIBRARY, "new"),
    ("a test", "test_csvlib.py", "def test_parse(): pass\n", "pass"),
    ("a refactoring", "csvlib.py", REFACTORED, "pass"),
    ("9 % more work", "csvlib.py", more(1, REFACTORED), "regressed"),
    ("documentation", "README", "parses CSV\n", "regressed"),
    ("mended", "csvlib.py", REFACTORED, "pass"),
    ("a comment", "csvlib.py", REFACTORED + "# rows of cells\n", "pass"),
    ("10 MB more", "csvlib.py", REFACTORED + HOLDS, "pass"),  # memory is watched, and no gate
    ("mended", "csvlib.py", REFACTORED, "pass"),
    ("17 % more work", "csvlib.py", more(2, REFACTORED), "regressed"),
    ("17 % on top of it", "csvlib.py", more(4, REFACTORED), "regressed"),
    ("documentation", "README", "parses CSV files\n", "regressed"),
    ("mended", "csvlib.py", REFACTORED, "pass"),
    ("9 % less work", "csvlib.py", more(-1, REFACTORED), "improved"),
    ("a test", "test_csvlib.py", "def test_total(): pass\n", "pass"),
)


def night(folder: Path, number: int) -> tuple[str, str, str]:
    """The outcome, its code, and the metrics that changed."""
    command = [
        *PROFKIT,
        "nightly",
        "nightly.yaml",
        "--night",
        f"night-{number:02}",
        "--quiet",
        "--format",
        "json",
    ]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    try:
        (outcome,) = json.loads(done.stdout)["workloads"]
    except (ValueError, KeyError):
        return "?", done.stderr[-200:], ""
    changed = [m["metric"] for m in outcome["metrics"] if m["outcome"] in ("regressed", "improved")]
    return outcome["outcome"], outcome["code"], ", ".join(changed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--busy", type=int, default=0, help="endless loops beside it")
    options = parser.parse_args()
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.busy)]
    wrong = 0
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            git(folder, "init", "-q")
            (folder / "bench.py").write_text(BENCH)
            (folder / "nightly.yaml").write_text(CONFIG)
            (folder / ".gitignore").write_text("reports/\n__pycache__/\n")
            for number, (what, path, text, right) in enumerate(NIGHTS, 1):
                (folder / path).write_text(text)
                git(folder, "add", "-A")
                git(folder, "commit", "-qm", what)
                began = time.monotonic()
                word, code, changed = night(folder, number)
                seconds = time.monotonic() - began
                wrong += word != right
                mark = " " if word == right else "✗"
                print(
                    f"{mark} {number:2} {what:18} {right:10} {word:10} {code:14} {seconds:4.0f} s {changed}",
                    flush=True,
                )
            print(f"{len(NIGHTS) - wrong} of {len(NIGHTS)} right")
    finally:
        for loop in loops:
            loop.kill()


if __name__ == "__main__":
    main()

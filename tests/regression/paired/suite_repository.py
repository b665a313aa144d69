"""A throw-away repository with a nightly's file, whose branch `head` makes one workload slower."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.git_repository import git

SUITE = """version: 1
name: bench
workloads:
  - {name: slow, command: [python, slow.py], floors: {time.median: 4 %}}
  - {name: "as 'before'", command: [python, before.py], env: {PAUSE: "0.01"}, floors: {time.median: 30 %}}
  - {name: broken, command: [python, -c, "raise SystemExit('no such thing')"]}
  - {name: fresh, command: [python, fresh.py]}
  - {name: far, command: [python, slow.py], on: "ssh:gpu1"}
"""
BEFORE = "import os, time\ntime.sleep(float(os.environ['PAUSE']))\n"


def repository(folder: Path, suite: str = SUITE) -> Path:
    """At `head`, with `main` before it; what is slow there waits twice as long as a process takes to start."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text("out/\nprofkit-report/\n.venv\n__pycache__/\n")
    (folder / "nightly.yaml").write_text(suite)
    (folder / "slow.py").write_text("import time\ntime.sleep(0.05)\n")
    (folder / "before.py").write_text(BEFORE)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "before")
    git(folder, "checkout", "-q", "-b", "head")
    (folder / "slow.py").write_text("import time\ntime.sleep(0.2)\n")
    (folder / "fresh.py").write_text("pass\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "slower")
    return folder


def compare(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`profkit compare` in that folder, as a user types it."""
    line = [sys.executable, "-m", "profkit", "compare", "--budget", "25", "--no-cause", *words]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return subprocess.run(
        line,
        cwd=folder,
        env={**clean, "NO_COLOR": "1", "COLUMNS": "300", "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=240,
    )

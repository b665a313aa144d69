"""A throw-away git repository with a tiny workload in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}

# Its time is decided by a file that is committed: what a change of the code does.
WORKLOAD = """
import pathlib, time
import profkit

size = int(pathlib.Path(__file__).with_name("size.txt").read_text())

def work():
    end = time.perf_counter() + size * 1e-5
    while time.perf_counter() < end:
        pass

profkit.benchmark(work, name="work")
"""


def git(folder: Path, *words: str) -> str:
    """Git in `folder`, with an identity and without anybody's configuration."""
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **ENVIRONMENT},
    )
    return done.stdout.strip()


def repository(folder: Path, size: int = 100) -> Path:
    """A repository with the workload committed; its iteration takes `size` times 10 µs."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "work.py").write_text(WORKLOAD)
    (folder / ".gitignore").write_text("reports/\n__pycache__/\nnight.yaml\n")
    commit(folder, size)
    return folder


def commit(folder: Path, size: int) -> str:
    """Another size of the work as a commit; its hash."""
    (folder / "size.txt").write_text(str(size))
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", f"size {size}")
    return git(folder, "rev-parse", "HEAD")

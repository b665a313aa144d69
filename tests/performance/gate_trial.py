"""Does the gate decide? Pairs of versions whose truth is known, compared as a pull request's job would.

    python -m tests.performance.gate_trial [--rounds 3] [--same 10] [--busy 2] [--peers]

A small library of Python whose benchmark takes some 0.4 s, in commits: a test, a refactoring, 9 and 14 % more work, and
the same again. Prints for each: the words and the seconds of each round; `--busy` runs so many endless loops beside it;
`--peers` hyperfine and pyperf on the same pairs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cli_runner import ENVIRONMENT, PROFKIT
from tests.git_repository import git

LIBRARY = """def parse(text):
    rows = []
    for line in text.splitlines():
        rows.append([cell.strip() for cell in line.split(",")])
    return rows


def total(rows, times):
    found = 0
    for row in rows:
        for cell in row:
            for _ in range(times):
                found += len(cell)
    return found
"""
BENCH = r"""from csvlib import parse, total

text = "\n".join(",".join(f" cell{i * j % 97} " for j in range(12)) for i in range(20000))
print(total(parse(text), 10))
"""
REFACTORED = LIBRARY.replace("found += len(cell)", "found = found + len(cell)").replace(
    'rows.append([cell.strip() for cell in line.split(",")])',
    'cells = line.split(",")\n        rows.append([cell.strip() for cell in cells])',
)
CASES = {  # what is changed, and what is right
    "test file": ("test_csvlib.py", "def test_parse(): pass\n", "same"),
    "refactoring": ("csvlib.py", REFACTORED, "same"),
    "9 % more work": ("csvlib.py", LIBRARY.replace("range(times)", "range(times + 1)"), "regressed"),
    "17 % more work": ("csvlib.py", LIBRARY.replace("range(times)", "range(times + 2)"), "regressed"),
}


def repository(folder: Path, name: str, text: str) -> Path:
    """Two commits: the library, and the change."""
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "csvlib.py").write_text(LIBRARY)
    (folder / "bench.py").write_text(BENCH)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "after")
    return folder


def compared(folder: Path, *words: str) -> tuple[str, float, str]:
    """The outcome, its seconds, and what decided it."""
    command = [
        *PROFKIT,
        "compare",
        *words,
        "--no-cause",
        "--quiet",
        "--format",
        "json",
        "--",
        sys.executable,
        "bench.py",
    ]
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    seconds = time.monotonic() - began
    found = json.loads(done.stdout)
    doubts = [doubt["code"] for change in found.get("changes", ()) for doubt in change.get("doubts", ())]
    by = (
        "files"
        if found.get("pairing") is None
        else "instructions"
        if "settled-by-instructions" in doubts
        else "time"
    )
    return found["outcome"], seconds, by


def by_hyperfine(trees: list[Path], out: Path) -> str:
    """As one reads its report: different where the means lie further apart than both deviations together."""
    commands = [f"cd {tree} && {sys.executable} bench.py" for tree in trees]
    subprocess.run(
        ["hyperfine", "--export-json", out / "all.json", *commands], capture_output=True, check=True
    )
    old, new = json.loads((out / "all.json").read_text())["results"]
    apart, spread = new["mean"] - old["mean"], old["stddev"] + new["stddev"]
    return "regressed" if apart > spread else "improved" if -apart > spread else "same"


def by_pyperf(trees: list[Path], out: Path) -> str:
    """What `pyperf compare_to` says: it asks Student's t-test."""
    pyperf = [sys.executable, "-m", "pyperf"]
    files = [str(out / f"{number}.json") for number in range(2)]
    for tree, file in zip(trees, files, strict=True):
        command = [*pyperf, "command", "--quiet", "-o", file, "--", sys.executable, "bench.py"]
        subprocess.run(command, cwd=tree, capture_output=True, check=True)
    said = subprocess.run([*pyperf, "compare_to", *files], capture_output=True, text=True, check=True).stdout
    return "regressed" if "slower" in said else "improved" if "faster" in said else "same"


PEERS = {"hyperfine": by_hyperfine, "pyperf": by_pyperf}


def by_peer(peer: str, folder: Path) -> tuple[str, float]:
    """What a peer says of the last commit beside the one before, and its seconds."""
    with tempfile.TemporaryDirectory() as base:
        git(folder, "worktree", "add", "-q", "--detach", base + "/tree", "HEAD~1")
        began = time.monotonic()
        word = PEERS[peer]([Path(base, "tree"), folder], Path(base))
        seconds = time.monotonic() - began
        git(folder, "worktree", "remove", "--force", base + "/tree")
    return word, seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--same", type=int, default=10, help="comparisons of a commit with itself")
    parser.add_argument("--busy", type=int, default=0, help="endless loops beside it")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.busy)]
    try:
        with tempfile.TemporaryDirectory() as name:
            for number, (title, (path, text, right)) in enumerate(CASES.items()):
                folder = repository(Path(name, str(number)), path, text)
                found = [compared(folder, "--base", "HEAD~1") for _ in range(options.rounds)]
                print(
                    f"{title:16} {right:10}",
                    "; ".join(f"{w} {s:.0f} s by {by}" for w, s, by in found),
                    flush=True,
                )
                for peer in PEERS if options.peers else ():
                    if peer != "hyperfine" or shutil.which(peer):
                        others = [by_peer(peer, folder) for _ in range(options.rounds)]
                        print(f"{peer:>27}", "; ".join(f"{w} {s:.0f} s" for w, s in others), flush=True)
            words = [compared(folder, "--base", "HEAD", "--head", "HEAD")[0] for _ in range(options.same)]
            print("a commit beside itself:", {word: words.count(word) for word in set(words)})
    finally:
        for loop in loops:
            loop.kill()


if __name__ == "__main__":
    main()

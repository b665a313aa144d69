"""What sampling Python stacks costs, and how far its shares are from the truth and from py-spy's.

Run alone: python tests/performance/stack_sampling.py [py-spy]
Limits: at most 2 % more processor time; shares within 3 points where the program takes 4 s.

The truth is in the program: each part runs until its thread's clock has gone on by so much. Parts differ in what they
do: plain Python, many small calls, calls into compiled code that keep the interpreter's lock or give it away.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from profkit.core.statistics import median
from profkit.profilers.stacks.read import read_stacks
from profkit.runtime.passes.command import START_FOLDER

ROUNDS = 7
PARTS = {"loop": 1.6, "calls": 1.2, "sorting": 0.8, "hashing": 0.4}  # seconds of processor time
TRUTH = """
import hashlib, time
clock = time.thread_time
def loop(seconds):
    end = clock() + seconds
    while clock() < end:
        x = 0
        for i in range(2000): x += i * i % 7
def small(i):
    return i + 1
def calls(seconds):
    end = clock() + seconds
    while clock() < end:
        for i in range(500): small(i)
def sorting(seconds, numbers=[i * 7919 % 30011 for i in range(30000)]):
    end = clock() + seconds
    while clock() < end: sorted(numbers)
def hashing(seconds, data=bytes(1 << 20)):
    end = clock() + seconds
    while clock() < end: hashlib.sha256(data).digest()
def main():
    for _ in range(10):
"""
TRUTH += "".join(f"        {name}({seconds / 10})\n" for name, seconds in PARTS.items()) + "main()\n"
FIXED = {  # the same work each time, whose processor time is compared
    "plain loop": "x = 0\nfor i in range(12_000_000): x += i * i % 7",
    "900 calls deep": (
        "import sys\nsys.setrecursionlimit(3000)\n"
        "def work():\n    x = 0\n    for i in range(8_000_000): x += i\n"
        "def down(n):\n    return down(n - 1) if n else work()\ndown(900)"
    ),
    "imports": "import asyncio, http.server, sqlite3, unittest.mock, xml.dom.minidom, multiprocessing.pool",
}


def environment(out: Path | None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROFKIT"))}
    return env | ({"PROFKIT_STACKS": str(out), "PYTHONPATH": str(START_FOLDER)} if out is not None else {})


def cpu_seconds(code: str, out: Path | None) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=environment(out), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sampled_shares(path: Path) -> dict[str, float]:
    profile = next(one for one in read_stacks(path).profiles if one.kind == "sampled-functions")
    return {spot.function: (spot.total or 0.0) / profile.total for spot in profile.hotspots}


def spied_shares(program: str, script: Path, folder: Path) -> dict[str, float]:
    out = folder / "spied.json"
    record = [program, "record", "--format", "speedscope", "--rate", "100", "--output", str(out), "--"]
    subprocess.run([*record, sys.executable, str(script)], check=True, capture_output=True)
    data = json.loads(out.read_text())
    names = [frame["name"] for frame in data["shared"]["frames"]]
    weights: dict[str, float] = {}
    for profile in data["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            for name in {names[frame].partition(" ")[0] for frame in stack}:
                weights[name] = weights.get(name, 0.0) + weight
    return {name: weight / weights["main"] for name, weight in weights.items()}


def main() -> int:
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, code in FIXED.items():
            pairs = [
                (cpu_seconds(code, None), cpu_seconds(code, folder / "out.jsonl")) for _ in range(ROUNDS)
            ]
            plain, with_samples = median([a for a, _ in pairs]), median([b for _, b in pairs])
            cost = median([b / a for a, b in pairs]) - 1
            print(f"{title}: {plain:.3f} s, sampled {with_samples:.3f} s: {100 * cost:+.1f} %")
            failed |= cost > 0.02 and title != "imports"
        script = folder / "truth.py"
        script.write_text(TRUTH)
        out = folder / "truth.jsonl"
        subprocess.run([sys.executable, str(script)], env=environment(out), check=True)
        shares = sampled_shares(out)
        spied = spied_shares(sys.argv[1], script, folder) if len(sys.argv) > 1 else {}
        for part, seconds in PARTS.items():
            true = seconds / sum(PARTS.values())
            other = f", py-spy {100 * spied.get(part, 0.0):.1f} %" if spied else ""
            print(f"{part}: {100 * true:.1f} %, sampled {100 * shares.get(part, 0.0):.1f} %{other}")
            failed |= abs(shares.get(part, 0.0) - true) > 0.03
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

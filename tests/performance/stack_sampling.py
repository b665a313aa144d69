"""What sampling Python stacks costs, and how far its shares are from the truth and from py-spy's.

Run alone: python tests/performance/stack_sampling.py [py-spy]
Limits: the sampling thread takes 2 % of the processor time at most; shares within 3 points where the program takes 4 s.

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
from profkit.profilers.host.stacks import read_stacks
from profkit.runtime.passes.command import START_FOLDER

ROUNDS = 15
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
# The same work again and again in one process, sampled every second time: two processes differ by more than it costs.
ALTERNATE = """
import sys, time
sys.setrecursionlimit(3000)
sampler = sys.modules["profkit_pass_host"].switch.members[0]
def work():
    x = 0
    for i in range(3_000_000): x += i * i % 7
def down(n):
    return down(n - 1) if n else work()
def cost(depth, sampled):
    sampler.begin() if sampled else None
    begin = time.process_time()
    down(depth)
    spent = time.process_time() - begin
    sampler.finish()
    return spent
for depth in (0, 900):
    for _ in range(ROUNDS): print(depth, cost(depth, False), cost(depth, True))
"""


def environment(out: Path | None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROFKIT"))}
    return env | ({"PROFKIT_STACKS": str(out), "PYTHONPATH": str(START_FOLDER)} if out is not None else {})


def start_up_seconds(out: Path | None) -> float:
    """Processor seconds of a Python that does nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], env=environment(out), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def costs(out: Path) -> dict[str, float]:
    """Processor time with sampling over that without, less 1: of a flat stack, and of one of 900 frames."""
    code = ALTERNATE.replace("ROUNDS", str(ROUNDS))
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(out), check=True, capture_output=True, text=True
    )
    rows = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return {
        title: median([row[2] for row in rows if row[0] == depth])
        / median([row[1] for row in rows if row[0] == depth])
        - 1
        for title, depth in (("flat stack", 0), ("900 frames", 900))
    }


def own_cost(path: Path) -> float:
    """Processor time of the sampling thread over that of the program."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    return float(lines[-1]["cost"]) / sum(sample[4] / 1e6 for line in lines for sample in line["samples"])


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
        for title, cost in costs(folder / "out.jsonl").items():
            print(f"{title}: {100 * cost:+.1f} % processor time (as steady as the machine is)")
        pairs = [(start_up_seconds(None), start_up_seconds(folder / "out.jsonl")) for _ in range(ROUNDS)]
        print(f"start of a Python: {1e3 * median([b - a for a, b in pairs]):+.1f} ms")
        script = folder / "truth.py"
        script.write_text(TRUTH)
        out = folder / "truth.jsonl"
        subprocess.run([sys.executable, str(script)], env=environment(out), check=True)
        own = own_cost(out)
        print(f"the sampler's own thread: {100 * own:.1f} % of the processor time")
        failed |= own > 0.02
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

"""How near a plan's estimates are to what the passes take, and what a whole run takes. Linux; g++ for two programs.

    python tests/performance/plan_bench.py [--keep FOLDER] [--backend cuda] [--depth quick] [PROGRAM ...]

Ten programs of different kinds. For each: T, the plain run by hand; the seconds until the first answer stands on the
screen (aim: 2 T + 3) and until the end (aim: 5 T + 10 where T is 2 to 5 s); and of each pass what was estimated, what
it took, and the ratio (aim: 1.5 at most, or the pass is ended at twice its estimate and says so). Run it alone.
On a GPU the programs are files that are named (`train.py`), and the aims are 2.5 T + 10 and 5 T + 20.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELAX = """
#include <cstdio>
#include <vector>
static double relax(const std::vector<double> &grid, int n) {
    double sum = 0;
    for (int column = 0; column < n; ++column)
        for (int row = 0; row < n; ++row) sum += grid[row * n + column] * 0.5;
    return sum;
}
int main() {
    const int n = 2000;
    std::vector<double> grid(n * n, 1.0);
    double sum = 0;
    for (int turn = 0; turn < TURNS; ++turn) sum += relax(grid, n);
    std::printf("%g\\n", sum);
}
"""
PRODUCT = """
#include <cstdio>
#include <vector>
int main() {
    const int n = 640;
    std::vector<float> a(n * n, 1.5f), b(n * n, 0.5f), c(n * n);
    for (int turn = 0; turn < 24; ++turn)
        for (int i = 0; i < n; ++i)
            for (int k = 0; k < n; ++k)
                for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    std::printf("%g\\n", c[7]);
}
"""
PYTHON: dict[str, str] = {
    "arrays": """
import numpy
x = numpy.random.default_rng(1).random((1500, 1500))
for _ in range(45):
    y = (x.T + x).sum(axis=0)
    z = numpy.sort(x[:300], axis=0) + y
    x = x * 0.999
""",
    "python": """
def collatz(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps
print(max(collatz(n) for n in range(1, 250_000)))
""",
    "short": """
print(sum(n * n % 7 for n in range(2_000_000)))
""",
    "region": """
import numpy, profkit
a = numpy.random.default_rng(1).random((400, 400))
for _ in range(20):
    with profkit.region("step"):
        b = a @ a
        c = numpy.exp(-b / b.max()).sum(axis=0)
""",
    "long": """
import json
rows = [{"id": n, "name": f"name {n}", "values": list(range(20))} for n in range(20_000)]
for _ in range(55):
    text = json.dumps(rows)
    rows = json.loads(text)
""",
    "pool": """
from multiprocessing import Pool
def work(n):
    return sum(i * i % n for i in range(1, 600_000))
if __name__ == "__main__":
    with Pool(2) as pool:
        print(sum(pool.map(work, range(3, 103), 5)))
""",
    "allocates": """
kept = []
for turn in range(90):
    made = [[str(n), (n, n + 1), {n: turn}] for n in range(30_000)]
    kept = made[: 1_000]
""",
}
NATIVE = {"relax": RELAX.replace("TURNS", "120"), "product": PRODUCT}
AIMS = {"cpu": ((2, 3), (5, 10)), "cuda": ((2.5, 10), (5, 20))}  # seconds: T times, and added
NAMES = (*PYTHON, *NATIVE, "gated_mlp")


def command_of(name: str, folder: Path) -> tuple[str, ...] | None:
    """Return the command of a program that is written into the folder; None where no compiler is here."""
    if name not in NAMES:
        return (sys.executable, name) if name.endswith(".py") else (name,)
    if name == "gated_mlp":
        return sys.executable, str(ROOT / "benchmark" / "gated_mlp.py"), "--backend", "cpu"
    if name in PYTHON:
        file = folder / f"{name}.py"
        file.write_text(PYTHON[name], encoding="utf-8")
        return sys.executable, str(file)
    if shutil.which("g++") is None:
        return None
    source, program = folder / f"{name}.cpp", folder / name
    source.write_text(NATIVE[name], encoding="utf-8")
    subprocess.run(["g++", "-g", "-O2", "-o", str(program), str(source)], check=True)
    return (str(program),)


def by_hand(command: tuple[str, ...]) -> float:
    """Return the wall seconds of a plain run, the smaller of two."""
    taken = []
    for _ in range(2):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - begin)
    return min(taken)


def profile(
    command: tuple[str, ...], output: Path, backend: str, depth: str
) -> tuple[float, float | None, dict[str, object]]:
    """Return the wall seconds of a profile, those until its first answer (None: none was given), and its run.json."""
    begin, first = time.perf_counter(), None
    argv = (
        sys.executable,
        "-m",
        "profkit",
        "profile",
        "--backend",
        backend,
        "--depth",
        depth,
        "--output",
        str(output),
        "--",
        *command,
    )
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if first is None and "first answer:" in line:
                first = time.perf_counter() - begin
    taken = time.perf_counter() - begin
    document: dict[str, object] = json.loads(max(output.glob("*/run.json")).read_text(encoding="utf-8"))
    return taken, first, document


def rows_of(document: dict[str, object]) -> list[str]:
    """Return a line for each pass: what was estimated, what it took, how far apart both are, and how it ended."""
    plan, passes = document["plan"], document["passes"]
    assert isinstance(plan, dict)
    assert isinstance(passes, list)
    timing = next((one for one in passes if one["name"] == "timing"), None)
    if timing is None or not timing["cost"]:
        return []
    plain = timing["seconds"] / timing["cost"]
    rows = []
    for planned, done in zip(plan["passes"], passes, strict=False):
        if planned["name"] == "timing":
            rows.append(f"    {'timing':<12} {'':>9} {done['seconds']:7.1f} s")
        elif done["state"] == "skipped":
            code = (done["reason"] or {}).get("code", "")
            rows.append(f"    {done['name']:<12} skipped: {code}, {done['fix'] or ''}")
        else:
            estimate, taken = (planned["cost"] or 1.0) * plain, done["seconds"]
            ratio = max(taken, 0.1) / max(estimate, 0.1)
            mark = " <" if not 1 / 1.5 <= ratio <= 1.5 and abs(taken - estimate) > 1 else ""
            rows.append(
                f"    {done['name']:<12} {estimate:7.1f} s {taken:7.1f} s {ratio:6.2f} {done['state']}{mark}"
            )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="leave the runs in this folder")
    parser.add_argument("--backend", choices=tuple(AIMS), default="cpu")
    parser.add_argument("--depth", choices=("quick", "standard", "full"), default="standard")
    parser.add_argument("program", nargs="*", help=f"some of {', '.join(NAMES)}, or files")
    options = parser.parse_args()
    # What is measured is an installed package: compiled once, and not at each start of profkit and of what it samples.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep if options.keep is not None else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.program or NAMES:
            command = command_of(name, folder)
            if command is None:
                print(f"{name}: no compiler is here")
                continue
            plain = by_hand(command)
            output = folder / f"runs-{Path(name).stem}"
            taken, first, document = profile(command, output, options.backend, options.depth)
            answer = f"{first:5.1f} s" if first is not None else "none"
            aims = [(factor, add, factor * plain + add) for factor, add in AIMS[options.backend]]
            (early, late) = (f"{factor:g} T + {add} is {aim:.1f}" for factor, add, aim in aims)
            print(
                f"{Path(name).name}: T {plain:.2f} s, first answer {answer} ({early}), all {taken:.1f} s ({late})"
            )
            print("\n".join(rows_of(document)), flush=True)


if __name__ == "__main__":
    main()

"""How often is a change without effect called a gain, by the runs that a trial has? Programs under a load that changes.

    python tests/performance/trial_noise.py [NAME...] [--runs 30]

Runs each program with 0 to 4 busy programs beside it, another number for each run, and draws trials from these runs:
one run with the change, which must promise a gain, and pairs. Prints the share of all trials that say "faster". Takes
ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from profkit.core.pairs import FIRST_ROUNDS, confirm
from profkit.core.types import RUN
from profkit.profiling.plain_run import PlainProcess, variation
from profkit.profiling.trials.experiment import APART, HALVED, PROMISING, TimeFloor, _seconds

LOADS = (0, 0, 1, 2, 4)  # busy programs
DRAWS = 100_000
PROGRAMS = {
    "one-thread": "s = 0\nfor i in range(9_000_000):\n    s += i * 7 % 13\nprint(s)",
    "numpy": "import numpy as np\na = np.random.default_rng(1).random(20_000_000)\n"
    "i = np.random.default_rng(2).permutation(20_000_000)\nfor _ in range(4):\n    b = a[i]\nprint(b.sum())",
    "pool": "from multiprocessing import Pool\ndef work(n):\n    s = 0\n    for i in range(1_200_000):\n"
    "        s += i * n % 13\n    return s\nif __name__ == '__main__':\n    with Pool(4) as pool:\n"
    "        print(sum(pool.map(work, range(16))))",
    "threads-that-spin": "import torch\nfrom multiprocessing import get_context\n"
    "def work(seed):\n    a = torch.randn(200, 200)\n    for _ in range(250):\n        a = torch.tanh(a @ a * 0.01)\n"
    "    return round(float(a.sum()), 1)\nif __name__ == '__main__':\n"
    "    with get_context('spawn').Pool(4) as pool:\n        print(len(pool.map(work, range(8))))",
}


def times(folder: Path, name: str, runs: int, draw: random.Random) -> list[tuple[float, float]]:
    """Return the seconds of each run, without its waits for a processor as far as they are known, and with them."""
    script = folder / f"{name}.py"
    script.write_text(PROGRAMS[name] + "\n")
    found = []
    for _ in range(runs):
        busy = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(draw.choice(LOADS))]
        try:
            env = variation(draw, draw.randrange(1, 2**32))
            run = PlainProcess(name, (sys.executable, str(script)), folder, env, folder / "records").time()
        finally:
            for process in busy:
                process.kill()
                process.wait()
        found.append((_seconds(run, RUN), run.wall))
    return found


def false_gains(
    runs: list[tuple[float, float]], pairs: int, most: float | None, draw: random.Random
) -> float:
    """Return the share of trials that say "faster" by so many pairs, or by their interval where `most` is None."""
    wrong, draws = 0, DRAWS if most is not None else DRAWS // 20
    for _ in range(draws):
        plain, first = draw.choice(runs)[1], draw.choice(runs)[0]  # the normal run counts with its waits
        if first > PROMISING * plain:
            continue
        made = [(draw.choice(runs)[0], draw.choice(runs)[0]) for _ in range(pairs)]
        if most is not None:
            fastest = min(plain, *(without for _, without in made))
            wrong += max(first, *(with_it for with_it, _ in made)) <= most * fastest
        else:
            change = confirm(made, TimeFloor(), "s", pairs)
            wrong += change is not None and change.course == "better"
    return wrong / draws


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*PROGRAMS])
    parser.add_argument("--runs", type=int, default=30)
    asked, draw = parser.parse_args(), random.Random(1)
    print("program             slowest/fastest  1 pair, half  2, half  4, 0.8  4, interval")
    with TemporaryDirectory() as folder:
        for name in asked.names:
            runs = times(Path(folder), name, asked.runs, draw)
            spread = max(run[0] for run in runs) / min(run[0] for run in runs)
            ways = ((1, HALVED), (2, HALVED), (FIRST_ROUNDS, APART), (FIRST_ROUNDS, None))
            shares = "  ".join(f"{false_gains(runs, pairs, most, draw):.3%}" for pairs, most in ways)
            print(f"{name:20}{spread:15.2f}  {shares}", flush=True)


if __name__ == "__main__":
    main()

"""What `import profkit` adds to `python -c pass`, and what the first region and benchmark add to that.

Run alone: python tests/performance/import_cost.py [ROUNDS]
Limit: `import profkit` below 5 ms, median of the differences of interleaved runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter

from profkit.core.statistics import median, median_interval

LIMIT = 0.005
PROGRAMS = {
    "pass": "pass",
    "import profkit": "import profkit",
    "import profkit; profkit.region": "import profkit; profkit.region",
    "import profkit; profkit.benchmark": "import profkit; profkit.benchmark",
}


def run(code: str) -> float:
    env = {name: value for name, value in os.environ.items() if name != "PROFKIT_DIRECTIVE"}
    begin = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    return perf_counter() - begin


def main(rounds: int) -> int:
    for code in PROGRAMS.values():
        run(code)  # writes the compiled modules
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, code in PROGRAMS.items():
            taken[name].append(run(code))
    print(f"{'python -c pass':34} {median(taken['pass']) * 1e3:7.2f} ms")
    for name in list(PROGRAMS)[1:]:
        added = [one - bare for one, bare in zip(taken[name], taken["pass"], strict=True)]
        found = median_interval(added)
        shown = f"{found.low * 1e3:.2f} to {found.high * 1e3:.2f}" if found else "no interval"
        print(f"{name:34} {median(added) * 1e3:+7.2f} ms  ({shown})")
    added_by_import = median(
        [one - bare for one, bare in zip(taken["import profkit"], taken["pass"], strict=True)]
    )
    good = added_by_import < LIMIT
    print("held" if good else f"MISSED: import profkit adds {added_by_import * 1e3:.1f} ms, more than 5 ms")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))

"""How long `profkit --help` and `profkit summarize` take, against the floor of any Typer program.

Run alone: python tests/performance/cli_startup.py [ROUNDS]
The floor is a two-command Typer program's `--help`. Limits: 1.3 and 2 times as long. All take turns in one
run, so that a busy machine slows all of them alike; the ratio is the median over the rounds. Exit code 1
where one is above.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from statistics import median

BARE = '''
import typer

app = typer.Typer(name="bare", help="Two commands.")


@app.command()
def one(path: str, count: int = 1) -> None:
    """The one."""


@app.command()
def two(path: str, force: bool = False) -> None:
    """The other."""


app()
'''
REPORT = """# started on Thu Nov 20 07:00:00 2026

101.52|msec|task-clock|101520000|100.00|0.998|CPUs utilized
12||context-switches|101520000|100.00|118.203|/sec
301000000||cycles|101520000|100.00|2.965|GHz
602000000||instructions|101520000|100.00|2.00|insn per cycle
120000000||branches|101520000|100.00|1.182|G/sec
2400000||branch-misses|101520000|100.00|2.00|of all branches
"""


def profkit() -> list[str]:
    """The installed command where there is one, as users call it."""
    script = Path(sysconfig.get_path("scripts")) / "profkit"
    return [str(script)] if script.exists() else [sys.executable, "-m", "profkit"]


def seconds(argv: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, env={**os.environ, "TERM": "dumb", "COLUMNS": "100"})
    spent = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stderr.decode()}")
    return spent


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as name:
        bare, report = Path(name, "bare.py"), Path(name, "stat.csv")
        bare.write_text(BARE)
        report.write_text(REPORT)
        runs = {
            "bare Typer program --help": ([sys.executable, str(bare), "--help"], 1.0),
            "profkit --help": ([*profkit(), "--help"], 1.3),
            "profkit summarize": ([*profkit(), "summarize", str(report)], 2.0),
        }
        for argv, _ in runs.values():
            seconds(argv)  # bytecode and disk caches
        times: dict[str, list[float]] = {title: [] for title in runs}
        for _ in range(rounds):
            for title, (argv, _) in runs.items():
                times[title].append(seconds(argv))
    floor = times["bare Typer program --help"]
    above = 0
    for title, (_, limit) in runs.items():
        ratio = median(spent / least for spent, least in zip(times[title], floor, strict=True))
        verdict = (
            "the floor" if times[title] is floor else f"limit {limit}: {'met' if ratio <= limit else 'ABOVE'}"
        )
        above += times[title] is not floor and ratio > limit
        print(f"{title:<28}{median(times[title]) * 1e3:7.0f} ms {ratio:6.2f} x   {verdict}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())

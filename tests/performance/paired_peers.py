"""Who is right about two versions: `profkit compare --a --b` beside hyperfine, pyperf, asv and pytest-benchmark.

    python -m tests.performance.paired_peers --seconds 20 --lanes 0-1,2-3 [--busy] --out quiet.json
    python -m tests.performance.paired_peers --table quiet.json busy.json

Twenty pairs of one program whose work is decided by its argument: 10 pairs alike, 5 with 5 % more, 5 with 20 % more.
Each lane is a set of cores on which one tool after the other judges a pair; `--busy` starts three neighbours on the
same cores that come and go. A tool that is not installed is left out. What each tool calls a difference:

- profkit: DIFFERENT (floor 2 %); SAME counts as right for a pair that is alike, AMBIGUOUS as open.
- hyperfine: Welch's t-test on its times, p < 0.05, as the script that it ships does.
- pyperf: `compare_to`, which says what is significant (p < 0.05).
- asv: `compare --factor 1.02` of two commits, each run by `asv run` (its default factor, 1.1, sees no 5 % at all).
- pytest-benchmark: `--benchmark-compare-fail=median:3%`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from queue import Empty, Queue
from statistics import fmean, median, variance
from typing import Literal

from profkit.core.inference import student_two_sided

Word = Literal["slower", "faster", "same", "open"]
KINDS = [1.0] * 10 + [1.05] * 5 + [1.2] * 5
PROGRAM = """\
import sys

def work(factor):
    counts, total = {{}}, 0
    for i in range(int({size} * factor)):
        counts[i & 1023] = counts.get(i & 511, 0) + i
        total += len(str(i))
    return total

if __name__ == "__main__":
    work(float(sys.argv[1]))
"""
NEIGHBOUR = """\
import random, time
draw, data = random.Random({seed}), bytearray(8 << 20)
while True:
    end = time.time() + draw.expovariate(1 / 1.5)
    while time.time() < end:
        for i in range(0, len(data), 4096):
            data[i] = 1
    time.sleep(draw.expovariate(1 / 1.5))
"""
SIZE = 600_000  # a tenth of a second


@dataclass(frozen=True)
class Answer:
    """What a tool said of one pair; `factor` is how much more work the second program has."""

    tool: str
    busy: bool
    factor: float
    word: Word
    seconds: float

    @property
    def verdict(self) -> str:
        """right, wrong or open."""
        if self.word == "open":
            return "open"
        truth = "same" if self.factor == 1.0 else "slower"
        return "right" if self.word == truth else "wrong"


@dataclass(frozen=True)
class Lane:
    """Cores, and a folder to work in. `run` calls a command on the cores."""

    cores: str
    folder: Path
    seconds: float

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The finished command, pinned to the lane's cores."""
        argv = ["taskset", "-c", self.cores, *words]
        return subprocess.run(argv, capture_output=True, text=True, cwd=cwd or self.folder, check=False)


def ask_profkit(lane: Lane, factor: float) -> Word:
    """The outcome of `compare --a --b`."""
    a, b = (f"{sys.executable} program.py {f}" for f in (1.0, factor))
    options = ["--budget", str(lane.seconds), "--no-cause", "--quiet", "--format", "json"]
    done = lane.run(sys.executable, "-m", "profkit", "compare", "--a", a, "--b", b, *options)
    if not done.stdout.startswith("{"):
        raise RuntimeError(done.stderr)
    outcome = json.loads(done.stdout)["outcome"]
    words: dict[str, Word] = {"regressed": "slower", "improved": "faster", "same": "same"}
    return words.get(outcome, "open")


def ask_hyperfine(lane: Lane, factor: float) -> Word:
    """Welch's t-test on as many runs as fit into the time."""
    begin = time.monotonic()
    lane.run(sys.executable, "program.py", "1.0")
    runs = max(10, int(lane.seconds / 2 / (time.monotonic() - begin)))
    commands = [f"{sys.executable} program.py {f}" for f in (1.0, factor)]
    done = lane.run(
        "hyperfine", "-N", "--warmup", "1", "--runs", str(runs), "--export-json", "h.json", *commands
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    first, second = (r["times"] for r in json.loads((lane.folder / "h.json").read_text())["results"])
    error = sqrt(variance(first) / len(first) + variance(second) / len(second))
    parts = [variance(t) / len(t) for t in (first, second)]
    freedom = sum(parts) ** 2 / sum(p**2 / (len(first) - 1) for p in parts)
    difference = fmean(second) - fmean(first)
    if student_two_sided(abs(difference) / error, freedom) >= 0.05:
        return "same"
    return "slower" if difference > 0 else "faster"


def ask_pyperf(lane: Lane, factor: float) -> Word:
    """`pyperf command` of both, in as many of its processes as fit into the time, and `compare_to`."""
    begin = time.monotonic()
    lane.run(sys.executable, "program.py", "1.0")
    each = 4 * (time.monotonic() - begin)  # its defaults: one warm-up and three values
    processes = max(4, int(lane.seconds / 2 / each))
    for name, f in (("a", 1.0), ("b", factor)):
        (lane.folder / f"{name}.json").unlink(missing_ok=True)
        words = [
            "-m",
            "pyperf",
            "command",
            "--quiet",
            f"--processes={processes}",
            "--name",
            "program",
            "-o",
            f"{name}.json",
            "--",
        ]
        done = lane.run(sys.executable, *words, sys.executable, "program.py", str(f))
        if done.returncode:
            raise RuntimeError(done.stderr)
    said = lane.run(sys.executable, "-m", "pyperf", "compare_to", "a.json", "b.json").stdout
    if "Not significant" in said or "not significant" in said:
        return "same"
    return "slower" if "slower" in said else "faster" if "faster" in said else "same"


def ask_pytest_benchmark(lane: Lane, factor: float) -> Word:
    """One run saved, the other compared with it."""
    text = "import program\ndef test_work(benchmark):\n    benchmark(program.work, {})\n"
    shutil.rmtree(lane.folder / ".benchmarks", ignore_errors=True)
    base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_work.py"]
    base += [f"--benchmark-max-time={lane.seconds / 2}", f"--rootdir={lane.folder}", "-c", os.devnull]
    (lane.folder / "test_work.py").write_text(text.format(1.0))
    if lane.run(*base, "--benchmark-save=a").returncode:
        raise RuntimeError("pytest-benchmark")
    (lane.folder / "test_work.py").write_text(text.format(factor))
    done = lane.run(
        *base, "--benchmark-compare=0001", "--benchmark-compare-fail=median:3%", "--benchmark-json=b.json"
    )
    first = json.loads(next((lane.folder / ".benchmarks").rglob("0001_a.json")).read_text())
    second = json.loads((lane.folder / "b.json").read_text())
    before, after = (d["benchmarks"][0]["stats"]["median"] for d in (first, second))
    if done.returncode:
        return "slower"
    return "faster" if after < before * 0.97 else "same"


def ask_asv(lane: Lane, factor: float) -> Word:
    """Two commits of a package, each run with the installed Python, and compared."""
    place = lane.folder / "asv"
    shutil.rmtree(place, ignore_errors=True)
    (place / "benchmarks").mkdir(parents=True)
    shutil.copy(lane.folder / "program.py", place / "program.py")
    (place / "benchmarks" / "__init__.py").write_text("")
    configuration = {
        "version": 1,
        "project": "p",
        "repo": ".",
        "branches": ["main"],
        "benchmark_dir": "benchmarks",
        "environment_type": "existing",
    }
    (place / "asv.conf.json").write_text(json.dumps(configuration))
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    lane.run("git", "init", "-q", "-b", "main", cwd=place)
    commits: list[str] = []
    for f in (1.0, factor):
        # Apart from the benchmark: to asv it would be another one if its own code changed.
        (place / "factor.py").write_text(f"FACTOR = {f}\n")
        code = f"import sys\nsys.path.insert(0, {str(place)!r})\nimport factor, program\n"
        code += "def time_work():\n    program.work(factor.FACTOR)\n"
        (place / "benchmarks" / "bench.py").write_text(code)
        lane.run(*git, "add", "-A", cwd=place)
        lane.run(*git, "commit", "-q", "--allow-empty", "-m", f"{f} {len(commits)}", cwd=place)
        commits.append(lane.run("git", "rev-parse", "HEAD", cwd=place).stdout.strip())
        asv = (sys.executable, "-m", "asv")
        lane.run(*asv, "machine", "--yes", "--machine", "m", cwd=place)
        run = ("run", "--machine", "m", "-E", f"existing:{sys.executable}", "--set-commit-hash", commits[-1])
        done = lane.run(*asv, *run, cwd=place)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
    said = lane.run(*asv, "compare", "--machine", "m", "--factor", "1.02", *commits, cwd=place).stdout
    marks = re.findall(r"^\|\s*([+\-~x!]?)\s*\|.*time_work", said, re.MULTILINE)
    if not marks:
        raise RuntimeError(said)
    return {"+": "slower", "-": "faster"}.get(marks[0], "same")  # type: ignore[return-value]


TOOLS: dict[str, tuple[Callable[[Lane, float], Word], Callable[[], bool]]] = {
    "profkit": (ask_profkit, lambda: True),
    "hyperfine": (ask_hyperfine, lambda: shutil.which("hyperfine") is not None),
    "pyperf": (ask_pyperf, lambda: _has("pyperf")),
    "asv": (ask_asv, lambda: _has("asv")),
    "pytest-benchmark": (ask_pytest_benchmark, lambda: _has("pytest_benchmark")),
}


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def judge_pairs(
    lanes: Sequence[str], seconds: float, size: int, *, busy: bool, pairs: int
) -> Iterator[Answer]:
    """Each pair by each tool; a lane takes the next pair when it has finished one."""
    kinds = KINDS[:: max(1, len(KINDS) // pairs)][:pairs] if pairs < len(KINDS) else KINDS
    order = list(kinds)
    random.Random(1).shuffle(order)
    work: Queue[float] = Queue()
    for factor in order:
        work.put(factor)
    answers: Queue[Answer | None] = Queue()

    def serve(cores: str) -> None:
        with tempfile.TemporaryDirectory(prefix="paired-peers-") as name:
            lane = Lane(cores, Path(name), seconds)
            (lane.folder / "program.py").write_text(PROGRAM.format(size=size))
            neighbours = []
            if busy:
                for seed in range(3):
                    code = NEIGHBOUR.format(seed=seed)
                    argv = ["taskset", "-c", cores, sys.executable, "-c", code]
                    neighbours.append(subprocess.Popen(argv))
            try:
                while True:
                    try:
                        factor = work.get_nowait()
                    except Empty:
                        break
                    for tool, (ask, there) in TOOLS.items():
                        if not there():
                            continue
                        begin = time.monotonic()
                        try:
                            word = ask(lane, factor)
                        except (RuntimeError, OSError, KeyError, StopIteration) as error:
                            print(f"{tool}: {str(error)[-400:]}", file=sys.stderr)
                            continue
                        answers.put(Answer(tool, busy, factor, word, time.monotonic() - begin))
            finally:
                for neighbour in neighbours:
                    neighbour.kill()
                    neighbour.wait()
                answers.put(None)

    with ThreadPoolExecutor(len(lanes)) as pool:
        for cores in lanes:
            pool.submit(serve, cores)
        left = len(lanes)
        while left:
            answer = answers.get()
            if answer is None:
                left -= 1
            else:
                yield answer


def table(answers: Sequence[Answer]) -> str:
    """How many answers of each tool were right, by kind of pair."""
    lines = [
        "| machine | tool | alike | 5 % | 20 % | right | wrong | open | seconds |",
        "| --- | --- |" + " --- |" * 7,
    ]
    for busy in (False, True):
        for tool in TOOLS:
            own = [a for a in answers if a.tool == tool and a.busy == busy]
            if not own:
                continue
            by_kind = []
            for factor in (1.0, 1.05, 1.2):
                kind = [a for a in own if a.factor == factor]
                by_kind.append(f"{sum(a.verdict == 'right' for a in kind)} of {len(kind)}")
            counts = [str(sum(a.verdict == word for a in own)) for word in ("right", "wrong", "open")]
            spent = f"{median(a.seconds for a in own):.0f}"
            cells = ["busy" if busy else "quiet", tool, *by_kind, *counts, spent]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Judge the pairs, or print the table of what was judged."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="for each tool and pair")
    parser.add_argument("--size", type=int, default=SIZE, help="of the program's work")
    parser.add_argument("--lanes", default="0-1", help="sets of cores, as taskset takes them, with commas")
    parser.add_argument("--pairs", type=int, default=len(KINDS))
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", help="only print the table of these files")
    options = parser.parse_args()
    if options.table:
        rows = [Answer(**row) for path in options.table for row in json.loads(path.read_text())]
        print(table(rows))
        return
    answers = []
    lanes = options.lanes.split(",")
    for answer in judge_pairs(lanes, options.seconds, options.size, busy=options.busy, pairs=options.pairs):
        answers.append(answer)
        print(
            f"{answer.tool:18} {answer.factor:5} {answer.word:7} {answer.verdict:6} {answer.seconds:5.1f} s",
            flush=True,
        )
        if options.out is not None:
            options.out.write_text(json.dumps([asdict(a) for a in answers], indent=1))
    print(table(answers))


if __name__ == "__main__":
    main()

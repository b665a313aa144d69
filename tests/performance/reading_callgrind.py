"""MB/s of reading callgrind files, against callgrind_annotate in the same run, and memory on large files.

Run alone: python tests/performance/reading_callgrind.py [MEGABYTES] [LARGE_MEGABYTES]
Limits: faster than callgrind_annotate; no more memory for a file four times as large (LARGE_MEGABYTES, by
default 4 * MEGABYTES; give 1024 to see a gigabyte). Exit code 1 where one is missed.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
EVENTS = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim"
FUNCTIONS, CALLS, LIBRARIES, FILES = 5_000, 6, 60, 800  # as of a Python program with a few libraries
GROWTH = 16.0  # MiB that a four times larger file may take on top; the tables by function do not grow
READ = (
    "import sys, resource; from pathlib import Path; "
    "from profkit.profilers.valgrind.read import read_callgrind; "
    "read_callgrind(Path(sys.argv[1])); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)


def write(path: Path, megabytes: float, seed: int = 1) -> None:
    """A file by the format's grammar, with the shares of line kinds that a Python program's file has."""
    rng = random.Random(seed)
    named: set[str] = set()

    def name(kind: str, number: int, text: str) -> str:
        first = f"{kind}{number}" not in named
        named.add(f"{kind}{number}")
        return f"({number}) {text}{number}" if first else f"({number})"

    total, sums = 0, 0
    with path.open("w") as file:
        total += file.write(
            f"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\nevents: {EVENTS}\n\n"
        )
        while total < megabytes * 1e6:
            function = rng.randrange(FUNCTIONS)
            lines = [f"ob={name('o', function % LIBRARIES, '/usr/lib/library')}"]
            lines.append(f"fl={name('f', function % FILES, 'Objects/file')}")
            lines.append(f"fn={name('n', function, '_PyObject_function')}")
            for _ in range(rng.randrange(3, 40)):
                cost = rng.randrange(1, 5000)
                columns = " ".join(str(rng.randrange(9)) for _ in range(rng.randrange(1, 9)))
                lines.append(f"+{rng.randrange(30)} {cost} {columns}")
                sums += cost
                if rng.random() < 0.15:
                    called = (function * 7 + rng.randrange(CALLS)) % FUNCTIONS
                    lines.append(f"cfi={name('f', called % FILES, 'Objects/file')}")
                    lines.append(f"cfn={name('n', called, '_PyObject_function')}")
                    lines.append(f"calls={rng.randrange(1, 50)} {rng.randrange(999)}")
                    lines.append(f"* {rng.randrange(10**6)} {rng.randrange(999)} {rng.randrange(999)}")
            total += file.write("\n".join(lines) + "\n\n")
        file.write(f"totals: {sums}\n")


def seconds(argv: list[str]) -> tuple[float, str]:
    begin = perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    spent = perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{argv[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return spent, done.stdout


def main(megabytes: float, large: float) -> int:
    good = True
    with tempfile.TemporaryDirectory(prefix="profkit-") as folder:
        small_file, large_file = Path(folder) / "small", Path(folder) / "large"
        write(small_file, megabytes)
        ours: list[float] = []
        theirs: list[float] = []
        annotate = shutil.which("callgrind_annotate")
        for _ in range(3):
            ours.append(seconds([sys.executable, "-c", READ, str(small_file)])[0])
            if annotate is not None:
                theirs.append(seconds([annotate, str(small_file)])[0])
        size = small_file.stat().st_size / 1e6
        print(f"profkit             {size / median(ours):7.1f} MB/s, start-up included")
        if theirs:
            ratio = median(theirs) / median(ours)
            print(f"callgrind_annotate  {size / median(theirs):7.1f} MB/s")
            good &= ratio > 1
            print(f"{ratio:.1f} times as fast{'' if ratio > 1 else ': MISSED, must be faster'}")
        else:
            print("callgrind_annotate is not installed: nothing to compare with")
        write(large_file, large)
        peaks = [
            int(seconds([sys.executable, "-c", READ, str(f)])[1]) / 1024 for f in (small_file, large_file)
        ]
        flat = peaks[1] - peaks[0] < GROWTH
        good &= flat
        print(f"memory: {peaks[0]:.0f} MiB for {megabytes:.0f} MB, {peaks[1]:.0f} MiB for {large:.0f} MB")
        print("flat" if flat else f"MISSED: grows by more than {GROWTH:.0f} MiB")
    return 0 if good else 1


if __name__ == "__main__":
    size_asked = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    sys.exit(main(size_asked, float(sys.argv[2]) if len(sys.argv) > 2 else 4 * size_asked))

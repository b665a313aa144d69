"""How fast an export of xctrace is read, and in how much memory: against XML parsers that do nothing with it.

    python tests/performance/reading_xctrace.py [--megabytes 500] [--table gpu|counters|stacks] [--folder DIR]

1. Grows a table to that size, and to a tenth of it: `gpu` is a recorded `metal-gpu-intervals` again and again, each
   time later; `stacks` a recorded `time-profile`; `counters` a made one of `metal-gpu-counter-intervals` by the real
   schema. The recorded ones are those of the fixtures (PROFKIT_FIXTURES).
2. Reads it with profkit, which delivers the wanted columns of every row as values, and with what does nothing:
   `xml.etree.iterparse` (the limit; it keeps all elements, so it is given the tenth), the same with every element
   cleared at its end, and lxml's iterparse, cleared too, where lxml is installed. Each in a process of its own;
   processor seconds are compared, since all of them are single threads that wait for nothing but the disk.

Aims: at least 60 % of the limit, and no more memory for ten times the table than 64 MB more. Exit code 1 where one is
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
FIXTURES = Path(os.environ.get("PROFKIT_FIXTURES", ROOT.parent / "shared" / "fixtures"))
LEAST_SHARE = 0.6
MOST_MORE = 64  # MB
COLUMNS = {
    "gpu": "start duration channel-name start-latency event-label state process cmdbuffer-id encoder-id",
    "counters": "start duration counter-id name label/@fmt value percent-value gpu is-percentage",
    "stacks": "time thread process thread-state weight stack",
}
COUNT = """
import json, re, sys, time
def told(count, start):
    # of this process alone: getrusage goes on from the peak of the one that started it
    peak = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
    print(json.dumps([time.process_time() - start, peak, count]))
"""
OURS = (
    COUNT
    + """
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from profkit.profilers.xctrace.tables import read_tables
start, count = time.process_time(), 0
for table in read_tables(Path(sys.argv[1])):
    for row in table.rows(sys.argv[3].split()):
        count += 1
told(count, start)
"""
)
PARSER = (
    COUNT
    + """
from {module} import iterparse
start, count = time.process_time(), 0
for _, element in iterparse(sys.argv[1]):
    {do}
told(count, start)
"""
)
PLAIN = PARSER.format(module="xml.etree.ElementTree", do="pass")
CLEARED = PARSER.format(module="xml.etree.ElementTree", do="element.clear()")
LXML = PARSER.format(module="lxml.etree", do="element.clear()")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--table", choices=sorted(COLUMNS), default="gpu")
    parser.add_argument("--folder", type=Path, help="where to put the files (default: a temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        small, large = Path(name, "tenth.xml"), Path(name, "whole.xml")
        rows = written(options.table, small, options.megabytes * 100_000)
        rows = written(options.table, large, options.megabytes * 1_000_000)
        print(f"{options.table}: {rows:,} rows, {large.stat().st_size / 1e6:.0f} MB; per second of processor")
        return judged(small, large, rows, COLUMNS[options.table])


def written(table: str, path: Path, size: int) -> int:
    from tests.xctrace_tables import counters, grow

    if table == "counters":
        return counters(path, size)
    source = {"gpu": "metal-gpu-intervals.xml", "stacks": "time-profile.xml"}[table]
    return grow(FIXTURES / "xctrace" / "m1-metal-system-trace" / source, path, size)


def judged(small: Path, large: Path, rows: int, columns: str) -> int:
    ours, peak, count = run(OURS, large, columns)
    assert count == rows, f"{count} rows of {rows}"
    tenth, least, _ = run(OURS, small, columns)
    speed = large.stat().st_size / 1e6 / ours
    shown("profkit", large, ours, peak, speed)
    shown("  of a tenth", small, tenth, least, speed)
    limit = 0.0
    for title, program, path in (
        ("iterparse", PLAIN, small),
        ("  cleared", CLEARED, large),
        ("lxml, cleared", LXML, large),
    ):
        try:
            spent, most, _ = run(program, path)
        except subprocess.CalledProcessError as error:
            print(f"{title:14} {error.stderr.decode().strip().splitlines()[-1]}")
            continue
        shown(title, path, spent, most, speed)
        limit = limit or path.stat().st_size / 1e6 / spent
    print(f"{speed / limit:.0%} of iterparse doing nothing (aim: {LEAST_SHARE:.0%} or more); ", end="")
    print(f"{peak - least:.0f} MB more memory for ten times the table (aim: at most {MOST_MORE})")
    return 0 if speed >= LEAST_SHARE * limit and peak - least <= MOST_MORE else 1


def shown(title: str, path: Path, spent: float, peak: float, ours: float) -> None:
    size = path.stat().st_size / 1e6
    print(
        f"{title:14} {size / spent:6.1f} MB/s ({spent:.1f} s for {size:.0f} MB), {peak:6.0f} MB of memory",
        end="",
    )
    print("" if title == "profkit" else f"; profkit is at {ours / (size / spent):.0%} of it")


def run(program: str, *arguments: Path | str) -> tuple[float, float, int]:
    first, *others = (str(argument) for argument in arguments)
    done = subprocess.run(
        [sys.executable, "-c", program, first, str(ROOT), *others], check=True, capture_output=True
    )
    spent, peak, count = json.loads(done.stdout)
    return spent, peak, count


if __name__ == "__main__":
    raise SystemExit(main())

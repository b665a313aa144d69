"""How far the shares of lines are from the truth: profkit's stacks, py-spy and pyinstrument beside each other.

Run alone, on a quiet machine: python tests/performance/sampler_bench.py [PYTHON [RUNS [PROGRAM ...]]]
PYTHON has what is compared (pandas, py-spy, pyinstrument; each is left out where it is missing) and is this one if none
is given. Six runs of each program. Limit: 3 points in each run of profkit.

The truth is in the program: `perf_counter` before and after a part, on the line of the part itself, less the parts that
it calls. Of several threads it is `thread_time`, and the shares are those of processor time: what a thread waits for
the lock or a processor belongs to none of its lines. What is no part does not count. A program whose run says that it
does not know how its lines share their time, or that is not solved, is shown, and does not fail.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from profkit.backends.passes import sampled_runs
from profkit.profilers.host.stacks import read_stacks
from profkit.runtime.passes.command import START_FOLDER

samples: list[int] = []  # of profkit, in each run
Shares: TypeAlias = "dict[str, float]"
LIMIT = 0.03
HEAD = """
import atexit, json, os, sys, time
T = {}
now = time.perf_counter
def add(name, seconds): T[name] = T.get(name, 0.0) + seconds
"""
TAIL = """
json.dump(T, open(sys.argv[1], "w"))
"""
PANDAS = """
from datetime import date
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
n = 60_000
left = pd.DataFrame({"key": rng.integers(0, 5_000, n), "x": rng.random(n)})
right = pd.DataFrame({"key": np.arange(5_000), "name": [f"name {i % 97}" for i in range(5_000)]})
few = left.head(4_000)
days = pd.Series(pd.date_range("2020-01-01", periods=4_000, freq="h"))
def row(r):
    t = now()
    day = date(2020, 1, 1 + int(r["key"] % 28)).strftime("%A %d %B %Y, %j")  # part: row-strftime
    u = now()
    text = " ".join(sorted(day.split(), key=len)) * 3  # part: row-text
    v = now()
    add("row-strftime", u - t)
    add("row-text", v - u)
    add("row", now() - t)
    return len(text)
def work():
    for _ in range(24):
        t = now(); joined = left.merge(right, on="key"); add("join", now() - t)
        t = now(); few.apply(row, axis=1); add("apply", now() - t)
        t = now(); joined.groupby("name").agg({"x": ["mean", "std", "median"]}); add("agg", now() - t)
        t = now(); days.dt.strftime("%Y-%m-%d %H:%M"); add("strftime", now() - t)
        t = now(); joined.sort_values(["name", "x"]); add("sort", now() - t)
        t = now(); [str(x) for x in joined["x"].head(20_000)]; add("text", now() - t)
work()
T["apply"] -= T.pop("row")
"""
NESTED = """
import json as js, re, zlib
from datetime import date
data = {f"k{i}": [i, str(i), {"a": i * 0.5}] for i in range(4_000)}
text = "lorem ipsum 12-34 dolor, sit 56-78 amet; " * 3_000
pattern = re.compile(r"(\\d+)-(\\d+)")
numbers = [i * 7919 % 30011 for i in range(30_000)]
blob = os.urandom(1 << 16) * 6
def order(n):
    return -n % 1000
def swap(m):
    return m[2] + m[1]
def work():
    for _ in range(28):
        t = now(); made = js.dumps(data, indent=None); add("dumps", now() - t)
        t = now(); js.loads(made); add("loads", now() - t)
        t = now(); pattern.sub(swap, text); add("sub", now() - t)
        t = now(); sorted(numbers, key=order); add("sorted", now() - t)
        t = now(); zlib.compress(blob, 1); add("zlib", now() - t)
        t = now(); numbers.count(-1) + sum(numbers * 20); add("sum", now() - t)
        t = now(); big = numbers * 30 + numbers * 20; add("join lists", now() - t)
        t = now(); -1 in big; add("search", now() - t)
        t = now(); [date(2020, 1, 1 + n % 28).strftime("%A") for n in numbers[:6000]]; add("dates", now() - t)
work()
"""
# A key and a swap are lines of their own, whose time is that of the line that calls them.
ASYNCIO = """
import asyncio, hashlib, json as js
data = {f"k{i}": [i, str(i)] for i in range(500)}
async def parse():
    for _ in range(700):
        t = now(); made = js.dumps(data); add("dumps", now() - t)
        t = now(); [js.loads(made) for _ in range(2)]; add("loads", now() - t)
        await asyncio.sleep(0.001)
async def count():
    for _ in range(700):
        t = now(); sum(i * i % 7 for i in range(9_000)); add("sum", now() - t)
        await asyncio.sleep(0.002)
async def check():
    for _ in range(340):
        t = now(); hashlib.sha256(bytes(1 << 20)).hexdigest(); add("sha", now() - t)
        t = now(); sorted(range(40_000), key=lambda n: -n); add("sorted", now() - t)
        await asyncio.sleep(0.005)
async def main():
    await asyncio.gather(parse(), count(), check())
asyncio.run(main())
"""
# Tasks of 0.05, 0.5 and 5 ms, each of which ends in a wait of the event loop.
TASKS = """
import asyncio, threading, zlib
async def repeat(times, pause, call):
    for n in range(times):
        call(n)
        await asyncio.sleep(pause)
def short(n):
    t = now(); sum(range(n % 7, 1_400)); add("short", now() - t)
def medium(n):
    t = now(); [n * m for m in range(8_000)]; add("medium", now() - t)
def long(n):
    t = now(); sorted(range(20_000), key=lambda m: -m); add("long", now() - t)
async def main():
    tasks = [repeat(3_000, 0.0003, short) for _ in range(4)] + [repeat(2_000, 0.0005, medium), repeat(250, 0.004, long)]
    await asyncio.gather(*tasks)
asyncio.run(main())
"""
# The same beside two threads that compute without the interpreter's lock.
WORKERS = TASKS.replace(
    "async def main():",
    """\
ended = threading.Event()
blob = os.urandom(1 << 15) * 8
def pack():
    while not ended.is_set():
        zlib.compress(blob, 1)
        time.sleep(0.004)
async def main():
    packing = asyncio.gather(asyncio.to_thread(pack), asyncio.to_thread(pack))
""",
).replace(
    "gather(*tasks)",
    """gather(*tasks)
    ended.set()
    await packing
""",
)
POOL = """
import hashlib, json as js, zlib
from concurrent.futures import ThreadPoolExecutor
now = time.thread_time
data = {f"k{i}": [i, str(i)] for i in range(3_000)}
made = js.dumps(data)
blob = os.urandom(1 << 15) * 8
import threading
lock = threading.Lock()
def task(n):
    t = now(); js.loads(made); a = now() - t
    t = now(); zlib.compress(blob, 1); b = now() - t
    t = now(); sum(i * i % 7 for i in range(40_000)); c = now() - t
    t = now(); sorted(map(str, range(9_000))); d = now() - t
    with lock:
        add("loads", a); add("zlib", b); add("sum", c); add("sorted", d)
with ThreadPoolExecutor(3) as pool:
    list(pool.map(task, range(200)))
"""
DJANGO = """
import django
from django.conf import settings
databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
options = {"BACKEND": "django.template.backends.django.DjangoTemplates"}
field = "django.db.models.AutoField"
settings.configure(DATABASES=databases, INSTALLED_APPS=[], TEMPLATES=[options], DEFAULT_AUTO_FIELD=field)
django.setup()
from django.db import connection, models
from django.template import Context, Engine
class Book(models.Model):
    title, price = models.CharField(max_length=40), models.IntegerField()
    class Meta: app_label = "shop"
with connection.schema_editor() as editor:
    editor.create_model(Book)
page = Engine().from_string("{% for b in books %}<li>{{ b.title|upper }} {{ b.price }}</li>{% endfor %}")
def total(books):
    return sum(b.price * (b.price % 7) for b in books for _ in range(12))
for n in range(60):
    new = [Book(title=f"book {k}", price=k) for k in range(120)]
    t = now(); Book.objects.bulk_create(new); add("insert", now() - t)
    t = now(); books = list(Book.objects.filter(price__lt=90).order_by("title")[:400]); add("select", now() - t)
    t = now(); page.render(Context({"books": books})); add("render", now() - t)
    t = now(); [Book.objects.get(pk=k + 1) for k in range(40)]; add("get", now() - t)
    t = now(); Book.objects.filter(price=n).update(price=n + 1); add("update", now() - t)
    t = now(); total(books); add("total", now() - t)
"""
# The interpreter's lock is given away after each 0.1 ms, for a call that takes nothing.
HANDOVER = """
import select
poll = select.epoll()
def count():
    for n in range(3_000): pass
def search():
    for n in range(2_000): n in (1, 2)
for n in range(12_000):
    t = now(); count(); add("count", now() - t)
    t = now(); search(); add("search", now() - t)
    t = now(); poll.poll(0); add("poll", now() - t)
"""
# A loop of 15 µs with a call that gives the lock away for one.
DOTS = """
import numpy as np
u, v = np.random.rand(300), np.random.rand(300)
numbers, words = list(range(150)), "the quick brown fox jumps over the lazy dog " * 4
for n in range(150_000):
    t = now(); [m * n for m in numbers]; add("scale", now() - t)
    t = now(); np.dot(u, v); add("dot", now() - t)
    t = now(); words.split(); add("split", now() - t)
    t = now(); sum(numbers); add("sum", now() - t)
    t = now(); sorted(numbers, key=abs); add("sorted", now() - t)
"""
ROLLING = """
import numpy as np, pandas as pd
values = pd.Series(np.random.rand(80_000))
def spread(window):
    begun = now()
    t = now(); high = window.max(); add("max", now() - t)
    t = now(); low = min(window); add("min", now() - t)
    t = now(); sum([m * m for m in range(100)]); add("squares", now() - t)
    add("all", now() - begun)
    return high - low
t = now(); values.rolling(20).apply(spread); add("apply", now() - t)
T["apply"] -= T.pop("all")
"""
# Two threads that never run at a time.
SWAP = """
import threading
ping, pong = threading.Lock(), threading.Lock()
pong.acquire()
now = time.thread_time
def one():
    for n in range(8_000):
        ping.acquire()
        t = now(); [m * n for m in range(3_000)]; add("scale", now() - t)
        t = now(); sorted(range(3_000), key=abs); add("sorted", now() - t)
        pong.release()
def two():
    for n in range(8_000):
        pong.acquire()
        t = now(); sum(m for m in range(2_000)); add("sum", now() - t)
        t = now(); "the quick brown fox ".split() * 2000; add("split", now() - t)
        ping.release()
other = threading.Thread(target=two)
other.start()
one()
other.join()
"""
NEEDS = {"pandas": ("pandas",), "rolling": ("pandas",), "dots": ("numpy",), "django": ("django",)}
OF_THREADS = ("pool", "swap")  # the shares of their lines are those of processor time
UNKNOWN = ("dots", "swap")  # whose run says that it does not know how their lines share their time
# Off by 20 points: threads that work without the lock are taken for such that compete for it, and the sampler asks for
# it after 5 ms, which is when the event loop gives it away to wait.
NOT_SOLVED = ("workers",)
PROGRAMS = {
    "pandas": PANDAS,
    "nested": NESTED,
    "asyncio": ASYNCIO,
    "tasks": TASKS,
    "workers": WORKERS,
    "pool": POOL,
    "django": DJANGO,
    "handover": HANDOVER,
    "dots": DOTS,
    "rolling": ROLLING,
    "swap": SWAP,
}
_PART = re.compile(r"^\s*t = now\(\); .*?; (?:add\(\"([\w -]+)\"|([abcd]) = )")
_MARKED = re.compile(r"# part: ([\w-]+)$")
_OF_POOL = {"a": "loads", "b": "zlib", "c": "sum", "d": "sorted"}
_LAST = {
    "order": "sorted",
    "swap": "sub",
    "total": "total",
    "count": "count",
    "search": "search",
}  # functions of the program whose time is that of the part which calls them


def parts_of(text: str) -> dict[int, str]:
    """The part of each line, of those that are one."""
    parts: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := _PART.match(line):
            parts[number] = found[1] or _OF_POOL[found[2]]
        elif marked := _MARKED.search(line):
            parts[number] = marked[1]
    for one in ast.walk(ast.parse(text)):
        if isinstance(one, ast.FunctionDef) and one.name in _LAST:
            parts |= dict.fromkeys(range(one.lineno, (one.end_lineno or 0) + 1), _LAST[one.name])
    return parts


def shares(weights: dict[str, float]) -> Shares:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()} if total > 0 else {}


def by_part(parts: dict[int, str], lines: Iterator[tuple[int, float]]) -> Shares:
    weights: Counter[str] = Counter()
    for line, weight in lines:
        if line in parts:
            weights[parts[line]] += weight
    return shares(dict(weights))


def environment(out: Path | None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROFKIT"))}
    return env | ({"PROFKIT_STACKS": str(out), "PYTHONPATH": str(START_FOLDER)} if out is not None else {})


def by_profkit(python: str, script: Path, folder: Path, parts: dict[int, str]) -> Shares:
    """Sample a program as often as the stacks pass does; the truth is that of these runs together."""
    argv = [python, str(script), str(folder / "truth")]
    begun, before = perf_counter(), os.times()
    run(argv, environment(None))
    plain, after = perf_counter() - begun, os.times()
    own = after.children_user + after.children_system - before.children_user - before.children_system
    count = sampled_runs(plain, own)
    outs, truth = [folder / f"stacks-{number}.jsonl" for number in range(count)], Counter[str]()
    for out in outs:
        out.unlink(missing_ok=True)
        run(argv, environment(out))
        truth.update(json.loads((folder / "truth").read_text()))
    (folder / "truth").write_text(json.dumps(truth))
    report = read_stacks(outs[0], outs[1:])
    samples.append(int(report.facts["samples"]))
    sampled = report.sampled
    assert sampled is not None
    threads = script.stem.removesuffix("_program") in OF_THREADS
    return by_part(
        parts,
        (
            (one.line or 0, one.main_cpu + one.other_cpu if threads else one.main_wall)
            for one in sampled.lines
            if one.file == str(script)
        ),
    )


def by_py_spy(python: str, script: Path, folder: Path, parts: dict[int, str]) -> Shares:
    out = folder / "spied.txt"
    spy = str(Path(python).with_name("py-spy"))
    words = ["record", "--nonblocking", "--full-filenames", "--format", "raw", "--rate", "100", "--output"]
    run([spy, *words, str(out), "--", python, str(script), str(folder / "truth")], environment(None))

    def lines() -> Iterator[tuple[int, float]]:
        frame = re.compile(re.escape(str(script)) + r":(\d+)\)")
        for row in out.read_text().splitlines():
            stack, _, count = row.rpartition(" ")
            if found := frame.findall(stack):
                yield int(found[-1]), float(count)

    return by_part(parts, lines())


def by_pyinstrument(python: str, script: Path, folder: Path, parts: dict[int, str]) -> Shares:
    out = folder / "pyinstrument.session"
    words = ["-m", "pyinstrument", "-r", "session", "-i", "0.001", "-o", str(out)]
    run([python, *words, str(script), str(folder / "truth")], environment(None))

    def lines() -> Iterator[tuple[int, float]]:
        for frames, seconds in json.loads(out.read_text())["frame_records"]:
            own = [one for one in frames if one.split("\0")[1] == str(script)]
            number = (
                next((part[1:] for part in own[-1].split("\x01")[1:] if part.startswith("l")), "0")
                if own
                else "0"
            )
            yield int(number), seconds

    return by_part(parts, lines())


TOOLS: dict[str, Callable[[str, Path, Path, dict[int, str]], Shares]] = {
    "profkit": by_profkit,
    "py-spy": by_py_spy,
    "pyinstrument": by_pyinstrument,
}


def run(argv: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{argv} exited with {done.returncode}: {done.stderr[-2000:]}")


def has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def main() -> int:
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    tools = dict(TOOLS)
    if not shutil.which(str(Path(python).with_name("py-spy"))):
        del tools["py-spy"]
    if not has(python, "pyinstrument"):
        del tools["pyinstrument"]
    failed = False
    for name, code in PROGRAMS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        if missing := [one for one in NEEDS.get(name, ()) if not has(python, one)]:
            print(f"{name}: left out, {missing[0]} is not there")
            continue
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            script = folder / f"{name}_program.py"
            script.write_text(HEAD + code + TAIL)
            parts = parts_of(script.read_text())
            print(f"{name}:")
            for tool, measure in tools.items():
                if name in OF_THREADS and tool == "pyinstrument":  # it samples the main thread alone
                    continue
                worst: list[float] = []
                samples.clear()
                seen: dict[str, list[float]] = {}
                for _ in range(rounds):
                    found = measure(python, script, folder, parts)
                    true = shares(json.loads((folder / "truth").read_text()))
                    off = {part: found.get(part, 0.0) - share for part, share in true.items()}
                    worst.append(max(map(abs, off.values())))
                    for part, points in off.items():
                        seen.setdefault(part, []).append(points)
                print(f"  {tool}: {samples or ''} off by at most {100 * max(worst):.1f} points ("
                      + ", ".join(f"{100 * one:.1f}" for one in worst) + ")")  # fmt: skip
                for part, points in seen.items():
                    print(
                        f"    {part}: {100 * true[part]:.1f} %, {100 * min(points):+.1f} to {100 * max(points):+.1f}"
                    )
                failed |= tool == "profkit" and name not in UNKNOWN + NOT_SOLVED and max(worst) > LIMIT
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

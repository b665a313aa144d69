"""cProfile files of every interpreter of this machine, `pstats` as the truth; damaged and hostile ones."""

from __future__ import annotations

import marshal
import pstats
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Profile, Report
from profkit.profilers.cprofile import looks_like_cprofile, read_cprofile, read_marshal

WORK = """
import json, decimal
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def main():
    fib(10)
    json.loads(json.dumps([1.5, {"a": 2}] * 50, indent=1))
main()
"""

# One function with own 0.25 s and cumulative 1 s in 3 calls, called by another.
ENTRY = {("app/main.py", 7, "step"): (2, 3, 0.25, 1.0, {("app/main.py", 1, "main"): (2, 3, 0.25, 1.0)})}


def pythons() -> list[str]:
    """Every Python 3.8 or later that lies around here, this one first."""
    found = {sys.version_info[:2]: sys.executable}
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3")):
        minor = int(path.parent.parent.name.split(".")[1])
        if minor >= 8:
            found.setdefault((3, minor), str(path))
    return list(found.values())


def record(python: str, folder: Path) -> Path:
    (folder / "work.py").write_text(WORK)
    argv = [python, "-m", "cProfile", "-o", "out.prof", "work.py"]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "out.prof"


def written(tmp_path: Path, data: object, version: int = marshal.version) -> Path:
    path = tmp_path / "in.prof"
    path.write_bytes(data if isinstance(data, bytes) else marshal.dumps(data, version))
    return path


def named(report: Report, title: str) -> Profile:
    (found,) = [p for p in report.profiles if p.title.startswith(title)]
    return found


@pytest.mark.parametrize("python", pythons(), ids=lambda p: p.split("/")[-3] if "versions" in p else "this")
def test_a_file_of_any_python_says_what_pstats_says(tmp_path: Path, python: str):
    path = record(python, tmp_path)
    assert looks_like_cprofile(path.read_bytes()[:65536])
    report = read_cprofile(path)
    stats = pstats.Stats(str(path))
    truth = stats.stats  # type: ignore[attr-defined]
    own = named(report, "own time")
    assert len(own.hotspots) == len(truth)
    assert own.total == pytest.approx(stats.total_tt)  # type: ignore[attr-defined]
    for hotspot in own.hotspots:
        primitive, calls, tt, ct, _ = truth[hotspot.file or "~", hotspot.line or 0, hotspot.function]
        assert (hotspot.own, hotspot.total, hotspot.calls) == (tt, ct, calls)
        assert hotspot.counters["primitive_calls"] == primitive
    assert [h.own for h in own.hotspots] == sorted((h.own for h in own.hotspots), reverse=True)
    fib = next(h for h in own.hotspots if h.function == "fib")
    assert (fib.calls, fib.library, fib.file) == (177, None, "work.py")


@pytest.mark.parametrize("python", pythons()[:1])
def test_import_time_is_apart_and_holds_the_imported_modules_only(tmp_path: Path, python: str):
    report = read_cprofile(record(python, tmp_path))
    imports = named(report, "import time")
    files = [hotspot.file or "" for hotspot in imports.hotspots]
    assert any(file.endswith("json/__init__.py") for file in files)
    assert "work.py" not in files
    assert 0 < imports.total < named(report, "own time").total
    assert (imports.hotspots[0].total or 0) <= imports.total


def test_calls_of_the_programs_own_functions_are_told_by_caller_and_callee(tmp_path: Path):
    report = read_cprofile(record(sys.executable, tmp_path))
    calls = {
        (edge.function, edge.callee.function): edge
        for edge in named(report, "own functions").hotspots
        if edge.callee
    }
    loads = calls["main", "loads"]
    assert (loads.calls, loads.file, loads.callee and loads.callee.library) == (
        1,
        "work.py",
        "standard library",
    )
    assert calls["fib", "fib"].calls == 176
    assert not any(caller == "iterencode" for caller, _ in calls)  # the library among itself


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_of_the_format_is_read(tmp_path: Path, version: int):
    assert read_cprofile(written(tmp_path, ENTRY, version)).profiles[0].total == 0.25
    assert read_marshal(marshal.dumps(ENTRY, version)) == ENTRY
    assert looks_like_cprofile(marshal.dumps(ENTRY, version))


PLACES = {
    "~": "built-in",
    "/opt/python/lib/python3.12/json/encoder.py": "standard library",
    "<frozen importlib._bootstrap>": "standard library",
    "/opt/env/lib/python3.12/site-packages/numpy/linalg.py": "numpy",
    "/usr/lib/python3/dist-packages/six.py": "six",
    "C:\\Python\\Lib\\site-packages\\numpy\\core.py": "numpy",
    "app/main.py": None,
}


OTHERS = [
    *({}, [], 3, "text", {1: 2}, compile("1", "x", "eval"), 1 << 200),
    *({("a", 1): (1, 1, 0.0, 0.0, {})}, {("a", 1, "f"): (1, 1)}, {("a", 1, "f"): None}),
    *({("a", 1, "f"): (1, 1, float(bad), 0.0, {})} for bad in ("nan", "inf")),
    *({("a", "1", "f"): (1, 1, 0.0, 0.0, {})}, {("a", 1, "f"): (1, 1, 0.0, 0.0, {1, 2})}),
]


@pytest.mark.parametrize("value", OTHERS)
def test_other_marshal_data_is_refused(tmp_path: Path, value: object):
    with pytest.raises(UnreadableReport, match=r"in\.prof"):
        read_cprofile(written(tmp_path, value))


WHOLE = marshal.dumps(ENTRY)


def length(number: int) -> bytes:
    return struct.pack("<i", number)


# A tuple whose parts are twice the tuple before it, 40 times: hashing the last one would take 2^40 steps.
DOUBLING = b"\xa9\x02" + 2 * (b"i" + length(1))
DOUBLING += b"".join(b"\xa9\x02r%sr%s" % (length(n), length(n)) for n in range(40))
HOSTILE = {
    "a list of 2^31 parts": b"[" + length(2**31 - 1),
    "a negative length": b"(" + length(-5),
    "a text of 2 GB": b"u" + length(2**31 - 1) + b"abc",
    "nested tuples": b"(\x01\0\0\0" * 100_000,
    "nested dicts": (b"{i" + length(1)) * 100_000,
    "a reference to nothing": b"r" + length(3),
    "a tuple that holds itself": b"\xa8\x01\0\0\0r" + length(0),
    "a key that is costly to compare": b"{(" + length(41) + DOUBLING + b"i" + length(1) + b"0",
    "code": b"c" + bytes(40),
    "a number of a million digits": b"l" + length(10**6) + bytes(2 * 10**6),
    "an unknown type": b"?",
    "an end without a beginning": b"0",
    "more after the end": WHOLE + b"N",
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_data_is_refused_at_once(tmp_path: Path, kind: str):
    start = time.process_time()
    with pytest.raises(UnreadableReport):
        read_cprofile(written(tmp_path, HOSTILE[kind]))
    assert time.process_time() - start < 1

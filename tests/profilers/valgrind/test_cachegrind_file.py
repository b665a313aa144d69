"""Cachegrind files with and without simulated caches."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.valgrind.read import looks_like_cachegrind, read_cachegrind

WITH_CACHES = """\
desc: I1 cache:         32768 B, 64 B, 8-way associative
desc: D1 cache:         49152 B, 64 B, 12-way associative
desc: LL cache:         8388608 B, 64 B, 16-way associative
cmd: ./kernels
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw
fl=kernels.c
fn=add
10 100 1 1 50 25 25 25 3 3
11 20 0 0 0 0 0 0 0 0
fl=???
fn=main
0 7 1 1 2 0 0 1 0 0
summary: 127 2 2 52 25 25 26 3 3
"""
NINE = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
INSTRUCTIONS_ONLY = "cmd: ./kernels\nevents: Ir\nfl=kernels.c\nfn=add\n10 100\n11 .\nsummary: 100\n"
INLINED = "desc: a\ncmd: ./k\nevents: Ir\nfl=k.c\nfn=add\n10 100\nfi=k.h\n3 5\nfe=k.c\n11 1\nsummary: 106\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "cachegrind.out.1"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WITH_CACHES, dict(zip(NINE, (127, 2, 2, 52, 25, 25, 26, 3, 3), strict=True))),
        (INSTRUCTIONS_ONLY, {"Ir": 100}),
        (INLINED, {"Ir": 106}),
    ],
)
def test_counters(tmp_path: Path, text: str, expected: dict[str, int]) -> None:
    report = read_cachegrind(written(tmp_path, text))
    assert {c.name: c.value for c in report.counters} == expected
    assert (report.tool, report.format) == ("valgrind", "cachegrind")


def test_a_profile_without_callers_has_no_totals(tmp_path: Path) -> None:
    hottest = read_cachegrind(written(tmp_path, WITH_CACHES)).profiles[0].hotspots[0]
    assert (hottest.function, hottest.own, hottest.total, hottest.calls) == ("add", 120.0, None, None)
    assert hottest.file == "kernels.c"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WITH_CACHES.replace("summary", "# summary"), "cut short"),
        (WITH_CACHES.replace("summary: 127", "summary: 128"), "contradicts itself"),
        (WITH_CACHES.replace("11 20 0", "11 twenty 0"), "costs expected"),
        ("cmd: ./k\nevents: Ir\n", "cut short"),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UnreadableReport, match=words):
        read_cachegrind(written(tmp_path, text))


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (WITH_CACHES, True),
        (INSTRUCTIONS_ONLY, True),
        ("# callgrind format\nversion: 1\ncmd: a\nevents: Ir\n", False),
        ("cmd: a\nevents: Ir\npositions: line\nfn=a\n", False),
        ("cmd: a\n", False),
    ],
)
def test_told_by_content(head: str, is_one: bool) -> None:
    assert looks_like_cachegrind(head.encode()) is is_one


@pytest.mark.valgrind
@pytest.mark.parametrize("caches", ["yes", "no"])
def test_what_cachegrind_writes_here_is_read(tmp_path: Path, caches: str) -> None:
    out = tmp_path / "out"
    true = shutil.which("true") or "/bin/true"
    argv = [
        "valgrind",
        "-q",
        "--tool=cachegrind",
        f"--cache-sim={caches}",
        f"--cachegrind-out-file={out}",
        true,
    ]
    subprocess.run(argv, check=True, capture_output=True)
    assert looks_like_cachegrind(out.read_bytes())
    report = read_cachegrind(out)
    counted = {c.name: c.value or 0.0 for c in report.counters}
    assert 10_000 < counted["Ir"] < 10_000_000
    assert ("D1mr" in counted) is (caches == "yes")

"""Reports with numbers that cannot be, or that a locale twisted; and odd ones that are right.

Made of recordings of tests/data by changes that mean something: another decimal sign, a row twice, a share above its
whole, a unit that nobody knows. `wrong` says whether the wrong number stands in the document as if it were right.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import marshal
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from profkit.core.run_folder import run_to_json
from profkit.core.types import RunDocument
from tests import documents, gpu_documents
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data"
Wrong = Callable[[RunDocument], bool]


@dataclass(frozen=True)
class Case:
    """One file: its name, what writes it, and whether a document holds its wrong number unmarked."""

    name: str
    write: Callable[[Path], None]
    wrong: Wrong


def known(document: RunDocument, metric: str) -> list[float]:
    """The values of a metric that stand as right."""
    return [r.value for r in document.readings if r.metric == metric and r.value is not None and not r.doubt]


def other_than(metric: str, right: float | None = None) -> Wrong:
    """Whether a value of the metric stands that is not `right`; None: whether any stands."""
    return lambda document: any(
        right is None or not isclose(value, right, rel_tol=1e-3) for value in known(document, metric)
    )


def other_than_all(metric: str, *right: float) -> Wrong:
    """Whether a value of the metric stands that is none of these."""
    return lambda document: any(
        not any(isclose(value, one, rel_tol=1e-3) for one in right) for value in known(document, metric)
    )


def total_above(most: float) -> Wrong:
    """Whether a profile has a larger total."""
    return lambda document: any(p.total > most and p.doubt is None for p in document.profiles)


# ---------------------------------------------------------------- perf stat

TABLE = """
 Performance counter stats for 'python3 work.py':

            {clock} task-clock                       #    {utilized} CPUs utilized
          {faults}      page-faults                      #  447{point}304 K/sec
     {cycles}      cycles                           #    3{point}412 GHz
     {instructions}      instructions                     #    1{point}41  insn per cycle
     {branches}      branches                         #  100{point}000 M/sec

       0{point}545367975 seconds time elapsed

       0{point}101526000 seconds user
       0{point}442658000 seconds sys

"""
RIGHT = {
    "clock": "536.62 msec", "utilized": "0.984", "faults": "240,034", "cycles": "1,830,947,000",
    "instructions": "2,581,635,270", "branches": "53,662,000", "point": ".",
}  # fmt: skip


def perf_text(**changed: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(TABLE.format(**{**RIGHT, **changed}), encoding="utf-8") and None


ROWS = {
    "task-clock": "536.62,msec,task-clock,536620000,100.00,0.984,CPUs utilized",
    "cycles": "1830947000,,cycles,536620000,100.00,3.412,GHz",
    "instructions": "2581635270,,instructions,536620000,100.00,1.41,insn per cycle",
    "branches": "53662000,,branches,536620000,100.00,100.000,M/sec",
    "page-faults": "240034,,page-faults,536620000,100.00,447.304,K/sec",
}


def perf_csv(**changed: str) -> Callable[[Path], None]:
    rows = {**ROWS, **{name.replace("_", "-"): row for name, row in changed.items()}}
    return lambda path: path.write_text("\n".join(rows.values()) + "\n") and None


def text(content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(data) and None


def json_row(event: str, value: str, unit: str = "", runtime: int = 536620000, **more: Any) -> str:
    return json.dumps(
        {
            "counter-value": value, "unit": unit, "event": event, "event-runtime": runtime, "pcnt-running": 100.0,
            "metric-value": "1.0", "metric-unit": "GHz", **more,
        }
    )  # fmt: skip


FAULTS = 240034.0
GROUPED = {
    "a-blank": "240 034", "a-narrow-no-break-space": "240\u202f034", "a-no-break-space": "240\xa0034",
    "a-thin-space": "240\u2009034", "an-apostrophe": "240'034", "a-right-quote": "240\u2019034",
    "a-point": "240.034", "an-arabic-sign": "240\u066c034", "indian-groups": "2,40,034",
}  # fmt: skip
PERF = [
    *(
        Case(f"perf-text-{name}", perf_text(faults=digits), other_than("page_faults", FAULTS))
        for name, digits in GROUPED.items()
    ),
    Case(
        "perf-text-indian-billions",
        perf_text(instructions="2,58,16,35,270"),
        other_than("instructions", 2581635270.0),
    ),
    Case("perf-text-groups-of-two-at-the-end", perf_text(faults="2,400,34"), other_than("page_faults")),
    Case("perf-text-two-group-signs", perf_text(faults="1,80.037"), other_than("page_faults")),
    Case("perf-text-half-a-fault", perf_text(faults="12.5"), other_than("page_faults")),
    Case("perf-text-negative-count", perf_text(faults="-240,034"), other_than("page_faults")),
    Case("perf-text-10^40-cycles", perf_text(cycles="1" + ",000" * 13 + ",0" * 0), other_than("cycles")),
    Case("perf-text-2^64-1-cycles", perf_text(cycles="18,446,744,073,709,551,615"), other_than("cycles")),
    Case(
        "perf-text-decimal-comma-msec",
        perf_text(
            clock="1,234 msec",
            utilized="0,984",
            faults="12",
            point=",",
            cycles="4.210.408",
            instructions="5.936.675",
            branches="123.400",
        ),
        other_than("time.cpu", 0.001234),
    ),
    Case("perf-text-unit-fortnight", perf_text(clock="536.62 fortnight"), other_than("time.cpu", 0.544184)),
    Case(
        "perf-csv-10^40-cycles",
        perf_csv(cycles=ROWS["cycles"].replace("1830947000", "1" + "0" * 40)),
        other_than("cycles"),
    ),
    Case(
        "perf-csv-2^64-1-page-faults",
        perf_csv(page_faults=ROWS["page-faults"].replace("240034", str(2**64 - 1))),
        other_than("page_faults"),
    ),
    Case(
        "perf-csv-unit-fortnight",
        perf_csv(task_clock=ROWS["task-clock"].replace("msec", "fortnight")),
        other_than("time.cpu"),
    ),
    Case(
        "perf-csv-clock-without-unit",
        perf_csv(task_clock=ROWS["task-clock"].replace("msec", "")),
        other_than("time.cpu", 0.53662),
    ),
    Case(
        "perf-csv-half-a-fault",
        perf_csv(page_faults=ROWS["page-faults"].replace("240034", "240034.5")),
        other_than("page_faults"),
    ),
    Case(
        "perf-csv-negative-instructions",
        perf_csv(instructions="-" + ROWS["instructions"]),
        other_than("instructions"),
    ),
    Case(
        "perf-csv-100-instructions-a-cycle",
        perf_csv(instructions=ROWS["instructions"].replace("2581635270", "258163527000")),
        other_than("instructions"),
    ),
    Case(
        "perf-csv-10-THz",
        perf_csv(cycles=ROWS["cycles"].replace("1830947000", "5366200000000")),
        other_than("cycles"),
    ),
    Case(
        "perf-csv-more-branches-than-instructions",
        perf_csv(branches=ROWS["branches"].replace("53662000", "53662000000")),
        other_than("branch.count"),
    ),
    Case(
        "perf-csv-250-percent-running",
        perf_csv(page_faults=ROWS["page-faults"].replace("100.00", "250.00")),
        other_than("page_faults", FAULTS),
    ),
    Case(
        "perf-csv-decimal-comma",
        text(
            "6376827291,,cycles,2011741096,100,00,3,GHz\n"
            "9012345678,,instructions,2011741096,100,00,1,41,insn per cycle\n"
            "1234,56,msec,task-clock,306721,100,00,0,99,CPUs utilized\n"
        ),
        lambda document: bool(document.readings),
    ),
    Case(
        "perf-json-10^40-cycles",
        text(json_row("cycles", "1" + "0" * 40 + ".000000") + "\n"),
        other_than("cycles"),
    ),
    Case(
        "perf-json-decimal-comma",
        text(json_row("task-clock", "1,234", "msec") + "\n"),
        other_than("time.cpu", 0.001234),
    ),
]

SCRIPT = (DATA / "perf" / "script.two-events.txt").read_text()


def longer_periods(factor: int) -> str:
    return re.sub(r" (\d+) +cpu-clock:", lambda match: f" {int(match[1]) * factor} cpu-clock:", SCRIPT)


SAMPLES = [
    Case(
        "perf-script-a-period-of-2^64-1",
        text(re.sub(r" \d+ +cpu-clock:", f" {2**64 - 1} cpu-clock:", SCRIPT, count=1)),
        total_above(1e6),
    ),
    Case(
        "perf-script-1000-times-the-window",
        text(longer_periods(1000)),
        lambda d: any(p.unit == "s" and p.total > 100 for p in d.profiles),
    ),
]


# ---------------------------------------------------------------- callgrind

CALLGRIND = (DATA / "valgrind" / "list.lines.callgrind").read_text()
INSTRUCTIONS = 589832.0


def changed_lines(change: Callable[[str], Iterable[str]], source: str = CALLGRIND) -> Callable[[Path], None]:
    out: list[str] = []
    called = False
    for line in source.splitlines():
        of_call, called = called, line.startswith("calls=")
        out += change(line) if re.match(r"[\d+*-]", line) and not of_call else [line]
    return text("\n".join(out) + "\n")


VALGRIND = [
    Case(
        "callgrind-60-times-its-total",
        changed_lines(lambda line: [line] * 60),
        lambda d: any(v > 2 * INSTRUCTIONS for v in known(d, "instructions")),
    ),
    Case(
        "callgrind-each-line-twice",
        changed_lines(lambda line: [line] * 2),
        lambda d: any(v > 1.5 * INSTRUCTIONS for v in known(d, "instructions")),
    ),
    Case(
        "callgrind-half-of-its-total",
        changed_lines(lambda line: [] if line.startswith("+") else [line]),
        lambda d: any(v < 0.9 * INSTRUCTIONS for v in known(d, "instructions")),
    ),
    Case(
        "callgrind-more-mispredictions-than-branches",
        text(
            "version: 1\npositions: line\nevents: Ir Bc Bcm Bi Bim\nfn=f\n1 1000 10 700 0 0\ntotals: 1000 10 700 0 0\n"
        ),
        other_than("branch.miss_rate"),
    ),
    Case(
        "callgrind-more-branches-than-instructions",
        text(
            "version: 1\npositions: line\nevents: Ir Bc Bcm Bi Bim\nfn=f\n"
            "1 1000 100000 7 0 0\ntotals: 1000 100000 7 0 0\n"
        ),
        other_than("branch.count"),
    ),
]


# ---------------------------------------------------------------- cProfile


def cprofile_with(change: Callable[[dict[Any, Any], Any], None]) -> Callable[[Path], None]:
    """A recorded profile with one function of it changed: the one with most time of its own."""
    import cProfile

    def write(path: Path) -> None:
        profile = cProfile.Profile()
        profile.runcall(lambda: [json.loads('[1, {"a": [2, 3]}]' * 1) for _ in range(200)])
        profile.dump_stats(str(path))
        entries = marshal.loads(path.read_bytes())
        change(entries, max(entries, key=lambda key: entries[key][2]))
        path.write_bytes(marshal.dumps(entries))

    return write


def years(entries: dict[Any, Any], key: Any) -> None:
    primitive, calls, _, _, callers = entries[key]
    entries[key] = (primitive, calls, 1.8e9, 1.8e9, callers)


def only_own(entries: dict[Any, Any], key: Any) -> None:
    primitive, calls, _, cumulative, callers = entries[key]
    entries[key] = (primitive, calls, 50.0, cumulative, callers)


def long_callee(entries: dict[Any, Any], key: Any) -> None:
    primitive, calls, own, cumulative, callers = entries[key]
    entries[key] = (
        primitive, calls, own, cumulative, {one: (c, p, own, 900.0) for one, (c, p, own, _) in callers.items()},
    )  # fmt: skip


def beyond_whole(entries: dict[Any, Any], key: Any) -> None:
    primitive, calls, own, _, callers = entries[key]
    entries[key] = (primitive, calls, own, 900.0, callers)


def negative_calls(entries: dict[Any, Any], key: Any) -> None:
    _, _, own, cumulative, callers = entries[key]
    entries[key] = (-3, -3, own, cumulative, callers)


def any_time_above(most: float) -> Wrong:
    return lambda d: any(
        max(spot.own, spot.total or 0.0) > most
        for profile in d.profiles
        if profile.doubt is None
        for spot in profile.hotspots
    )


CPROFILE = [
    Case("cprofile-57-years", cprofile_with(years), total_above(1e6)),
    Case("cprofile-own-above-cumulative", cprofile_with(only_own), total_above(40.0)),
    Case("cprofile-callee-above-whole", cprofile_with(long_callee), any_time_above(800.0)),
    Case("cprofile-function-above-whole", cprofile_with(beyond_whole), any_time_above(800.0)),
    Case(
        "cprofile-negative-calls",
        cprofile_with(negative_calls),
        lambda d: any((spot.calls or 0) < 0 for profile in d.profiles for spot in profile.hotspots),
    ),
]


# ---------------------------------------------------------------- nsys

NSYS = DATA / "cuda" / "nsys"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def nsys_with(*statements: str, source: str = "truths") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        shutil.copy(NSYS / f"{source}.sqlite", path)
        path.chmod(0o600)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return write


def stats_with(change: Callable[[str], str]) -> Callable[[Path], None]:
    return text(change((NSYS / "stats" / "hostbound_cuda_gpu_kern_sum.csv").read_text()))


GPU_SECONDS, GRAPH_SECONDS, STATS_SECONDS = 0.039634892, 0.0, 0.001806784
TRACES = [
    Case(
        "nsys-each-kernel-twice",
        nsys_with(f"INSERT INTO {KERNELS} SELECT * FROM {KERNELS}"),
        other_than("time.gpu", GPU_SECONDS),
    ),
    Case(
        "nsys-one-kernel-twice",
        nsys_with(f"INSERT INTO {KERNELS} SELECT * FROM {KERNELS} ORDER BY end - start DESC LIMIT 1"),
        other_than("launch.count", 39),
    ),
    Case(
        "nsys-each-kernel-of-graphs-twice",
        nsys_with(f"INSERT INTO {KERNELS} SELECT * FROM {KERNELS}", source="graphs.node"),
        other_than("launch.count", 150),
    ),
    Case(
        "nsys-a-kernel-of-57-years",
        nsys_with(
            f"UPDATE {KERNELS} SET end = start + 1800000000000000000 WHERE rowid = (SELECT max(rowid) FROM {KERNELS})"
        ),
        other_than("gpu.utilization", 99.727),
    ),
    Case(
        "nsys-kernels-at-zero",
        nsys_with(f"UPDATE {KERNELS} SET start = 0, end = 0 WHERE rowid % 2"),
        lambda d: (
            any(value < 20 for value in known(d, "gpu.utilization"))
            or d.trace is None
            or d.trace.launches != 19
        ),
    ),
    Case(
        "nsys-stats-unit-fortnight",
        stats_with(lambda t: t.replace("Total Time (ns)", "Total Time (fortnight)")),
        other_than("time.gpu", STATS_SECONDS),
    ),
    Case(
        "nsys-stats-total-above-its-launches",
        stats_with(lambda t: t.replace("860768", "860768000")),
        other_than("time.gpu", STATS_SECONDS),
    ),
    Case(
        "nsys-stats-grouped-by-points",
        stats_with(
            lambda t: t.replace("860768", "860.768").replace("860640", "860.640").replace("85376", "85.376")
        ),
        other_than("time.gpu", STATS_SECONDS),
    ),
    Case(
        "nsys-stats-share-of-470-percent",
        stats_with(lambda t: t.replace("47.6,860768,", "476,8607680,")),
        other_than("time.gpu", STATS_SECONDS),
    ),
]


def torch_with(change: Callable[[list[dict[str, Any]]], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        trace = json.loads(gzip.decompress((DATA / "cuda" / "torch" / "torch.cuda.json.gz").read_bytes()))
        change(trace["traceEvents"])
        path.write_text(json.dumps(trace))

    return write


def kernels_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") == "kernel"]


def at_zero(events: list[dict[str, Any]]) -> None:
    for event in kernels_of(events)[::20]:
        event.update(ts=0, dur=0)


def twice(events: list[dict[str, Any]]) -> None:
    events += kernels_of(events)


def far_away(events: list[dict[str, Any]]) -> None:
    kernels_of(events)[-1]["ts"] += 51 * 365 * 86400 * 1e6


def from_zero(events: list[dict[str, Any]]) -> None:
    timed = [event for event in events if event.get("ph") == "X"]
    first = min(event["ts"] for event in timed)
    for event in timed:
        event["ts"] -= first


def endless(events: list[dict[str, Any]]) -> None:
    kernels_of(events)[3]["dur"] = 1e15


TORCH_SECONDS, TORCH_USED = 0.008096599, 97.742804
TRACES += [
    Case(
        "torch-kernels-at-zero",
        torch_with(at_zero),
        lambda d: any(value < 50 for value in known(d, "gpu.utilization")),
    ),
    Case("torch-each-kernel-twice", torch_with(twice), other_than("time.gpu", TORCH_SECONDS)),
    Case("torch-a-kernel-51-years-later", torch_with(far_away), other_than("gpu.utilization", TORCH_USED)),
    Case("torch-a-kernel-of-31-years", torch_with(endless), other_than("time.gpu", TORCH_SECONDS)),
]


# ---------------------------------------------------------------- ncu --csv


def ncu_with(
    change: Callable[[list[str], list[str], list[list[str]]], None], file: str = "base"
) -> Callable[[Path], None]:
    """The raw page with its table changed: names, units and rows."""

    def write(path: Path) -> None:
        lines = (DATA / "cuda" / f"ncu.truths.raw.{file}-units.csv").read_text().splitlines()
        table = list(csv.reader(line for line in lines if not line.startswith("==")))
        names, units, *rows = table
        change(names, units, rows)
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL).writerows([names, units, *rows])
        path.write_text("\n".join([*(line for line in lines if line.startswith("==")), out.getvalue()]))

    return write


SHARE = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
DURATION = "gpu__time_duration.sum"


def cell(name: str, value: Callable[[str], str]) -> Callable[[list[str], list[str], list[list[str]]], None]:
    def change(names: list[str], units: list[str], rows: list[list[str]]) -> None:
        for row in rows:
            row[names.index(name)] = value(row[names.index(name)])

    return change


def unit(name: str, value: str) -> Callable[[list[str], list[str], list[list[str]]], None]:
    def change(names: list[str], units: list[str], rows: list[list[str]]) -> None:
        units[names.index(name)] = value

    return change


def german(names: list[str], units: list[str], rows: list[list[str]]) -> None:
    for row in rows:
        for at in range(11, len(row)):
            if re.fullmatch(r"[\d,]+(\.\d+)?", row[at]):
                row[at] = row[at].translate(str.maketrans(",.", ".,"))


def in_seconds(names: list[str], units: list[str], rows: list[list[str]]) -> None:
    unit(DURATION, "second")(names, units, rows)
    cell(DURATION, lambda _: "0.000146080")(names, units, rows)


def each_row_twice(names: list[str], units: list[str], rows: list[list[str]]) -> None:
    rows += [list(row) for row in rows]


TIMES = (0.00014608, 0.001319648, 2.336e-06)
BYTES = (515614976.0, 266240.0, 3328.0)
NCU = [
    Case(
        "ncu-453-percent-of-a-peak",
        ncu_with(cell(SHARE, lambda _: "453.00")),
        other_than("bandwidth.dram.share"),
    ),
    Case(
        "ncu-decimal-comma-12,5",
        ncu_with(cell(SHARE, lambda _: "12,5")),
        other_than("bandwidth.dram.share", 12.5),
    ),
    Case(
        "ncu-decimal-comma-45,312",
        ncu_with(cell(SHARE, lambda _: "45,312")),
        other_than("bandwidth.dram.share", 45.312),
    ),
    Case(
        "ncu-decimal-commas-everywhere",
        ncu_with(german),
        lambda d: (
            any(max(v, 1) > 101 for v in known(d, "occupancy.achieved"))
            or not all(
                any(isclose(v, r, rel_tol=1e-3) for r in (73.37, 0.27, 0.0)) or v < 100
                for v in known(d, "bandwidth.dram.share")
            )
            or any(k.total > 0.01 for k in (d.trace.kernels if d.trace else ()))
        ),
    ),
    Case("ncu-unit-fortnight", ncu_with(unit(DURATION, "fortnight")), other_than_all("time.kernel", *TIMES)),
    Case(
        "ncu-unit-of-bytes-fortnight",
        ncu_with(unit("dram__bytes.sum", "fortnight")),
        other_than_all("dram.bytes", *BYTES),
    ),
    Case(
        "ncu-each-row-twice", ncu_with(each_row_twice), lambda d: d.trace is not None and d.trace.launches > 3
    ),
    Case(
        "ncu-2^64-1-bytes",
        ncu_with(cell("dram__bytes.sum", lambda _: str(2**64 - 1))),
        lambda d: any(v > 1e12 for v in known(d, "dram.bytes")),
    ),
    Case(
        "ncu-a-negative-time",
        ncu_with(cell(DURATION, lambda text: f"-{text}")),
        other_than_all("time.kernel", *TIMES),
    ),
    Case(
        "ncu-a-time-of-57-years",
        ncu_with(cell(DURATION, lambda _: "1800000000000000000")),
        other_than_all("time.kernel", *TIMES),
    ),
    Case(
        "ncu-occupancy-of-250-percent",
        ncu_with(cell("sm__warps_active.avg.pct_of_peak_sustained_active", lambda _: "250.00")),
        other_than("occupancy.achieved"),
    ),
    Case(
        "ncu-half-a-register",
        ncu_with(cell("launch__registers_per_thread", lambda _: "16.5")),
        other_than("launch.registers"),
    ),
]


# ---------------------------------------------------------------- run.json, sampled stacks


def run_with(document: RunDocument, change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        body: dict[str, Any] = json.loads(json.dumps(run_to_json(document)))
        change(body)
        path.write_text(json.dumps(body))

    return write


def set_reading(metric: str, value: float) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        for reading in [*body["readings"], *(r for s in body["summaries"].values() for r in s["readings"])]:
            if reading["metric"] == metric and reading["value"] is not None:
                reading["value"] = value

    return change


def ten_to_the_40(body: dict[str, Any]) -> None:
    for reading in body["readings"]:
        if reading["metric"] == "cache.l1.miss_rate":
            reading.update(metric="instructions", value=1e40, unit="count")


def set_trace(**values: float) -> Callable[[dict[str, Any]], None]:
    return lambda body: body["trace"].update(values)


def set_kernel(**values: float) -> Callable[[dict[str, Any]], None]:
    return lambda body: body["trace"]["kernels"][0].update(values)


def stacks_with(change: Callable[[str], str]) -> Callable[[Path], None]:
    return text(change((DATA / "stacks" / "pool.jsonl").read_text()))


RUNS = [
    Case(
        "run-occupancy-of-250-percent",
        run_with(gpu_documents.of_counters(), set_reading("occupancy.achieved", 250.0)),
        other_than("occupancy.achieved", 1e9),
    ),
    Case(
        "run-busier-than-its-window",
        run_with(gpu_documents.of_trace(), set_trace(busy=19e-3)),
        other_than("gpu.utilization", 90.0),
    ),
    Case(
        "run-launches-longer-than-the-window",
        run_with(gpu_documents.of_trace(), set_kernel(total=7e3)),
        lambda d: any(v > 1 for v in known(d, "time.gpu")),
    ),
    Case(
        "run-a-window-of-57-years",
        run_with(gpu_documents.of_trace(), set_trace(span=1.8e9)),
        lambda d: any(v < 1 for v in known(d, "gpu.utilization")),
    ),
    Case(
        "run-negative-launches",
        run_with(gpu_documents.of_trace(), set_kernel(launches=-40)),
        lambda d: bool(d.trace and d.trace.kernels[0].launches < 0),
    ),
    Case(
        "run-cache-misses-of-300-percent",
        run_with(documents.document(), set_reading("cache.l1.miss_rate", 300.0)),
        other_than("cache.l1.miss_rate", 1e9),
    ),
    Case(
        "run-10^40-instructions",
        run_with(documents.document(), ten_to_the_40),
        lambda d: any(v > 1e20 for v in known(d, "instructions")),
    ),
]

IMPOSSIBLE = (*PERF, *SAMPLES, *VALGRIND, *CPROFILE, *TRACES, *NCU, *RUNS)


# ---------------------------------------------------------------- odd, and right


@dataclass(frozen=True)
class Odd:
    """A file with a value that looks impossible and is right: the metric and the value, in its unit."""

    name: str
    write: Callable[[Path], None]
    metric: str
    value: float


def recursive(path: Path) -> None:
    import cProfile

    def down(depth: int) -> int:
        return depth if depth == 0 else down(depth - 1) + sum(range(50))

    profile = cProfile.Profile()
    profile.runcall(lambda: [down(200) for _ in range(20)])
    profile.dump_stats(str(path))


GERMAN = {
    "clock": "536,62 msec", "utilized": "0,984", "faults": "240.034", "cycles": "1.830.947.000",
    "instructions": "2.581.635.270", "branches": "53.662.000", "point": ",",
}  # fmt: skip
FRENCH = {name: text.replace(".", "\u202f") for name, text in GERMAN.items()}
OTHER_STREAM = (
    f"CREATE TEMP TABLE more AS SELECT * FROM {KERNELS}",
    "UPDATE more SET streamId = streamId + 1000",
    f"INSERT INTO {KERNELS} SELECT * FROM more",
)
OTHER_LAUNCH = (OTHER_STREAM[0], "UPDATE more SET correlationId = correlationId + 900000", OTHER_STREAM[2])
IDLE = "\n\n".join(
    f"swapper     0 [{cpu:03d}] {100 + second}.000000: 1000000000 cpu-clock: \n"
    f"\tffffffff8175336a idle+0x1 ([kernel.kallsyms])"
    for second in range(3)
    for cpu in range(64)
)
PERF_SCRIPT_SECONDS = 192.0
ODD = (
    *(
        Odd(f"perf-text-{name}", perf_text(faults=digits), "page_faults", FAULTS)
        for name, digits in GROUPED.items()
    ),
    Odd("perf-text-german", perf_text(**GERMAN), "time.cpu", 0.53662),
    Odd("perf-text-german-counts", perf_text(**GERMAN), "instructions", 2581635270.0),
    Odd("perf-text-french", perf_text(**FRENCH), "cycles", 1830947000.0),
    Odd("perf-text-french-clock", perf_text(**FRENCH), "time.cpu", 0.53662),
    Odd(
        "perf-text-indian-groups-of-billions",
        perf_text(instructions="2,58,16,35,270"),
        "instructions",
        2581635270.0,
    ),
    Odd("perf-text-without-groups", perf_text(faults="240034"), "page_faults", FAULTS),
    Odd(
        "perf-text-several-runs",
        perf_text(faults="240,034", cycles="1,830,947,000", utilized="0.984", point="."),
        "ipc",
        1.41,
    ),
    Odd(
        "perf-csv-8-cpus-busy",
        perf_csv(duration_time="67077500,ns,duration_time,67077500,100.00,,"),
        "cpu.utilization",
        800.0,
    ),
    Odd(
        "perf-csv-a-third-of-the-time",
        perf_csv(cycles=ROWS["cycles"].replace("100.00", "33.40")),
        "cycles",
        1830947000.0,
    ),
    Odd(
        "perf-csv-no-faults",
        perf_csv(page_faults=ROWS["page-faults"].replace("240034", "0")),
        "page_faults",
        0.0,
    ),
    Odd(
        "perf-csv-energy-of-half-a-joule",
        perf_csv(energy="0.50,Joules,power/energy-pkg/,536620000,100.00,,"),
        "energy.package",
        0.5,
    ),
    Odd(
        "perf-csv-traffic-with-a-scale",
        perf_csv(
            read="5.25,MiB,uncore_imc/cas_count_read/,536620000,100.00,,",
            write="1.25,MiB,uncore_imc/cas_count_write/,536620000,100.00,,",
        ),
        "dram.bytes",
        6.5 * 2**20,
    ),
    Odd(
        "perf-csv-30-days-of-256-threads",
        perf_csv(
            task_clock="663552000000.00,msec,task-clock,663552000000000000,100.00,256.0,CPUs utilized",
            cycles="2650000000000000000,,cycles,663552000000000000,100.00,,",
        ),
        "time.cpu",
        663552000.0,
    ),
    Odd(
        "perf-csv-old-clock-without-unit",
        perf_csv(task_clock="536.620000,,task-clock,536620000,100.00"),
        "time.cpu",
        0.53662,
    ),
    Odd(
        "perf-csv-six-instructions-a-cycle",
        perf_csv(instructions=ROWS["instructions"].replace("2581635270", "10985682000")),
        "ipc",
        6.0,
    ),
    Odd(
        "perf-csv-more-llc-misses-than-loads",
        perf_csv(
            loads="1000,,LLC-loads,536620000,100.00,,", misses="3000,,LLC-load-misses,536620000,100.00,,"
        ),
        "ipc",
        1.41,
    ),
    Odd(
        "perf-csv-semicolons-and-decimal-commas",
        text(
            "536,62;msec;task-clock;536620000;100,00;0,984;CPUs utilized\n"
            "1830947000;;cycles;536620000;100,00;3,412;GHz\n"
        ),
        "time.cpu",
        0.53662,
    ),
    Odd(
        "perf-json",
        text(
            "\n".join(
                (json_row("cycles", "1830947000.000000"), json_row("instructions", "2581635270.000000"))
            )
            + "\n"
        ),
        "ipc",
        1.41,
    ),
    Odd(
        "perf-json-decimal-comma-of-six-digits",
        text(json_row("task-clock", "536,620000", "msec") + "\n"),
        "time.cpu",
        0.53662,
    ),
    Odd(
        "nsys-kernels-side-by-side-on-two-streams",
        nsys_with(*OTHER_LAUNCH, f"UPDATE {KERNELS} SET streamId = 99 WHERE correlationId > 900000"),
        "time.gpu",
        2 * GPU_SECONDS,
    ),
    Odd(
        "nsys-one-graph-on-two-streams",
        nsys_with(*OTHER_STREAM, source="truths"),
        "time.gpu",
        2 * GPU_SECONDS,
    ),
    Odd(
        "nsys-kernels-of-other-launches-at-the-same-time",
        nsys_with(*OTHER_LAUNCH),
        "time.gpu",
        2 * GPU_SECONDS,
    ),
    Odd(
        "ncu-104-percent-of-a-peak", ncu_with(cell(SHARE, lambda _: "104.00")), "bandwidth.dram.share", 104.0
    ),
    Odd("ncu-decimal-comma-alone", ncu_with(cell(SHARE, lambda _: "12,5")), "bandwidth.dram.share", 12.5),
    Odd("ncu-german", ncu_with(german), "bandwidth.dram.share", 73.37),
    Odd("ncu-german-times", ncu_with(german), "time.kernel", 0.00014608),
    Odd("ncu-seconds", ncu_with(in_seconds), "time.kernel", 0.00014608),
    Odd("ncu-scaled-units", ncu_with(lambda *_: None, "auto"), "time.kernel", 0.000144992),
    Odd(
        "callgrind-regions-with-totals-of-0",
        text((DATA / "valgrind" / "kernels.l3.callgrind").read_bytes()),
        "instructions",
        399828.0,
    ),
    Odd("torch-times-from-0", torch_with(from_zero), "time.gpu", TORCH_SECONDS),
)

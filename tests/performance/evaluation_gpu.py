"""What evaluations on a GPU find and cost: PyTorch against itself, torch's database, libraries, one device and several.

    python -m tests.performance.evaluation_gpu smoke opinfo timed rate-1 rate-4 traces flag_gems

Needs CUDA devices. Each word is a stage; without any: smoke. A stage is one `profkit evaluate`, of which a table is
printed: statuses with their reasons, words of speed-ups, how long a test takes, operations in a minute. Files go to
the folder $OUT where that is set.

- smoke: does the chain stand, are equal kernels SAME (aim: 95 % of the operations, geometric mean within 1 %)?
- opinfo: correctness of PyTorch's own kernels in bfloat16. What is not passed or skipped there is our fault.
- timed: the calls of the smoke suite in half precision, timed for longer.
- rate-1, rate-2, rate-4: the same tests on so many devices (aim: on four 3.6 times as many in a minute).
- timed-rate-1, timed-rate-2, timed-rate-4: timed tests on so many devices.
- traces: the calls of real models that are made most, timed.
- flag_gems: Triton kernels of a library, where it is installed.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 20
COUNTS = (
    25,
    50,
    100,
    200,
    400,
    800,
    1600,
    3200,
)  # of tests: how long one device and several need for as many
MATMULS = (
    "mm,bmm,addmm,_softmax,native_layer_norm,gelu,add.Tensor,mul.Tensor,relu,cat,sum,mean,where,embedding"
)
STAGES: Mapping[str, Sequence[str]] = {
    "smoke": ("--suite", "smoke", "--backend", "aten", "--budget", "1"),
    "opinfo": ("--suite", "opinfo", "--backend", "aten", "--dtype", "bfloat16", "--correctness-only"),
    "opinfo-float32": ("--suite", "opinfo", "--backend", "aten", "--correctness-only"),
    "timed": ("--suite", "smoke", "--backend", "aten", "--dtype", "bfloat16", "--budget", "3"),
    **{
        f"rate-{count}": (
            *("--suite", "opinfo", "--backend", "aten", "--dtype", "bfloat16", "--budget", "0.5"),
            *("--gpus", ",".join(map(str, range(count)))),
        )
        for count in (1, 2, 4)
    },
    **{
        f"timed-rate-{count}": (
            *("--suite", "torchbench", "--backend", "aten", "--ops", MATMULS, "--budget", "1"),
            *("--gpus", ",".join(map(str, range(count)))),
        )
        for count in (1, 2, 4)
    },
    "traces": ("--suite", "torchbench", "--backend", "aten", "--ops", MATMULS, "--budget", "0.3"),
    "flag_gems": ("--suite", "smoke", "--backend", "flag_gems", "--budget", "1"),
    "flag_gems-opinfo": (
        *("--suite", "opinfo", "--backend", "flag_gems", "--dtype", "bfloat16"),
        "--correctness-only",
    ),
    "compile": (
        "--suite",
        "smoke",
        "--backend",
        "aten",
        "--ops",
        "gelu,_softmax,native_layer_norm",
        "--compile",
    ),
}


def run_stage(name: str, seconds: float) -> None:
    """Run the stage for so many seconds at most, and print what came of it."""
    print(f"\n=== {name}: profkit evaluate {' '.join(STAGES[name])}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "profkit", "evaluate", *STAGES[name], "--device", "cuda"]
        command += ["--format", "json", "--quiet", "--output", folder]
        begin = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment()
        )
        try:
            printed, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.terminate()  # an evaluation that is interrupted keeps what it has
            printed, _ = child.communicate()
        wall = time.perf_counter() - begin
        found = sorted(Path(folder).glob("*/evaluation.json"))
        if not found:
            print(f"no evaluation after {wall:.0f} s, exit code {child.returncode}:\n{printed[-3000:]}")
            for log in sorted(Path(folder).glob("*/logs/*.log")):
                print(f"--- {log.name}:\n{log.read_text(errors='replace')[-1500:]}")
            return
        text = found[0].read_text()
        if out := os.environ.get("OUT"):
            (Path(out) / f"{name}.json.gz").write_bytes(gzip.compress(text.encode()))
        describe(json.loads(text), wall, _moments(found[0].with_name("tests.jsonl")))


def _moments(journal: Path) -> list[float]:
    """Seconds into the evaluation at which each result came."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return sorted(line["at"] for line in lines if "outcome" in line)


def describe(document: Mapping[str, Any], wall: float, moments: Sequence[float]) -> None:
    """Print the table. `moments`: when results came, without what it takes to start and to list the tests."""
    tests, operations = document["tests"], document["operations"]
    done = [test for test in tests if test["status"]]
    print(
        f"{document['device']}: {len(operations)} operations, {len(done)} tests, complete: {document['complete']}"
    )
    rate = 60 / wall
    spent = sum(test.get("spent") or 0.0 for test in done)
    print(
        f"{wall:.1f} s: {rate * len(operations):.0f} operations and {rate * len(done):.0f} tests a minute; "
        f"{spent:.1f} s in tests, {1e3 * spent / max(1, len(done)):.0f} ms each"
    )
    if len(moments) > 1:
        a_minute = 60 * (len(moments) - 1) / max(1e-3, moments[-1] - moments[0])
        print(
            f"first result after {moments[0]:.1f} s, last after {moments[-1]:.1f} s; between them "
            f"{a_minute * len(operations) / len(moments):.0f} operations and {a_minute:.0f} tests a minute, "
            f"on {len({test['slot'] for test in done})} devices"
        )
        reached = (
            f"{count} after {moments[count - 1] - moments[0]:.1f} s"
            for count in COUNTS
            if count <= len(moments)
        )
        print("tests from the first result on:", ", ".join(reached))
    print("statuses:", dict(Counter(test["status"] for test in done)))
    words = Counter(operation["speedup"]["word"] for operation in operations if operation.get("speedup"))
    each = Counter(test["speedup"]["word"] for test in done if test.get("speedup"))
    print(f"operations: {dict(words)}; tests: {dict(each)}; geometric mean {document['geomean']}")
    reasons = Counter(
        (test["status"], (test["reason"] or "")[:110]) for test in done if test["status"] != "passed"
    )
    for (status, reason), count in reasons.most_common(SHOWN):
        print(f"  {count:5} {status}: {reason}")
    wrong = [test for test in done if test["status"] not in ("passed", "skipped")]
    for test in wrong[:SHOWN]:
        print(
            f"  {test['id']} {test['operation']} {test['arguments'][:60]}: {test['status']}: {test['reason'][:160]}"
        )
    remarks = Counter(_plain(remark) for test in done for remark in test.get("remarks", ()))
    for remark, count in remarks.most_common(SHOWN):
        print(f"  {count:5} remark: {remark}")
    timed = [test for test in done if test.get("speedup")]
    for test in timed[: 2 * SHOWN]:
        speedup = test["speedup"]
        print(
            f"  {test['operation']:28.28} {test['arguments'][:44]:44} {1e6 * test['seconds']:9.1f} us "
            f"{1e6 * test['reference_seconds']:9.1f} us {speedup['median']:6.3f} "
            f"[{speedup['low']:.3f}, {speedup['high']:.3f}] {speedup['word']:9} pairs {speedup['pairs']:4} "
            f"verified {test['verified']:3} own {test.get('own_share')} spent {test.get('spent') or 0:.1f}"
        )
    for note in document.get("notes", ()):
        print("note:", note)


def _plain(remark: str) -> str:
    """Without its numbers, which differ from test to test."""
    return "".join("#" if letter.isdigit() else letter for letter in remark)[:120]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}


def main(words: Sequence[str]) -> None:
    """Run the stages; a word like 240 is the most seconds for each of those after it."""
    seconds = 240.0
    for word in words or ("smoke",):
        if word.isdecimal():
            seconds = float(word)
        else:
            run_stage(word, seconds)


if __name__ == "__main__":
    main(sys.argv[1:])

"""jax.profiler over a program's steps: when a window opens and closes, by a JAX that stands in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profkit.runtime.passes.command import HOST_PROGRAM
from tests.conftest import ROOT
from tests.workload_process import Done, run_workload

STAND_IN = ROOT / "tests" / "stand_ins" / "jax"
TRACE = str(ROOT / "tests" / "data" / "cuda" / "jax" / "jitted.trace.json.gz")
SAY = "\nimport atexit; atexit.register(lambda: print(*jax.said, sep='; '))\n"


def run(folder: Path, code: str, seconds: float = 0.3, **env: str) -> tuple[Done, list[str], dict[str, Any]]:
    """The program under the host, the names of its traces, and what else it left."""
    host = (str(HOST_PROGRAM), "jax", str(folder / "trace"), "--")
    done = run_workload(
        folder,
        code,
        {"pass_name": "trace", "seconds": seconds},
        host=host,
        path=STAND_IN,
        JAX_TRACE=TRACE,
        **env,
    )
    said = folder / "trace.operations"
    left = json.loads(said.read_text().splitlines()[0]) if said.exists() else {}
    names = sorted(path.name.split("-")[-1] for path in folder.glob("trace.*.json.gz"))
    assert not [path for path in folder.rglob("*") if path.is_dir() and path.name.startswith("trace")]
    assert not list(folder.rglob("*the-machines-name*"))
    return done, names, left


def test_the_window_opens_behind_a_compilation_without_pythons_calls_and_keeps_its_trace_alone(
    tmp_path: Path,
) -> None:
    done, names, left = run(tmp_path, f"import jax{SAY}jax.compile('step')\nprint('steps')\n")
    assert (done.code, done.out.splitlines()) == (0, ["steps", "start 0; wait; stop"])
    assert names == ["1.json.gz"]
    assert "reason" not in left
    assert "windows" not in left  # it was open to the end


def test_a_window_of_a_long_program_is_closed_in_the_main_thread_while_it_goes_on(tmp_path: Path) -> None:
    code = """
    import jax, threading, time
    jax.compile("step")
    original, ended = jax.block_until_ready, []
    jax.block_until_ready = lambda arrays: ended.append(threading.current_thread() is threading.main_thread())
    begin = time.time()
    while time.time() < begin + 20 and not ended: pass
    time.sleep(0.1)
    print(ended, 0.2 < time.time() - begin < 10, jax.open_now)
    """
    done, names, left = run(tmp_path, code)
    assert done.out == "[True] True []\n"
    assert names == ["1.json.gz"]
    ((window, seconds),) = left["windows"]  # and it is said how long the program went on
    assert (tmp_path / f"{window}.json.gz").is_file()
    assert 0.1 <= seconds < 10


def test_what_is_compiled_after_a_window_has_one_of_its_own_and_not_without_end(tmp_path: Path) -> None:
    code = "import jax, time" + SAY + "for n in range(9):\n    jax.compile('step')\n    time.sleep(0.06)\n"
    done, names, _ = run(tmp_path, code, seconds=0.05)
    assert len(names) == 6
    assert done.out.count("start 0") == done.out.count("stop") == 6


def test_a_step_that_takes_long_to_compile_has_a_window_after_those_of_its_set_up(tmp_path: Path) -> None:
    code = "import jax, time" + SAY + "for n in range(9):\n    jax.compile('set-up')\n    time.sleep(0.06)\n"
    done, names, _ = run(tmp_path, code + "jax.compile('step', 4.0)\ntime.sleep(0.2)\n", seconds=0.05)
    assert len(names) == 7
    assert done.out.count("start 0") == done.out.count("stop") == 7


def test_a_step_has_a_window_after_more_long_compilations_of_set_up_than_a_small_program_has(
    tmp_path: Path,
) -> None:
    code = (
        "import jax, time"
        + SAY
        + "for n in range(12):\n    jax.compile('set-up', 2.0)\n    time.sleep(0.3)\n"
    )
    done, names, _ = run(tmp_path, code + "jax.compile('step', 4.0)\ntime.sleep(0.2)\n", seconds=0.05)
    assert len(names) == done.out.count("start 0") == done.out.count("stop") == 13


def test_windows_that_cost_much_of_the_time_are_few(tmp_path: Path) -> None:
    slow = "stop = jax.profiler.stop_trace\njax.profiler.stop_trace = lambda: (time.sleep(0.1), stop())\n"
    code = (
        "import jax, time"
        + SAY
        + "import jax.profiler\n"
        + slow
        + "for n in range(15):\n    jax.compile('set-up', 2.0)\n    time.sleep(0.06)\n"
    )
    _, names, _ = run(tmp_path, code, seconds=0.05)
    assert len(names) == 10


def test_an_older_jax_without_options_is_traced_as_it_can(tmp_path: Path) -> None:
    done, names, _ = run(tmp_path, f"import jax{SAY}jax.compile('step')\n", STAND_IN_JAX="old")
    assert (done.out, names) == ("start 1; wait; stop\n", ["1.json.gz"])


def test_each_entry_of_a_region_is_an_annotation_between_waits(tmp_path: Path) -> None:
    code = "import jax, profkit" + SAY + "with profkit.region('a <b>'): pass\n"
    done, names, _ = run(tmp_path, code)
    assert done.out == "start 0; wait; enter profkit:a <b>; wait; exit profkit:a <b>; wait; stop\n"
    assert names == ["1.json.gz"]


@pytest.mark.parametrize(
    "call", ["jax.profiler.start_trace('own')", "jax.profiler.start_server(1)", "jax.start_trace('own')"]
)
def test_a_programs_own_use_of_the_profiler_goes_first_and_nothing_of_ours_is_left(
    tmp_path: Path, call: str
) -> None:
    """Also where `jax.profiler.trace` of another module makes the call."""
    code = (
        f"import jax\njax.compile('step')\n{call}\nprint(jax.said[:3], jax.open_now)\njax.compile('other')\n"
    )
    done, names, left = run(tmp_path, code)
    own = "own" if "own" in call else ""
    assert done.out.strip() == f"['start 0', 'wait', 'stop'] {[own] if own else []}"
    assert (done.code, names, left["reason"]) == (0, [], "jax-not-traced")
    assert left["said"] == "the program uses jax.profiler itself, which allows no other trace beside it"
    assert left["said"] in done.err


@pytest.mark.parametrize(
    ("broken", "why"), [("start", "RuntimeError: No GPU tracer"), ("stop", "OSError: [Errno 28]")]
)
def test_a_profiler_of_jax_that_fails_is_a_line_and_not_the_workloads_end(
    tmp_path: Path, broken: str, why: str
) -> None:
    done, names, left = run(tmp_path, "import jax\njax.compile('step')\nprint('done')", STAND_IN_JAX=broken)
    assert (done.code, done.out, names) == (0, "done\n", [])
    assert f"profkit: jax.profiler cannot be used: {why}" in done.err
    assert why in left["said"]


@pytest.mark.parametrize("code", ["print(1)", "import jax; print(1)"])
def test_a_program_that_compiles_nothing_is_left_alone_and_it_is_said(tmp_path: Path, code: str) -> None:
    done, names, left = run(tmp_path, code)
    assert (done.code, done.out, names) == (0, "1\n", [])
    assert left["said"] == "the program compiled nothing with JAX, so jax.profiler saw nothing"


def test_compilations_of_another_thread_open_no_window(tmp_path: Path) -> None:
    code = """
    import jax, threading
    one = threading.Thread(target=jax.compile, args=("step",))
    one.start()
    one.join()
    print(jax.said)
    """
    done, names, left = run(tmp_path, code)
    assert (done.code, done.out, names) == (0, "[]\n", [])
    assert "another thread" in left["said"]


def test_a_forked_child_of_a_jax_program_is_not_traced(tmp_path: Path) -> None:
    code = """
    import jax, os
    jax.compile("step")
    if os.fork() == 0:
        jax.compile("child")
        raise SystemExit
    os.wait()
    """
    assert run(tmp_path, code)[1] == ["1.json.gz"]


ON_CPU = """
import jax, sys, time
from profkit.runtime.passes.host.device_trace import XlaWindow
jax.default_backend = lambda: "{backend}"
window = XlaWindow("{out}")
window.start()
jax.compile("step")
time.sleep({seconds})
window.finish()
print(*jax.said, sep="; ")
"""


@pytest.mark.parametrize(("backend", "said"), [("cpu", "start 0; wait; stop"), ("gpu", "")])
def test_the_run_whose_stacks_are_sampled_has_windows_where_jax_computes_on_the_processor(
    tmp_path: Path, backend: str, said: str
) -> None:
    code = ON_CPU.format(backend=backend, out=tmp_path / "stacks.jsonl", seconds=0)
    done = run_workload(tmp_path, code, path=STAND_IN)
    assert (done.code, done.out.strip(), done.err) == (0, said, "")
    assert len(list(tmp_path.glob("stacks.xla.*-1.json.gz"))) == (backend == "cpu")


@pytest.mark.thorough
def test_windows_on_a_processor_grow_while_they_are_quickly_written_and_end(tmp_path: Path) -> None:
    code = ON_CPU.format(backend="cpu", out=tmp_path / "stacks.jsonl", seconds=0).replace(
        "time.sleep(0)", "begin = time.time()\nwhile time.time() < begin + 3: pass"
    )
    done = run_workload(tmp_path, code, path=STAND_IN)
    assert done.out.count("start") == done.out.count("stop") == 4  # 0.05, 0.2, 0.8 and 1 s

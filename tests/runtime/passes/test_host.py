"""A program under a host behaves as it does alone, and the result is written however it ends."""

from __future__ import annotations

import json
import os
import pstats
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from profkit.profilers.cprofile import read_cprofile, read_pass_notes
from profkit.runtime.passes.command import HOST_PROGRAM
from profkit.runtime.passes.read import Allocations, read_raises, read_tracemalloc
from tests.spoken import spoken_lines

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("cprofile", "tracemalloc")
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
ENV.pop("PROFKIT_DIRECTIVE", None)


def run(words: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, env={**ENV, **more}, timeout=60
    )


def host(kind: str, folder: Path, program: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    return run([str(HOST_PROGRAM), kind, str(folder / "out"), "--", *program], folder, **more)


def script(folder: Path, code: str, name: str = "work.py") -> str:
    (folder / name).write_text(textwrap.dedent(code))
    return name


FACTS = """
import sys, os, atexit, signal
atexit.register(print, "atexit")
print(__name__, sys.argv, sys.path[0], globals().get("__file__"), __package__, __spec__ and __spec__.name)
print(sorted(n for n in globals() if n.startswith("__")), signal.getsignal(signal.SIGINT))
print(sys.modules["__main__"].__dict__ is globals(), "program" in sys.modules, "session" in sys.modules)
"""


@pytest.mark.parametrize(
    ("kind", "program"),
    [
        ("cprofile", ["work.py", "a", "--", "-m"]),
        ("tracemalloc", ["-m", "package", "a"]),
        ("cprofile", ["-c", FACTS, "a"]),
        ("tracemalloc", ["package"]),
        ("cprofile", ["zipped.pyz", "a"]),
        ("tracemalloc", ["link.py"]),
    ],
)
def test_a_program_sees_what_it_sees_alone(tmp_path: Path, kind: str, program: list[str]) -> None:
    script(tmp_path, FACTS)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    script(tmp_path / "package", FACTS, "__main__.py")
    with zipfile.ZipFile(tmp_path / "zipped.pyz", "w") as archive:
        archive.writestr("__main__.py", FACTS)
    (tmp_path / "elsewhere").mkdir()
    script(tmp_path / "elsewhere", FACTS, "real.py")
    (tmp_path / "link.py").symlink_to("elsewhere/real.py")
    alone, under = run(program, tmp_path), host(kind, tmp_path, program)
    assert under.stdout == alone.stdout
    assert (under.returncode, under.stderr) == (0, "")
    assert (tmp_path / "out").stat().st_size > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(7)",
        "def f():\n    1 / 0\nf()",
        "try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('mine') from e",
        "x = (",
        "raise KeyboardInterrupt",
        "import os, time; os.kill(os.getpid(), 15); time.sleep(5)",
        "import sys; sys.excepthook = lambda *a: print('own hook', a[0].__name__); 1 / 0",
    ],
)
def test_every_ending_is_the_programs_own_and_leaves_a_result(tmp_path: Path, kind: str, code: str) -> None:
    name = script(tmp_path, code)
    alone, under = run([name], tmp_path), host(kind, tmp_path, [name])
    assert (under.returncode, under.stdout) == (alone.returncode, alone.stdout)
    assert under.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]
    assert (tmp_path / "out").stat().st_size > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing_works_and_only_the_first_process_writes(
    tmp_path: Path, kind: str, method: str
) -> None:
    name = script(
        tmp_path,
        f"""
        import multiprocessing, os
        class Mine: pass
        def work(n): return n, Mine
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                print([n for n, _ in pool.map(work, [1, 2, 3])], flush=True)
            if os.fork() == 0:
                raise SystemExit(3)
            print(os.wait()[1] >> 8)
        """,
    )
    # 3.12 and later warn of threads that may still be ending when os.fork is called
    under = host(kind, tmp_path, [name], PYTHONWARNINGS="ignore")
    assert (under.stdout, under.stderr) == ("[1, 2, 3]\n3\n", "")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"work.py", "out"} | ({"out.json"} if kind == "cprofile" else set())


def test_an_interpreter_that_has_no_profkit_is_enough(tmp_path: Path) -> None:
    name = script(tmp_path, "print(1)")
    for kind in KINDS:
        done = run(["-I", "-S", str(HOST_PROGRAM), kind, str(tmp_path / "out"), "--", name], tmp_path)
        assert (done.stdout, done.stderr) == ("1\n", "")


def test_sigterm_in_the_middle_leaves_the_result(tmp_path: Path) -> None:
    name = script(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(600)")
    child = subprocess.Popen(
        [sys.executable, str(HOST_PROGRAM), "cprofile", str(tmp_path / "out"), "--", name],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env=ENV,
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.terminate()
    assert child.wait(60) == -signal.SIGTERM
    child.stdout.close()
    assert pstats.Stats(str(tmp_path / "out")).total_calls > 0  # type: ignore[attr-defined]


def test_an_unwritable_result_is_one_line_and_the_programs_own_exit_code(tmp_path: Path) -> None:
    name = script(tmp_path, "import sys; sys.exit(7)")
    done = run([str(HOST_PROGRAM), "cprofile", "/proc/no/out", "--", name], tmp_path)
    assert done.returncode == 7
    assert done.stderr.startswith("profkit: the result of this pass is lost: ")
    assert len(done.stderr.splitlines()) == 1


# ---------------------------------------------------------------- cProfile

MARKED = """
import json as outside_import, profkit
def before(): return sum(range(1000))
def inside(): return sorted(range(1000))
def after(): return max(range(1000))
before()
for _ in range(3):
    with profkit.region("a"):
        inside()
after()
"""


def functions(path: Path) -> dict[str, int]:
    return {name: values[1] for (_, _, name), values in pstats.Stats(str(path)).stats.items()}  # type: ignore[attr-defined]


def test_the_region_and_the_rest_are_two_profiles(tmp_path: Path) -> None:
    name = script(tmp_path, MARKED)
    done = run([str(HOST_PROGRAM), "cprofile", "x.prof", "--", name], tmp_path)
    assert done.returncode == 0, done.stderr
    region, rest = functions(tmp_path / "x.prof"), functions(tmp_path / "x.setup.prof")
    for path in (tmp_path / "x.prof", tmp_path / "x.setup.prof"):  # nothing of what measures
        files = {file for file, _, _ in pstats.Stats(str(path)).stats}  # type: ignore[attr-defined]
        assert not [file for file in files if "/passes/" in file or "/region/" in file]
    assert region["inside"] == 3
    assert not {"before", "after"} & set(region)
    assert {"before", "after"} <= set(rest)
    assert "inside" not in rest


# ---------------------------------------------------------------- tracemalloc


def allocations(folder: Path, code: str, **directive: object) -> Allocations:
    asked = {"pass_name": "tracemalloc", "record": str(folder / "r"), **directive}
    done = host("tracemalloc", folder, [script(folder, code)], PROFKIT_DIRECTIVE=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    return read_tracemalloc(folder / "out")


LEAK = """
import profkit
kept = []
def step():
    kept.append(bytearray(1000))
"""
CYCLES = """
import profkit
class Node: pass
def step():
    a, b = Node(), Node()
    a.other, b.other, a.data = b, a, bytearray(1000)
"""
BENCHMARK = "profkit.benchmark(step, name='a')"
REGIONS = "for _ in range(40):\n    with profkit.region('a'): step()"


@pytest.mark.parametrize("use", [BENCHMARK, REGIONS], ids=["benchmark", "regions"])
def test_a_leak_is_called_one_with_its_size_and_its_line(tmp_path: Path, use: str) -> None:
    found = allocations(tmp_path, LEAK + use, iterations=40)
    assert found.growth.leak is True
    assert found.growth.per_iteration == pytest.approx(1066, abs=40)  # bytearray, its header and list slots
    assert (found.growing[0].file, found.growing[0].line) == (str(tmp_path / "work.py"), 5)
    assert found.growing[0].size > 30_000


@pytest.mark.parametrize("use", [BENCHMARK, REGIONS], ids=["benchmark", "regions"])
def test_cyclic_garbage_is_no_leak(tmp_path: Path, use: str) -> None:
    found = allocations(tmp_path, CYCLES + use, iterations=40)
    assert found.growth.leak is False
    assert found.growth.high is not None
    assert found.growth.high < 8


# ------------------------------------------------------------ test_early_end

PROGRAM = """
import time
kept = []
def early():
    kept.append([object() for _ in range(100)])
def late():
    return sum(range(100))
begin = time.perf_counter()
while time.perf_counter() - begin < 0.6:
    early()
while time.perf_counter() - begin < 0.8:
    late()
last = bytearray(100_000_000)
print("the program's own end")
"""

LAST = 100_000_000  # bytes


def run_limited(kind: str, out: Path, longest: float | None) -> str:
    directive = json.dumps({"longest": longest})
    argv = [sys.executable, str(HOST_PROGRAM), kind, str(out), "--", "-c", PROGRAM]
    done = subprocess.run(
        argv, env={**os.environ, "PROFKIT_DIRECTIVE": directive}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("longest", [0.3, None])
def test_the_beginning_is_seen_and_that_is_said_while_the_program_runs_to_its_end(
    tmp_path: Path, longest: float | None
) -> None:
    assert run_limited("cprofile", tmp_path / "p.prof", longest) == "the program's own end\n"
    names = {hotspot.function for hotspot in read_cprofile(tmp_path / "p.prof").profiles[0].hotspots}
    assert "early" in names
    assert ("late" in names) == (longest is None)
    notes = read_pass_notes(tmp_path / "p.json")
    assert any("of a longer run" in note for note in spoken_lines(notes)) == (longest is not None)
    assert run_limited("tracemalloc", tmp_path / "t.json", longest) == "the program's own end\n"
    found = read_tracemalloc(tmp_path / "t.json")
    assert any("of a longer run" in note for note in spoken_lines(found.notes)) == (longest is not None)
    assert (found.peak > LAST) == (longest is None)  # the last block is not seen where it stopped before


COUNTED_TO_THE_END = """
import time
def late():
    return 1
total = 0
end = time.perf_counter() + 1.2
while time.perf_counter() < end:
    time.sleep(0.05)
    total += late()
print("the program's own end")
"""


@pytest.mark.parametrize("kind", ["cprofile", "tracemalloc"])
def test_a_program_of_which_nothing_more_is_looked_at_ends_with_its_instrument(
    tmp_path: Path, kind: str
) -> None:
    code = "import time\nprint('begun')\nwhile True:\n    time.sleep(0.01)\n"  # it would not end by itself
    out = tmp_path / "out.prof"
    argv = [sys.executable, str(HOST_PROGRAM), kind, str(out), "--", "-c", code]
    env = {**os.environ, "PROFKIT_DIRECTIVE": json.dumps({"longest": 0.3, "stops_program": True})}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert (done.stdout, done.stderr) == ("begun\n", "")
    notes = read_pass_notes(tmp_path / "out.json") if kind == "cprofile" else read_tracemalloc(out).notes
    assert any("of a longer run" in note for note in spoken_lines(notes))


@pytest.mark.parametrize(("mode", "whole"), [("w", True), ("r", False)])
def test_a_program_with_an_open_file_to_write_goes_on_to_its_end(
    tmp_path: Path, mode: str, whole: bool
) -> None:
    held = tmp_path / "rows.txt"
    held.write_text("")
    code = (
        f"import time\nwith open({str(held)!r}, {mode!r}) as rows:\n    time.sleep(1.5)\n"
        "    print('the end', file=rows if rows.writable() else None)\n"
    )
    argv = [sys.executable, str(HOST_PROGRAM), "cprofile", str(tmp_path / "p.prof"), "--", "-c", code]
    env = {**os.environ, "PROFKIT_DIRECTIVE": json.dumps({"longest": 0.3, "stops_program": True})}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert (done.stdout, held.read_text()) == ("", "the end\n" if whole else "")


def test_a_program_whose_lines_are_counted_goes_on_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / script(tmp_path, COUNTED_TO_THE_END)
    line = COUNTED_TO_THE_END.splitlines().index("    total += late()") + 1
    wanted = {
        "file": str(file),
        "line": line,
        "function": "<module>",
        "loop": False,
        "each": False,
        "names": [],
    }
    argv = [sys.executable, str(HOST_PROGRAM), "cprofile", str(tmp_path / "p.prof"), "--", str(file)]
    given = json.dumps({"longest": 0.3, "stops_program": True, "lines": [wanted]})
    env = {**os.environ, "PROFKIT_DIRECTIVE": given}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert (done.stdout, done.stderr) == ("the program's own end\n", "")
    (row,) = json.loads((tmp_path / "p.lines.json").read_text())["rows"]
    assert row[3] > 15  # beyond the 6 of the first 0.3 s


def test_tracemalloc_stops_also_while_the_main_thread_waits_for_another_one(tmp_path: Path) -> None:
    """That thread waits for the end of the tracing, which in the main thread would come after its own."""
    code = (
        "import threading, time, tracemalloc\n"
        "def work():\n"
        "    while tracemalloc.is_tracing():\n"
        "        time.sleep(0.01)\n"
        "    print('the end')\n"
        "one = threading.Thread(target=work)\n"
        "one.start()\n"
        "one.join()\n"
    )
    argv = [sys.executable, str(HOST_PROGRAM), "tracemalloc", str(tmp_path / "t.json"), "--", "-c", code]
    env = {**os.environ, "PROFKIT_DIRECTIVE": json.dumps({"longest": 0.3})}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("the end\n", "")
    found = read_tracemalloc(tmp_path / "t.json")
    assert any("of a longer run" in note for note in spoken_lines(found.notes))


def test_what_is_raised_and_caught_is_counted_by_line_and_a_loop_that_ends_is_no_exception(
    tmp_path: Path,
) -> None:
    code = """
    def number(text):
        try:
            return int(text)
        except ValueError:
            return next(iter([0]))
    print(sum(number(text) for text in ["1", "x"] * 500))
    """
    done = host("tracemalloc", tmp_path, [script(tmp_path, code)])
    assert (done.stdout, done.stderr) == ("500\n", "")
    raised = read_raises(tmp_path / "out")
    assert raised is not None
    (spot,) = raised.hotspots
    assert (spot.function, spot.line, spot.own, spot.calls) == ("number", 4, 500, 1000)

"""What JAX compiles again and what Triton tunes, as a process of the workload notes it."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profkit.backends import PassFindings
from profkit.backends.cuda.run import SWITCHED_OFF, add_launchers
from profkit.runtime.passes.host.compilers import JaxCompiler, TritonTuner
from profkit.runtime.passes.host.everywhere import call_after_import


def said(out: Path) -> dict[str, Any]:
    path = Path(f"{out}.operations")
    return json.loads(path.read_text()) if path.exists() else {}


def test_what_jax_compiles_again_stands_at_the_line_that_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    monkeypatch.setitem(
        sys.modules, "jax.monitoring", SimpleNamespace(register_event_duration_secs_listener=heard.append)
    )
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    compiler = JaxCompiler(str(tmp_path / "out"))
    compiler.start()
    (listener,) = heard
    for _ in range(3):
        listener("/jax/core/compile/backend_compile_duration", 0.5, fun_name="step")
        listener("/jax/core/compile/jaxpr_trace_duration", 9.0, fun_name="step")
    listener("/jax/core/compile/backend_compile_duration", 0.5, fun_name="other")
    compiler.finish()
    ((file, line, function, name, again, each),) = said(tmp_path / "out")["jax"]
    assert (Path(file).name, function, name, again, each) == (
        Path(__file__).name,
        "test_what_jax_compiles_again_stands_at_the_line_that_calls_it",
        "step",
        2,
        0.5,
    )
    assert "backend_compile" in Path(__file__).read_text().splitlines()[line - 1]


def tuned(keys: int, out: Path) -> None:
    class Autotuner:
        def __init__(self, function: Any) -> None:
            self.base_fn, self.cache, self.configs = function, dict.fromkeys(range(keys)), [1, 2, 3]

    tuner = TritonTuner(str(out))
    tuner.start(SimpleNamespace(Autotuner=Autotuner))

    @Autotuner
    def kernel() -> None: ...

    tuner.finish()


def test_a_kernel_that_is_tuned_for_several_keys_is_noted_at_its_decorator(tmp_path: Path) -> None:
    tuned(5, tmp_path / "out")
    ((file, line, name, keys, tried),) = said(tmp_path / "out")["tuned"]
    assert (Path(file).name, name, keys, tried) == (Path(__file__).name, "kernel", 5, 3)
    assert Path(__file__).read_text().splitlines()[line - 1].strip() == "@Autotuner"


def test_a_kernel_that_is_tuned_once_is_not(tmp_path: Path) -> None:
    tuned(1, tmp_path / "out")
    assert said(tmp_path / "out") == {}


@pytest.mark.parametrize("ran", [True, False])
def test_a_kernel_of_triton_that_ran_is_noted_at_its_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: bool
) -> None:
    class JITFunction:
        def __init__(self, fn: Any) -> None:
            self.fn, self.device_caches = fn, {0: ({"key": "binary"} if ran else {}, "target")}

    monkeypatch.setitem(sys.modules, "triton.runtime.jit", SimpleNamespace(JITFunction=JITFunction))
    tuner = TritonTuner(str(tmp_path / "out"))
    tuner.start(SimpleNamespace(Autotuner=type("Autotuner", (), {})))

    @JITFunction
    @functools.lru_cache
    def unlike_others() -> None: ...

    unlike_others.fn = unlike_others.fn.__wrapped__
    tuner.finish()
    rows = said(tmp_path / "out").get("kernels", [])
    assert len(rows) == ran
    for file, line, function, kernel, module in rows:
        assert (Path(file).name, function, kernel, module) == (
            Path(__file__).name, "unlike_others", "unlike_others", ""
        )  # fmt: skip
        assert Path(__file__).read_text().splitlines()[line - 1].strip().startswith("def unlike_others")


@pytest.mark.parametrize(("compiled", "told"), [("[('*bf16', 'D')]", True), ("[('*fp32', 'D')]", False)])
def test_a_product_of_widened_operands_is_noted_where_memory_holds_16_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: str, told: bool
) -> None:
    class JITFunction:
        def __init__(self, fn: Any) -> None:
            self.fn, self.device_caches = fn, {0: ({compiled: "binary"}, "target")}

    monkeypatch.setitem(sys.modules, "triton.runtime.jit", SimpleNamespace(JITFunction=JITFunction))
    (tmp_path / "kernels_of_test.py").write_text(
        "def multiply(a, b, tl):\n"
        "    a = tl.load(a).to(tl.float32)\n"
        "    return tl.dot(a, tl.load(b).to(tl.float32))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    tuner = TritonTuner(str(tmp_path / "out"))
    tuner.start(SimpleNamespace(Autotuner=type("Autotuner", (), {})))
    kernel = JITFunction(importlib.import_module("kernels_of_test").multiply)
    tuner.finish()
    lines = (tmp_path / "out.operations").read_text().splitlines()
    rows = [row for line in lines for row in json.loads(line).get("widened", [])]
    assert rows == [[str(tmp_path / "kernels_of_test.py"), 3, "multiply", "bf16"]] * told
    monkeypatch.delitem(sys.modules, "kernels_of_test")
    del kernel


@pytest.mark.parametrize(
    ("compiled", "type_"), [("[('*fp16', 'D'), ('*i8', 'D')]", "fp16"), ("[('*fp32', 'D')]", "")]
)
def test_a_product_that_asks_for_the_digits_of_float32_is_noted_whatever_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: str, type_: str
) -> None:
    class JITFunction:
        def __init__(self, fn: Any, caches: dict[int, Any]) -> None:
            self.fn, self.device_caches = fn, caches

    monkeypatch.setitem(sys.modules, "triton.runtime.jit", SimpleNamespace(JITFunction=JITFunction))
    (tmp_path / "exact_kernels.py").write_text(
        "def multiply(a, b, tl):\n    return tl.dot(tl.load(a), b * 2, input_precision='ieee')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    tuner = TritonTuner(str(tmp_path / "out"))
    tuner.start(SimpleNamespace(Autotuner=type("Autotuner", (), {})))
    function = importlib.import_module("exact_kernels").multiply
    kernels = [JITFunction(function, {0: ({compiled: "binary"}, "target")}), JITFunction(function, {})]
    tuner.finish()
    lines = (tmp_path / "out.operations").read_text().splitlines()
    rows = [row for line in lines for row in json.loads(line).get("widened", [])]
    assert rows == [[str(tmp_path / "exact_kernels.py"), 2, "multiply", type_, True]]  # the other never ran
    del sys.modules["exact_kernels"]
    del kernels


VARIANTS = """
import sys
from types import SimpleNamespace
import triton, triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from profkit.runtime.passes.host.compilers import TritonTuner

@triton.jit
def scale(x, T: tl.constexpr, D: tl.constexpr):
    tl.store(x, tl.load(x) * T + D)

heard = []
knobs.compilation.listener = lambda **about: heard.append(about["cache_hit"])
tuner = TritonTuner(sys.argv[1])
tuner.start(SimpleNamespace(Autotuner=type("Autotuner", (), {})))
for length in map(int, sys.argv[2:]):
    source = ASTSource(scale, {"x": "*fp32", "T": "constexpr", "D": "constexpr"}, {"T": length, "D": 8})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))
tuner.finish()
print(len(heard))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("lengths", "said_again"),
    [
        ((3, 5, 7, 5), [["scale, whose constants differ: T with 3 values", 2]]),  # the second 5 is in a file
        ((3, 3, 3), []),
    ],
)
def test_a_kernel_that_triton_compiles_for_each_value_of_a_constant_is_noted_at_the_line_that_calls_it(
    tmp_path: Path, lengths: tuple[int, ...], said_again: list[list[object]]
) -> None:
    """The compiler is Triton's own; it needs no device."""
    pytest.importorskip("triton.knobs", reason="needs Triton 3.4 or newer")
    script, out = tmp_path / "kernels.py", tmp_path / "out"
    script.write_text(VARIANTS)
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    argv = [sys.executable, str(script), str(out), *map(str, lengths)]
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{len(lengths)}\n"  # the program's own listener heard of all
    rows = said(out).get("triton", [])
    assert [row[3:5] for row in rows] == said_again
    for file, line, function, *_, each in rows:
        assert (Path(file).name, function) == ("kernels.py", "<module>")
        assert VARIANTS.splitlines()[line - 1].strip().startswith("triton.compile(")
        assert each > 0.001


def test_the_definition_of_two_kernels_of_one_name_is_not_told() -> None:
    from profkit.analysis.timeline.joined_recordings import with_compiled_lines
    from profkit.core.types import GpuLine, GpuTrace, Kernel, KernelTime

    trace = GpuTrace("nsys", (KernelTime(Kernel("_kernel", (8,), (128,)), 3, 0.1),))
    one, other = GpuLine("/work/a.py", 3, "_kernel"), GpuLine("/work/b.py", 7, "_kernel")
    placed = with_compiled_lines(trace, [("_kernel", "", one)])
    doubtful = with_compiled_lines(trace, [("_kernel", "", one), ("_kernel", "", other)])
    assert placed is not None
    assert doubtful is not None
    assert [(x.kernels[0].file, x.kernels[0].line) for x in (placed, doubtful)] == [
        ("/work/a.py", 3),
        (None, None),
    ]


def test_a_module_within_a_package_is_heard_of_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outer_of_test" / "inner").mkdir(parents=True)
    (tmp_path / "outer_of_test" / "inner" / "tuner.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    heard: list[Any] = []
    call_after_import("outer_of_test.inner.tuner", heard.append)
    importlib.import_module("outer_of_test.inner.tuner")
    assert [module.VALUE for module in heard] == [7]


def test_what_was_noted_becomes_profiles(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    lines = (
        {"jax": [["a.py", 3, "main", "step", 5, 2.0]]},
        {"tuned": [["a.py", 9, "kernel", 7, 6]], "checks": [["detect_anomaly", "a.py", 2, "<module>"]]},
        {"padding": [["a.py", 7, "embed", 64, 32_768, 28_000]]},
        {"again": [["a.py", 52, "forward", "linear", 336, 294, 1000, 300]]},
        {"copied": [["a.py", 46, "remember", "jit_remember", "memory", 805], ["", 0, "", "jit_f", "", 9]]},
        {"full": [["a.py", 4, "forward", 100, 3, 10, 150], ["", 0, "", 20, 1, 10, 150]]},
    )
    (tmp_path / SWITCHED_OFF).write_text("\n".join(map(json.dumps, lines)))
    found = {profile.kind: profile.hotspots for profile in add_launchers(PassFindings(), tmp_path).profiles}
    assert (found["recompilations"][0].calls, found["recompilations"][0].total) == (5, 10.0)
    assert (found["tuned-kernels"][0].calls, found["debug-checks"][0].line) == (7, 2)
    assert (found["padded-batches"][0].own, found["padded-batches"][0].calls) == (28_000.0, 64)
    (repeated,) = found["repeated-results"]
    assert (repeated.own, repeated.calls, repeated.line) == (294.0, 336, 52)
    assert repeated.counters == {"all calls": 1000.0, "all again": 300.0}
    copied = found["copied-arguments"]
    assert [(one.own, one.line, one.library) for one in copied] == [
        (805.0, 46, "jit_remember memory"), (9.0, None, "jit_f ")
    ]  # fmt: skip
    assert [(one.own, one.file) for one in found["held-lines"]] == [(100.0, "a.py"), (20.0, None)]


@pytest.mark.parametrize("odd", [1e400, -1, 10**40, [1], None, {}])
def test_a_row_with_what_is_no_count_is_left_out(odd: object, tmp_path: Path) -> None:
    out = tmp_path / SWITCHED_OFF
    out.parent.mkdir()
    rows = {"tuned": [["a.py", 3, "f", odd, 2]], "kernels": [["a.py", odd, "f", "k", "m"]], "jax": odd}
    out.write_text(f"{'[' * 100_000}\n{json.dumps(rows)}\n")
    found = add_launchers(PassFindings(), tmp_path)
    assert (found.profiles, found.kernel_lines) == ((), ())


AT_EXIT = """
import atexit, os, sys
from types import SimpleNamespace as Object
from profkit.runtime.passes.host.compilers import JaxCompiler

text = 'ENTRY %main {\\n  ROOT %add.1 = f32[] fusion(%x), metadata={source_file="m.py" source_line=4}\\n}'
module = Object(name="jit_step", to_string=lambda: text)
client = Object(live_executables=lambda: [Object(hlo_modules=lambda: [module])])
heard = []
sys.modules["jax"] = Object(devices=lambda: print("opened") or [Object(client=client)])
sys.modules["jax.monitoring"] = Object(register_event_duration_secs_listener=heard.append)
compiler = JaxCompiler(sys.argv[1])
atexit.register(compiler.finish)
atexit.register(lambda: sys.modules.pop("jax"))  # as jax lets go of its devices
compiler.start()
if sys.argv[2] != "only imports":
    heard[0]("/jax/core/compile/backend_compile_duration", 0.5, fun_name="step")
if sys.argv[2] == "forks" and os.fork():
    os.wait()
"""


@pytest.mark.parametrize(
    ("use", "printed", "kernels"),
    [
        ("compiles", "opened\n", [["m.py", 4, "", "add_1", "jit_step"]]),
        ("forks", "opened\n", [["m.py", 4, "", "add_1", "jit_step"]]),
        ("only imports", "", None),
    ],
)
def test_kernels_of_jax_are_asked_for_before_it_ends_and_only_where_it_compiled(
    use: str, printed: str, kernels: list[Any] | None, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", AT_EXIT, str(tmp_path / "out"), use]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (printed, "")
    assert said(tmp_path / "out").get("kernels") == kernels

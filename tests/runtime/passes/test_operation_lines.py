"""The line of each call into torch, written as a range; whatever happens to us, the program goes on as it would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.timeline.range_names import range_meaning, source_line
from profkit.runtime.passes.host import operation_lines
from profkit.runtime.passes.host.operation_lines import OperationLines

torch = pytest.importorskip("torch")


class Traced:
    """What the stand-ins of NVTX and of torch's emitter saw."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.written: list[str] = []
        self.emitting: list[bool] = []

    def push(self, text: str) -> None:
        self.open.append(text)
        self.written.append(text)

    def lines(self) -> list[tuple[int, str | None]]:
        places = [source_line(text) for text in self.written]
        return [(place[1], place[2]) for place in places if place is not None and place[0] == __file__]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    """torch of the CPU, which has neither NVTX nor a moment at which CUDA begins."""
    seen = Traced()

    class Emitter:
        def __init__(self, record_shapes: bool = False) -> None:
            assert record_shapes

        def __enter__(self) -> None:
            seen.emitting.append(True)

        def __exit__(self, *_: object) -> None:
            seen.emitting.append(False)

    def lazy_call(begin: Callable[[], None]) -> None:
        begin()

    monkeypatch.setenv(operation_lines.VARIABLE, "1")
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", seen.push)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: seen.open.pop())
    monkeypatch.setattr(torch.cuda, "_lazy_call", lazy_call)
    monkeypatch.setattr(torch.autograd.profiler, "emit_nvtx", Emitter)
    for owner, name in (
        (torch, "compile"),
        (torch.export, "export"),
        (torch.autograd.profiler.profile, "__init__"),
    ):
        monkeypatch.setattr(owner, name, lambda *_, **__: None)
    return seen


@pytest.fixture
def lines(traced: Traced, tmp_path: Path) -> Iterator[OperationLines]:
    companion = OperationLines(str(tmp_path / "stacks.jsonl"))
    companion.start()
    yield companion
    companion._stop(None)
    assert torch._C._len_torch_function_stack() == 0


def line_of(name: str) -> int:
    """The line of this file that ends with the comment `# name`."""
    texts = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(texts, 1) if text.endswith(f"# {name}"))


@pytest.mark.thorough
def test_a_call_of_torch_has_the_line_of_the_program_that_made_it(
    lines: OperationLines, traced: Traced
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    traced.written.clear()

    def step() -> None:
        loss = model(torch.ones(2, 4)).sum()  # forward
        loss.backward()  # backward
        optimizer.step()  # optimizer

    step()
    name = "test_a_call_of_torch_has_the_line_of_the_program_that_made_it.<locals>.step"
    found = traced.lines()
    assert list(dict.fromkeys(line for line, _ in found)) == [
        line_of(x) for x in ("forward", "backward", "optimizer")
    ]
    assert {function for _, function in found} <= {name, "step"}
    assert (traced.open, traced.emitting, lines._reason) == ([], [True], None)


def test_a_loop_on_the_cpu_says_nothing_of_the_lines_that_use_the_gpu_later(
    lines: OperationLines, traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data is prepared on the CPU after CUDA began: the program has not repeated itself on the GPU yet."""
    monkeypatch.setattr(operation_lines, "MAX_UNCHANGED_CALLS", 20)
    for _ in range(50):
        torch.ones(2)
    traced.written.clear()
    torch.ones(2)  # later
    assert traced.lines()[-1][0] == line_of("later")
    monkeypatch.setattr(operation_lines, "_is_on_gpu", lambda value: isinstance(value, torch.Tensor))
    for _ in range(50):
        torch.ones(2)
    traced.written.clear()
    torch.ones(2)
    assert traced.lines() == []


def test_the_line_of_a_package_stands_behind_that_of_the_program(
    lines: OperationLines, traced: Traced, tmp_path: Path
) -> None:
    package = tmp_path / "site-packages" / "nets.py"
    package.parent.mkdir()
    package.write_text("def forward(x):\n    return x + 1\n")
    inside: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}
    exec(compile(package.read_text(), str(package), "exec"), inside)
    traced.written.clear()
    inside["forward"](torch.ones(2))  # package
    (text,) = [one for one in traced.written if "nets.py" in one]
    meaning = range_meaning(text, None)
    assert meaning.line is not None
    assert meaning.line[:2] == (__file__, line_of("package"))
    assert meaning.below == (str(package), 2, "forward")


F = torch.nn.functional
IMAGE, WINDOW = (2, 4, 9, 9), (6, 2, 3, 3)
HEADS = (2, 4, 8, 8)


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (
            lambda: F.conv2d(
                torch.ones(IMAGE), torch.ones(WINDOW, requires_grad=True), None, 2, padding=(1, 0), groups=2
            ),
            {
                "stride": "[2, 2]", "padding": "[1, 0]", "dilation": "[1, 1]", "groups": "2",
                "transposed": "False", "output_mask": "[False, True, False]",
            },
        ),
        (lambda: torch.nn.Conv1d(4, 6, 3, padding="same")(torch.ones(2, 4, 9)), {"padding": "[1]"}),
        (lambda: F.conv2d(torch.ones(2, 2, 9, 9), torch.ones(WINDOW), padding="valid"), {"padding": "[0, 0]"}),
        (lambda: F.conv1d(torch.ones(2, 4, 9), torch.ones(6, 4, 2), padding="same"), {}),
        (
            lambda: torch.nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)(torch.ones(IMAGE)),
            {"stride": "[2, 2]", "output_padding": "[1, 1]", "transposed": "True"},
        ),
        (
            lambda: F.scaled_dot_product_attention(*[torch.ones(HEADS)] * 3, is_causal=True),
            {"is_causal": "True"},
        ),
        (lambda: F.scaled_dot_product_attention(*[torch.ones(HEADS)] * 3), {"is_causal": "False"}),
        (
            lambda: torch.nn.MultiheadAttention(8, 2)(
                *[torch.ones(4, 2, 8)] * 3, need_weights=False, is_causal=True, attn_mask=torch.zeros(4, 4)
            ),
            {"is_causal": "True"},
        ),
        (lambda: torch.ones(3).sum(), {}),
    ],
)  # fmt: skip
def test_what_no_shape_tells_stands_behind_the_line(
    lines: OperationLines, traced: Traced, call: Callable[[], Any], given: dict[str, str]
) -> None:
    traced.written.clear()
    call()
    told = [range_meaning(text, None).given for text in traced.written]
    values = dict(one.split("=") for text in told for one in text.split(";") if text)
    assert given.items() <= values.items()
    assert bool(values) == bool(given)


def test_an_error_of_ours_switches_us_off_and_is_in_the_file(
    lines: OperationLines, traced: Traced, tmp_path: Path
) -> None:
    def broken(_: str) -> None:
        raise OSError("no NVTX")

    lines._push = broken
    assert torch.ones(2).sum().item() == 2
    assert (lines._on, traced.emitting) == (False, [True, False])
    lines.finish()
    (line,) = (tmp_path / "stacks.jsonl.operations").read_text().splitlines()
    assert (json.loads(line)["reason"], json.loads(line)["said"]) == ("raised-there", "OSError: no NVTX")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: torch.compile(len), operation_lines.COMPILED),
        (lambda: torch.autograd.profiler.profile(), operation_lines.PROFILED),
    ],
)
def test_we_are_gone_before_torch_compiles_or_profiles(
    lines: OperationLines, traced: Traced, call: Callable[[], Any], reason: str
) -> None:
    with torch.device("cpu"):  # a mode of the program's own, above ours
        call()
        assert torch._C._len_torch_function_stack() == 1
        torch.ones(2)
    assert torch._C._len_torch_function_stack() == 0
    assert (lines._reason, traced.emitting) == (reason, [True, False])


def test_without_a_trace_outside_torch_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(operation_lines.VARIABLE, raising=False)
    companion = OperationLines(str(tmp_path / "out"))
    companion.start()
    companion.finish()
    assert torch._C._len_torch_function_stack() == 0
    assert list(tmp_path.iterdir()) == []


def checks_of(tmp_path: Path) -> list[list[object]]:
    (line,) = (tmp_path / "stacks.jsonl.operations").read_text().splitlines()
    found: list[list[object]] = json.loads(line)["checks"]
    return found


@pytest.mark.thorough
def test_a_compiler_that_looks_for_nan_while_it_traces_is_no_switch_of_the_program(
    traced: Traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._dynamo import optimize

    companion = OperationLines(str(tmp_path / "stacks.jsonl"))
    companion.start()
    compiled = optimize("aot_eager")(lambda x: (x * x).sin().sum())
    companion._stop(operation_lines.COMPILED)
    weights = torch.ones(3, requires_grad=True)
    for _ in range(3):
        compiled(weights).backward()
    companion.finish()
    assert checks_of(tmp_path) == []


@pytest.mark.parametrize(
    ("checked", "steps", "found"), [(True, 40, True), (True, 1, False), (False, 40, False)]
)
def test_a_switch_of_the_program_counts_where_it_is_on_in_most_steps(
    traced: Traced, tmp_path: Path, checked: bool, steps: int, found: bool
) -> None:
    companion = OperationLines(str(tmp_path / "stacks.jsonl"))
    companion.start()
    weights = torch.ones(3, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=checked):  # switch
        for _ in range(steps):
            (weights * 2).sin().sum().backward()
    for _ in range(20):
        (weights * 2).sin().sum().backward()
    companion._stop(None)
    companion.finish()
    assert [row[2] for row in checks_of(tmp_path)] == ([line_of("switch")] if found else [])


IDS = torch.arange(1, 641).reshape(4, 160)


@pytest.mark.parametrize(
    ("title", "matrix", "unused"),
    [
        (
            "padded to 160, of which the longest row uses 40",
            torch.nn.functional.pad(IDS[:, :40], (0, 120)),
            120,
        ),
        ("one row alone", torch.nn.functional.pad(IDS[:1, :40], (0, 120)), 120),
        ("padded to the longest row", torch.tensor([[*range(1, 161)], [*range(1, 41), *[0] * 120]]), None),
        ("no padding", IDS, None),
        ("a value for all: nothing tells what it is", torch.full((4, 160), 7), None),
        ("no matrix of numbers of tokens", torch.nn.functional.pad(IDS[:, :40], (0, 120)).float(), None),
        ("few columns", torch.zeros(4, 8, dtype=torch.int64), None),
    ],
)
def test_columns_that_are_padding_in_all_rows_are_counted(
    title: str, matrix: torch.Tensor, unused: int | None
) -> None:
    padding = operation_lines.PaddedColumns()
    for _ in range(3):
        padding.look(torch, "to", (matrix,), lambda: ("a.py", 7, "embed"))
        padding.look(torch, "add", (matrix,), lambda: ("a.py", 8, "embed"))
    expected = [["a.py", 7, "embed", 3, 480, 3 * unused]] if unused is not None else []
    assert padding.rows() == expected

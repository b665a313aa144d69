"""The CUDA kernels without a GPU: run on the CPU thread by thread, and compiled by NVRTC where it is installed."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from profkit.core.types import GridPoint  # noqa: E402
from profkit.kernels.operations.cuda import launch  # noqa: E402
from profkit.kernels.operations.cuda.compiler import load_compiler  # noqa: E402
from profkit.kernels.operations.cuda.launch import program_of  # noqa: E402
from profkit.kernels.operations.definitions import Problem, Unavailable  # noqa: E402
from profkit.kernels.operations.float64_check import check_result, reference_result  # noqa: E402
from profkit.kernels.operations.registry import OPERATIONS  # noqa: E402
from profkit.kernels.sweep.bench import make_problem  # noqa: E402
from tests.kernels.operations.cuda_on_cpu import CAPABILITY, PROCESSORS, CpuModule  # noqa: E402

CPU = torch.device("cpu")
BOTH = ("forward", "backward")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda_on_cpu")


@pytest.fixture
def on_cpu(libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`launch.py` with a device that is this CPU, and kernels that g++ builds."""
    if shutil.which("g++") is None:
        pytest.skip("g++ compiles the kernels for the CPU")
    monkeypatch.setattr(CpuModule, "folder", libraries)
    monkeypatch.setattr(
        launch, "_module", lambda index, file, constants: CpuModule(file, CAPABILITY, dict(constants))
    )
    monkeypatch.setattr(launch, "kernel_of", launch.kernel_of.__wrapped__)
    monkeypatch.setattr(launch, "device_of", lambda index: (CAPABILITY, PROCESSORS))
    monkeypatch.setattr(launch, "current_stream", lambda: 0)
    monkeypatch.setattr(launch, "cuda_device", lambda index: CPU)
    monkeypatch.setattr(launch, "scratch_memory", lru_cache(launch.scratch_memory.__wrapped__))


def _problem(operation: str, direction: str, dtype: str, shape: tuple[int, int, int]) -> Problem:
    return make_problem(GridPoint(operation, *shape, dtype, direction), CPU)  # type: ignore[arg-type]


def _share(problem: Problem) -> float:
    """The error as a share of the tolerance, at the second call: what the first left behind must not matter."""
    call = launch.build_calls(problem)
    call()
    return check_result(problem, call(), reference_result(problem))


@pytest.mark.thorough
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kernel_is_right_where_rows_are_no_multiples_of_a_pack(operation: str, direction: str) -> None:
    for dtype in ("float32", "float16"):
        assert _share(_problem(operation, direction, dtype, (3, 7, 5))) < 0.7


@pytest.mark.thorough
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kernel_is_right_where_a_warp_holds_a_row_and_where_blocks_walk(
    operation: str, direction: str
) -> None:
    assert _share(_problem(operation, direction, "float32", (2, 61, 72))) < 0.7
    assert _share(_problem(operation, direction, "float16", (5, 17, 256))) < 0.7
    assert _share(_problem(operation, direction, "bfloat16", (3, 41, 100))) < 0.7  # packs of 8 bytes


@pytest.mark.thorough
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("operation", ["LayerNorm", "CrossEntropy"])
def test_rows_wider_than_a_warp_can_hold_are_gone_over_several_times(operation: str, direction: str) -> None:
    for width in (2064, 2061):
        assert _share(_problem(operation, direction, "float32", (1, 9, width))) < 0.7
    assert launch.row_layout("layer_norm", torch.empty(1, 1024), ()) is not None
    assert launch.row_layout("layer_norm", torch.empty(1, 1028), ()) is None


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_tensor_that_begins_anywhere_is_taken_element_by_element(operation: str) -> None:
    for direction in BOTH:
        problem = _problem(operation, direction, "float16", (2, 3, 16))
        x = problem.inputs[0]
        shifted = torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view(x.shape).copy_(x)
        assert shifted.data_ptr() % 16
        assert (
            _share(Problem(problem.point, problem.operation, (shifted, *problem.inputs[1:]), problem.above))
            < 0.7
        )


def test_as_much_is_loaded_at_a_time_as_the_begin_of_every_row_allows() -> None:
    for width, pack in ((512, 8), (1000, 8), (100, 4), (6, 2), (7, 1)):
        assert launch.pack_of(torch.empty(3, width, dtype=torch.float16), ()) == pack
    x = torch.empty(4 * 64 + 8, dtype=torch.float16)
    for begin, pack in ((0, 8), (1, 1), (2, 2), (4, 4), (8, 8)):
        moved = x[begin : begin + 4 * 64].view(4, 64)
        assert launch.pack_of(moved, (moved,)) == pack
    assert launch.pack_of(torch.empty(3, 512), ()) == 4  # float32


@pytest.mark.usefixtures("on_cpu")
def test_gelu_is_that_of_torch_at_its_ends() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, 1e-30, 6.0, 15.0, 17.0, 1e4, -1e4, -17.0, inf, nan, 3.0]).view(1, 1, -1)
    point = GridPoint("GELU", 1, 1, x.numel())
    value = launch.build_calls(Problem(point, OPERATIONS["GELU"], (x,)))()
    finite = torch.isfinite(x)
    torch.testing.assert_close(value[finite], torch.nn.functional.gelu(x)[finite], rtol=1e-6, atol=1e-7)
    assert float(value[..., 9]) == inf
    assert bool(value[..., 10].isnan())
    leaf = x.clone().requires_grad_()
    (ought,) = torch.autograd.grad(torch.nn.functional.gelu(leaf).sum(), leaf)
    backward = Problem(
        GridPoint("GELU", 1, 1, x.numel(), direction="backward"), OPERATIONS["GELU"], (x,), x * 0 + 1
    )
    (grad,) = launch.build_calls(backward)()  # type: ignore[misc]
    torch.testing.assert_close(grad[finite], ought[finite], rtol=1e-6, atol=2e-7)
    assert bool(grad[..., 10].isnan())


@pytest.mark.usefixtures("on_cpu")
def test_a_label_that_is_no_class_gives_no_loss_and_reads_nothing() -> None:
    problem = _problem("CrossEntropy", "forward", "float32", (1, 4, 8))
    labels = problem.inputs[1].clone()
    labels[0, 2] = 1 << 40
    value = launch.build_calls(Problem(problem.point, problem.operation, (problem.inputs[0], labels)))()
    assert bool(value.isnan())


@pytest.mark.usefixtures("on_cpu")
def test_large_logits_lose_nothing() -> None:
    problem = _problem("CrossEntropy", "forward", "float32", (2, 8, 24))
    far = (problem.inputs[0] + 3000.0, problem.inputs[1])
    found = Problem(problem.point, problem.operation, far)
    assert check_result(found, launch.build_calls(found)(), reference_result(found)) < 0.7


# ------------------------------------------------------------ compiled for chips

CONSTANTS = [
    ("flat.cu", {"PACK": 8, "STEPS": 1, "TAIL": 0}),
    ("flat.cu", {"PACK": 8, "STEPS": 2, "TAIL": 1}),
    ("flat.cu", {"PACK": 1, "STEPS": 1, "TAIL": 0}),
    ("rows.cu", {"PACK": 8, "LANES": 1, "PACKS": 2, "WIDTH": 16, "WARPS": 4}),
    ("rows.cu", {"PACK": 8, "LANES": 32, "PACKS": 2, "WIDTH": 512, "WARPS": 4}),
    ("rows.cu", {"PACK": 1, "LANES": 4, "PACKS": 2, "WIDTH": 7, "WARPS": 4}),
    ("wide.cu", {"PACK": 8}),
]


@pytest.mark.parametrize(("file", "constants"), CONSTANTS)
def test_every_file_compiles_for_every_generation(
    file: str, constants: dict[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    try:
        tool = load_compiler()
    except Unavailable as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for architecture in ("sm_80", "sm_90"):
        for element in (0, 1, 2):
            pack = {"PACK": min(constants["PACK"], 8 if element else 4)}
            given = {"ELEMENT": element, **constants, **pack}
            if file == "rows.cu" and pack["PACK"] != constants["PACK"]:
                given["PACKS"] *= 2
            options = [f"--gpu-architecture={architecture}", "--std=c++17"]
            options += [f"-D{name}={value}" for name, value in given.items()]
            assert program_of(tool, file, options)[0]

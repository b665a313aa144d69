"""A model on kernels: which are called, what they give, what happens to gradients, and that all is put back."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import profkit  # noqa: E402
from profkit.core.errors import UsageError  # noqa: E402

pytestmark = pytest.mark.torch


def tables() -> str:
    names = ("aten::relu", "aten::linear", "aten::add.Tensor", "aten::layer_norm")
    return "".join(torch._C._dispatch_dump(name) for name in names)


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """The dispatcher is as it was; and nothing warns."""
    before = tables()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert tables() == before


def doubled(x: Any) -> Any:
    """Wrong on purpose: whoever gets it can be told."""
    return torch.relu(x) * 2


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = torch.matmul(x, weight.t())
    return product if bias is None else product + bias


def test_a_model_runs_on_the_kernels_and_on_pytorchs_own_afterwards() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    inputs = torch.randn(3, 4)
    want = model(inputs)
    with pytest.raises(ZeroDivisionError), profkit.enable({"relu": lambda x: 1 / 0}, device="cpu"):
        model(inputs)
    with profkit.enable({"relu": doubled}, device="cpu") as kernels:
        assert torch.equal(model(inputs), want * 2)
        model(inputs)
    assert torch.equal(model(inputs), want)
    assert kernels.calls == {"relu.default": 2}
    assert str(kernels) == "1 operation replaced (CPU)\n  relu.default: 2 calls"


def test_gradients_stay_those_of_pytorch() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8))
    inputs = torch.randn(3, 4)

    def gradients() -> list[Any]:
        model.zero_grad()
        model(inputs).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    want = gradients()
    with profkit.enable({"relu": lambda x: torch.relu(x), "linear": linear}, device="cpu") as kernels:
        got = gradients()
        with torch.no_grad():
            model(inputs)
    assert all(map(torch.equal, got, want))
    # PyTorch makes `linear` of others: where a gradient is asked for, its kernel would have none.
    assert kernels.calls == {"linear.default": 1, "relu.default": 2}
    assert kernels.kept == {"linear.default": 1}


def test_a_transformer_layer_runs_on_kernels_of_a_folder(tmp_path: Path) -> None:
    texts = {
        "linear": "import torch\ndef linear_kernel_impl(x, w, b=None): return torch.nn.functional.linear(x, w, b)\n",
        "relu": "import torch\ndef relu_kernel_impl(x): return torch.clamp(x, min=0)\n",
        "gelu": "raise RuntimeError('no GPU')\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(text)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    inputs = torch.randn(2, 3, 8)
    want = layer(inputs)
    with pytest.warns(UserWarning, match="gelu.default stays PyTorch's own: RuntimeError: no GPU"):
        kernels = profkit.enable(tmp_path, device="cpu")

    @kernels
    def run() -> Any:
        with torch.no_grad():
            return layer(inputs)

    assert torch.allclose(run(), want, atol=1e-6)
    assert kernels.calls["relu.default"] == 1
    assert kernels.calls["linear.default"] >= 2
    assert kernels.failed == {"gelu.default": "RuntimeError: no GPU"}
    assert "gelu.default: PyTorch's own, RuntimeError: no GPU" in str(kernels)


def test_threads_share_the_kernels_and_the_last_one_puts_them_back() -> None:
    kernels = profkit.enable({"relu": doubled}, device="cpu")
    start, wrong = threading.Barrier(4), []

    def run() -> None:
        start.wait()
        for _ in range(20):
            with kernels:
                if torch.relu(torch.ones(1)).item() != 2:
                    wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert kernels.calls == {"relu.default": 80}


@pytest.mark.parametrize(
    ("kernels", "message"), [({"gleu": doubled}, "no operation called 'gleu'"), ({"relu": 3}, "no function")]
)
def test_what_means_nothing_is_refused(kernels: dict[str, Callable[..., Any]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profkit.enable(kernels)

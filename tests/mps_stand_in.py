"""A torch whose MPS device is asynchronous and takes known times, in this process; see stand_ins/mps/torch.py."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profkit.runtime.passes import benchmark
from tests.simulated_clock import put_in_place

FOLDER = Path(__file__).parent / "stand_ins" / "mps"


def load() -> Any:
    """A fresh one; $STAND_IN_MPS is read now."""
    spec = importlib.util.spec_from_file_location("torch", FOLDER / "torch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # its functions find the module itself under this name
    previous, sys.modules["torch"] = sys.modules.get("torch"), module
    try:
        spec.loader.exec_module(module)
    finally:
        if previous is None:
            del sys.modules["torch"]
        else:
            sys.modules["torch"] = previous
    return module


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Puts one in torch's place, on a simulated clock that profkit's timing has too; with words for how it behaves."""

    def put(said: str = "") -> Any:
        monkeypatch.setenv("STAND_IN_MPS", said)
        module = load()
        module.state.now = 0.0
        put_in_place(monkeypatch, module.clock)
        monkeypatch.setitem(sys.modules, "torch", module)
        # Other tests load a CUDA that stands in
        monkeypatch.setattr(benchmark, "driver_in_use", lambda: None)
        monkeypatch.setattr(benchmark, "uses_cuda", lambda: False)
        return module

    return put

"""Whose kernels take the time of a candidate, on traces and tables that were recorded on an H200."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from profkit.analysis.evaluation.witnesses import assess_own_kernels
from tests.conftest import ROOT
from tests.spoken import spoken

DATA = ROOT / "tests" / "data" / "cuda"


def launched_in_torch_trace(path: Path) -> list[tuple[str, float]]:
    """Names and seconds of what ran on the device."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    on_device = ("kernel", "gpu_memcpy", "gpu_memset")
    return [(event["name"], event["dur"] / 1e6) for event in events if event.get("cat") in on_device]


def launched_in_nsys_export(path: Path) -> list[tuple[str, float]]:
    """The same of an export of Nsight Systems."""
    query = (
        "SELECT value, (end - start) / 1e9 FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel "
        "JOIN StringIds ON StringIds.id = kernel.demangledName"
    )
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        return list(database.execute(query))


def test_pytorchs_own_mlp_has_no_kernel_of_its_author() -> None:
    found = assess_own_kernels(launched_in_torch_trace(DATA / "torch" / "torch.cuda.json.gz"))
    assert found is not None
    assert found.share == 0
    assert spoken(found.remark) == (
        "it launches no kernel of its own; its GPU time is that of cuBLAS 85 %, PyTorch (ATen) 15 %"
    )


def test_a_cuda_program_spends_all_of_its_time_in_its_own_kernels() -> None:
    launched = launched_in_nsys_export(DATA / "nsys" / "truths.sqlite")
    assert launched
    found = assess_own_kernels(launched)
    assert found is not None
    assert found.remark is None
    assert found.share > 0.9


@pytest.mark.parametrize(
    ("seconds", "remark"),
    [
        (1e-6, "its own kernels take only 0.0123 % of its GPU time; other kernels do the work: cuBLAS 85 %,"),
        (4e-3, "33 % of its GPU time is in its own kernels; cuBLAS 57 %,"),
        (40e-3, ""),
    ],
    ids=["a decoy", "a part", "most"],
)
def test_an_own_kernel_beside_a_library_is_called_what_it_is(seconds: float, remark: str) -> None:
    launched = launched_in_torch_trace(DATA / "torch" / "torch.cuda.json.gz")
    found = assess_own_kernels([*launched, ("gated_mlp_kernel", seconds)])
    assert found is not None
    assert spoken(found.remark).startswith(remark)
    assert bool(found.remark) == bool(remark)


def test_a_device_on_which_nothing_ran_says_nothing() -> None:
    assert assess_own_kernels([]) is None

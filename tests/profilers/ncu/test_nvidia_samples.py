"""The reports that come with Nsight Compute itself (an RTX A4500, version 2023.3), where an installation is here.

They are NVIDIA's and not in this repository. Truths: ../shared/reference/cuda.md, section 6.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.profilers.ncu.rep import read_ncu_rep

INSTALLED = (
    "opt/nvidia/nsight-compute/*/extras/samples",
    "usr/local/cuda*/nsight-compute*/extras/samples",
    "usr/local/cuda*/extras/samples",
)
METRICS = (
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
)
TRUTHS = {  # achieved occupancy, DRAM and memory in % of peak, bank conflicts
    "transposeNoBankConflicts": (95.64, 88.69, 88.69, 0),
    "transposeCoalesced": (93.89, 61.92, 90.23, 65_011_712),
    "addConstDouble": (73.53, 90.58, 90.58, 0),
    "addConstDouble3": (76.44, 88.35, 88.35, 0),
    "sobelFloat": (83.84, 22.19, 46.36, 0),
    "sobelDouble": (95.50, 1.11, 1.97, 0),
}


def sample(name: str, fixtures: Path) -> Path:
    folders = [fixtures / "cuda" / "samples", *(f for place in INSTALLED for f in Path("/").glob(place))]
    found = [path for folder in folders for path in folder.rglob(f"{name}.ncu-rep")]
    if not found:
        pytest.skip("no installation of Nsight Compute with its samples is here")
    return found[0]


@pytest.mark.parametrize("name", list(TRUTHS))
def test_a_sample_has_its_truths(fixtures: Path, name: str) -> None:
    report = read_ncu_rep(sample(name, fixtures))
    told = {counter.name: counter.value for counter in report.counters}
    assert [told[metric] for metric in METRICS] == pytest.approx(TRUTHS[name], abs=0.006)
    assert report.facts["clocks"] == "locked to base"
    assert [(gpu.name, gpu.chip, gpu.capability) for gpu in report.gpus] == [
        ("NVIDIA RTX A4500", "GA102", "8.6")
    ]
    assert report.gpus[0].bandwidth == pytest.approx(640e9, rel=0.01)

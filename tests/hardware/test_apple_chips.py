"""The table of Apple's chips: the numbers that decide a verdict, and what is told where a name does not decide them."""

from __future__ import annotations

import pytest

from profkit.core.errors import Fault
from profkit.hardware.apple_gpu import AppleChip, core_configurations, find_chip, list_chip_names


def chip(name: str, cores: int | None = None) -> AppleChip:
    found = find_chip(name, cores)
    assert isinstance(found, AppleChip), found
    return found


@pytest.mark.parametrize(
    ("name", "cores", "gigabytes", "teraflops"),
    [
        ("Apple M1", 8, 68, 2.6),
        ("Apple M1 Pro", 16, 200, 5.3),
        ("Apple M1 Max", 32, 400, 10.6),
        ("Apple M1 Ultra", 64, 800, 21.2),
        ("Apple M2", 10, 100, 3.6),
        ("Apple M2 Pro", 19, 200, 6.8),
        ("Apple M2 Max", 38, 400, 13.6),
        ("Apple M2 Ultra", 76, 800, 27.2),
        ("Apple M3 Pro", 18, 150, 6.4),
        ("Apple M3 Max", 30, 300, 10.6),
        ("Apple M3 Max", 40, 400, 14.1),
        ("Apple M3 Ultra", 80, 819, 28.3),
        ("Apple M4", 8, 120, 3.0),
        ("Apple M4", 10, 120, 3.8),
        ("Apple M4 Pro", 20, 273, 8.1),
        ("Apple M4 Max", 32, 410, 12.9),
        ("Apple M4 Max", 40, 546, 16.2),
        ("Apple M5 Max", 40, 614, 16.6),
    ],
)
def test_the_peaks_of_a_chip_as_it_is_sold(name: str, cores: int, gigabytes: float, teraflops: float) -> None:
    found = chip(name, cores)
    assert found.bandwidth == pytest.approx(gigabytes * 1e9)
    assert found.flops == pytest.approx(teraflops * 1e12, rel=0.02)
    assert found.clock is not None
    assert found.flops == cores * 128 * 2 * found.clock
    assert found.reason is None


@pytest.mark.parametrize(
    "name", ["Apple M3 Max", "M3 Max", "apple m3 max", " Apple  M3\tMax ", "Apple M3 Max GPU"]
)
def test_a_chip_goes_by_the_names_that_sysctl_ioreg_and_traces_give_it(name: str) -> None:
    assert chip(name, 40).name == "Apple M3 Max"


def test_without_the_number_of_cores_a_bandwidth_that_depends_on_it_has_its_reason() -> None:
    found = chip("Apple M4 Max")
    assert (found.bandwidth, found.flops) == (None, None)
    assert found.reason is not None
    assert "32 and 40 GPU cores and 410 GB/s or 546 GB/s" in found.reason
    assert found.fix is not None
    assert "gpu-core-count" in found.fix


def test_without_the_number_of_cores_a_bandwidth_that_all_have_is_told() -> None:
    found = chip("M1")
    assert (found.bandwidth, found.flops) == (68e9, None)
    assert found.reason is not None


def test_a_number_of_cores_that_is_not_sold_gives_no_peak_of_arithmetic() -> None:
    assert chip("Apple M3 Max", 35).bandwidth is None
    odd = chip("Apple M1", 35)
    assert (odd.bandwidth, odd.flops, odd.bandwidth_checked) == (68e9, None, False)
    assert odd.reason == "profkit's table has Apple M1 with 7 and 8 GPU cores, not with 35"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("AMD Radeon Pro 5300M", "not Apple's"),
        ("Intel(R) UHD Graphics 630", "not Apple's"),
        ("Apple M1 (Virtual)", "virtual machine"),
        ("Apple Paravirtual device", "virtual machine"),
        ("Apple M19 Max", "not in profkit's table"),
        ("Apple A18 Pro", "in no table"),
        ("<script>", "in no table"),
        ("", "not named"),
        (None, "not named"),
    ],
)
def test_what_has_no_specification_says_why(name: str | None, words: str) -> None:
    found = find_chip(name, 8)
    assert isinstance(found, Fault)
    assert words in found.reason


def test_reported_numbers_are_not_taken_for_certain() -> None:
    for name in list_chip_names():
        for cores in core_configurations(name):
            found = chip(name, cores)
            if name.startswith("Apple M5"):
                assert not found.bandwidth_checked
                assert not found.flops_checked
    assert chip("Apple M2 Ultra", 76).flops_checked is False
    assert chip("Apple M1", 8).flops_checked is True


def test_the_table_has_every_chip_of_four_generations() -> None:
    kinds = {"M1": 4, "M2": 4, "M3": 4, "M4": 3}
    assert {g: sum(name.split()[1] == g for name in list_chip_names()) for g in kinds} == kinds

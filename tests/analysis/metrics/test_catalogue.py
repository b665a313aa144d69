import pytest

from profkit.analysis.metrics.catalogue import all_metrics, metric, nearest_metric
from profkit.core.errors import UsageError

CONTRACT = (
    "occupancy.achieved",
    "occupancy.theoretical",
    "bandwidth.dram",
    "bandwidth.l2",
    "cache.l1.miss_rate",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
    "shared.bank_conflicts",
    "warp.execution_efficiency",
    "memory.coalescing",
    "tensor.utilization",
    "simd.utilization",
    "branch.miss_rate",
    "ipc",
    "gpu.utilization",
    "flops",
    "arithmetic_intensity",
    "memory.python_peak",
    "memory.device_peak",
    "time.median",
    "time.spread",
    "time.import",
    "cache.l1i.miss_rate",
    "memory.rss_peak",
    "instructions",
    "cycles",
    "bandwidth.dram.share",
    "flops.rate",
    "flops.share",
    "dram.bytes",
    "roofline.attainable",
    "roofline.share",
    "page_faults",
    "context_switches",
    "cpu.migrations",
    "cpu.utilization",
    "memory.python_growth",
)


@pytest.mark.parametrize("name", CONTRACT)
def test_every_promised_metric_is_in_the_catalogue(name):
    assert metric(name).name == name


def test_every_metric_says_what_it_means_in_a_sentence():
    for info in all_metrics():
        assert info.title
        assert info.unit
        assert info.better in ("lower", "higher", "none")
        assert info.meaning[0].isupper() or info.meaning[0].isdigit(), info.name
        assert info.meaning.endswith("."), info.name


def test_a_share_cannot_pass_a_hundred_percent_and_has_a_bound():
    unbounded = {"time.spread", "time.interval", "time.processes", "cpu.utilization", "bandwidth.dram.share"}
    unbounded |= {"flops.share", "roofline.share", "throughput.busiest"}  # a measured peak can be passed
    # a cache, or narrower numbers, pass a specification
    unbounded |= {"bandwidth.gpu.share"}
    for info in all_metrics():
        if info.unit == "%" and info.name not in unbounded:
            assert (info.least, info.most) == (0, 100), info.name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cache.l1.missrate", "cache.l1.miss_rate"),
        ("cache.l1.miss_rat", "cache.l1.miss_rate"),
        ("IPC", "ipc"),
        ("branch.misses", "branch.miss_rate"),
        ("occupancy.achived", "occupancy.achieved"),
        ("l3-miss-rate", "cache.l3.miss_rate"),
        ("simd", "simd.utilization"),
        ("ipc", "ipc"),
    ],
)
def test_the_nearest_name_is_the_one_meant(written, meant):
    assert nearest_metric(written) == meant


@pytest.mark.parametrize("written", ["qqqqqq", "", "  ", "frobnication"])
def test_nothing_is_near_a_word_of_another_world(written):
    assert nearest_metric(written) is None


def test_an_unknown_metric_is_a_usage_error_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"cache\.l1\.misrate.*did you mean cache\.l1\.miss_rate"):
        metric("cache.l1.misrate")

"""The rules as data: what gates, what a config may say, and what it may not."""

import pytest

from profkit.analysis.metrics.catalogue import all_metrics
from profkit.core.errors import UsageError
from profkit.regression.detection.rules import _default_rules, rule_for


def test_every_metric_with_a_rule_is_in_the_catalogue() -> None:
    assert set(_default_rules()["metrics"]) <= {info.name for info in all_metrics()}


def test_few_metrics_gate() -> None:
    gating = [info.name for info in all_metrics() if rule_for(info.name).gates]
    # No other run has them.
    of_kernels = {"time.geometric_mean", "cases.faulty", "tests.failed", "speedup.geometric_mean"}
    assert [m for m in gating if m not in of_kernels] == ["time.median", "instructions", "memory.device_peak"]
    assert of_kernels <= set(gating)
    assert rule_for("ipc", {"gates": True}).gates


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("relativ", 0.1, "has no 'relativ'"),
        ("relative", "much", "relative is 'much'"),
        ("relative", -0.1, "relative is -0.1"),
        ("relative", float("nan"), "relative is nan"),
        ("relative", "1e %", "relative is '1e %'"),
        ("nights", 0, "nights is 0"),
        ("nights", 2.5, "nights is 2.5"),
        ("gates", "sometimes", "gates is 'sometimes'"),
        ("better", "more", "better is 'more'"),
        ("nights", True, "nights is True"),
        ("relative", 10**400, r"is 1000.*\.\.\."),
    ],
)
def test_what_does_not_fit_is_refused_by_name(key: str, value: object, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        rule_for("ipc", {key: value})
    assert caught.value.fix

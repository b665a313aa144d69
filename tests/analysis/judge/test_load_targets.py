"""Targets from YAML: the defaults, what a user's file changes, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.judge.target import Target
from profkit.core.errors import UsageError
from profkit.profiling.summarize import targets_for

DEFAULTS = {
    "l1-miss-rate": ("cache.l1.miss_rate", "<", 5),
    "l2-miss-rate": ("cache.l2.miss_rate", "<", 10),
    "l3-miss-rate": ("cache.l3.miss_rate", "<", 20),
    "branch-miss-rate": ("branch.miss_rate", "<", 5),
    "ipc": ("ipc", ">", 2.0),
    "simd-utilization": ("simd.utilization", ">", 50),
    "memory-bandwidth": ("bandwidth.dram.share", ">", 60),
    "roofline": ("roofline.share", ">", 50),
    "cases-right": ("cases.faulty", "<=", 0),
    "kernels-right": ("tests.failed", "<=", 0),
    "time-precision": ("time.interval", "<=", None),
    "no-leak": ("memory.python_growth", "<", 8),
}


def load(tmp_path: Path, text: str, workload: str | None = None) -> dict[str, Target]:
    file = tmp_path / "targets.yaml"
    file.write_text(text)
    return {target.name: target for target in targets_for("cpu", file, workload)}


def test_the_defaults_are_those_of_the_guide() -> None:
    found = {t.name: (t.metric, t.operator, t.threshold) for t in targets_for("cpu")}
    assert found == DEFAULTS


def test_every_default_says_its_value_and_what_to_try() -> None:
    for target in targets_for("cpu"):
        assert target.says
        assert target.advice


def test_a_backend_that_there_is_not_is_said() -> None:
    with pytest.raises(UsageError, match="no backend is called 'abacus'; there are cpu, cuda, mps"):
        targets_for("abacus")


@pytest.mark.parametrize("text", ["", "targets:\n", "# nothing\n", "targets: {}\nworkloads: {}\n"])
def test_an_empty_file_changes_nothing(tmp_path: Path, text: str) -> None:
    assert list(load(tmp_path, text)) == list(DEFAULTS)


def test_a_target_is_changed_by_its_name_or_by_its_metric(tmp_path: Path) -> None:
    found = load(
        tmp_path, 'targets:\n  l1-miss-rate: {below: 8}\n  ipc: "> 1.5"\n  cache.l3.miss_rate: "<= 30 %"\n'
    )
    assert found["l1-miss-rate"].threshold == 8
    assert found["l1-miss-rate"].advice  # the rest of it stays
    assert (found["ipc"].operator, found["ipc"].threshold) == (">", 1.5)
    assert (found["l3-miss-rate"].operator, found["l3-miss-rate"].threshold) == ("<=", 30)
    assert len(found) == len(DEFAULTS)


def test_a_target_is_added_and_one_is_turned_off(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "targets:\n  fast: {metric: time.median, below: 0.005}\n  memory.rss_peak: {below: 1.0e+9}\n"
        "  ipc: off\n  no-leak: false\n",
    )
    assert set(found) == set(DEFAULTS) - {"ipc", "no-leak"} | {"fast", "memory.rss_peak"}
    assert (found["fast"].metric, found["fast"].unit) == ("time.median", "s")


def test_a_workloads_own_section_wins_and_that_of_another_does_nothing(tmp_path: Path) -> None:
    text = 'targets: {ipc: "> 1"}\nworkloads:\n  mine: {ipc: "> 3"}\n  other: {ipc: off}\n'
    assert load(tmp_path, text, "mine")["ipc"].threshold == 3
    assert load(tmp_path, text)["ipc"].threshold == 1
    assert "ipc" not in load(tmp_path, text, "other")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("targets:\n  x: {metric: cache.l1.mis_rate, below: 5}", "line 2: .*did you mean cache.l1.miss_rate"),
        ("targets:\n  cache.l1.mis_rate: {below: 5}", r"line 2: .*did you mean cache\.l1\.miss_rate"),
        ("targets:\n  l1-mis-rate: {below: 5}", "line 2: .*did you mean l1-miss-rate"),
        ("targets:\n  qqqq: {below: 5}", "line 2: there is no target and no metric called 'qqqq'$"),
        ("targets:\n  qqqq: off", "line 2: there is no target 'qqqq' to turn off"),
        ("target:\n  ipc: {above: 5}", "line 2: the file has no key 'target'; did you mean targets"),
        ("targets:\n  ipc:\n    abov: 5", "line 3: .* has no key 'abov'; did you mean above"),
        ("targets:\n  ipc:\n    above: high", "line 3: above must be a number"),
        ("targets:\n  ipc:\n    above: .nan", "line 3: above must be a finite number"),
        ("targets:\n  ipc:\n    above: .inf", "finite"),
        ("targets:\n  ipc:\n    above: true", "above must be a number"),
        ("targets:\n  ipc:\n    above: 1" + "0" * 400, "above must be a finite number"),
        ("targets:\n  ipc: {above: 1, below: 3}", "two thresholds"),
        ("targets:\n  ipc: [1]", "line 2: target 'ipc' must be a mapping"),
        ("targets:\n  ipc: '~ 5'", "'~ 5' is not a threshold"),
        ("targets:\n  ipc: '> -'", "'-' is not a number"),
        ("targets:\n  ipc: '> 5 %'", "ipc is in instructions/cycle, not in %"),
        ("targets:\n  ipc: {scopes: [run, gpu]}", "scopes is 'gpu', not run or region"),
        ("targets:\n  time.median: {scopes: [run]}", "needs a threshold"),
        ("targets:\n  ipc: {advice: [Sort]}", "has no key 'advice'"),
        ("- ipc", "the file must be a mapping"),
        ("just text", "the file must be a mapping"),
        ("targets: [ipc]", "a section of targets must be a mapping"),
        ("targets:\n  ipc: off\n  ipc: off", "line 3: 'ipc' stands here a second time"),
        ("targets:\n  ? [a]\n  : 1", "a key must be text"),
        ("targets: {ipc: {above: 5", "line [12]: no YAML"),
        ("targets:\n\tipc: 5", "line 2: no YAML"),
        ("a: 1\n---\nb: 2", "no YAML"),
        ("targets: !!python/object/apply:os.system [echo]", "must be a mapping"),
        ("targets:\n  ipc: !!python/name:os.system x", "not a plain value"),
        ("a: &a [x]\nb: [*a, *a]", "line 2: aliases"),
        ("targets: " + "[" * 1_000_000, "nested too deeply|no YAML"),
        ("targets: " + "{a: " * 200_000, "nested too deeply|no YAML"),
        ("workloads:\n  other:\n    ipc: {abov: 1}", "line 3: .*did you mean above"),
        ("\x00", "no YAML"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        load(tmp_path, text)
    assert str(tmp_path / "targets.yaml") in caught.value.message
    assert caught.value.exit_code == 2


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "huge.yaml").write_text("#" * (2 << 20))
    for name, says in (
        ("absent.yaml", "No such file"),
        ("binary.yaml", "not UTF-8"),
        ("huge.yaml", "larger than"),
    ):
        with pytest.raises(UsageError, match=says):
            targets_for("cpu", tmp_path / name)
    with pytest.raises(UsageError, match="Is a directory"):
        targets_for("cpu", tmp_path)


def test_the_targets_on_kernels_are_those_of_the_guide_and_have_their_advice() -> None:
    targets = {target.name: target for target in targets_for("cuda")}
    assert {name: (t.metric, t.operator, t.threshold) for name, t in targets.items() if t.always} == {
        "occupancy": ("occupancy.achieved", ">", 75),
        "memory-bandwidth": ("bandwidth.dram.share", ">", 80),
        "bank-conflicts": ("shared.bank_conflicts", "<=", 0),
        "warp-efficiency": ("warp.execution_efficiency", ">", 90),
        "coalescing": ("memory.coalescing", ">=", 80),
    }
    for target in targets.values():
        assert target.advice
        assert "kernel" not in target.scopes or target.scopes == ("kernel",)


def test_a_users_threshold_takes_the_place_of_the_guides(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text("targets:\n  occupancy: '> 50 %'\n  coalescing: off\n  spills: off\n", "utf-8")
    changed = {target.name: target for target in targets_for("cuda", file)}
    assert changed["occupancy"].threshold == 50
    default = next(target for target in targets_for("cuda") if target.name == "occupancy")
    assert len(default.checks) > 2
    assert changed["occupancy"].checks == default.checks  # and all that says when it applies stays
    assert "coalescing" not in changed

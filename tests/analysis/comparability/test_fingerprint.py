"""What two runs must have alike, and what is told of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from profkit.analysis.comparability import (
    all_fields,
    fingerprint_differences,
    fingerprint_id,
    fingerprint_of,
    shown_features,
)
from profkit.core.run_folder import run_from_json
from profkit.core.types import RunDocument, Workload
from profkit.reporting.json import run
from profkit.runtime.passes.shown_command import MASK
from tests import documents, gpu_documents


def told(document: RunDocument) -> dict[str, str]:
    return {f.name: f.value for f in fingerprint_of(document) if f.value is not None}


def between(a: RunDocument, b: RunDocument) -> dict[str, str]:
    """The fields in which the two differ, with their weight."""
    return {d.name: d.tier for d in fingerprint_differences(fingerprint_of(a), fingerprint_of(b))}


def test_a_run_does_not_differ_from_itself() -> None:
    assert between(documents.document(), documents.document()) == {}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"cpu": "AMD EPYC 9654"}, "machine.cpu"),
        ({"model": 17}, "machine.cpu"),
        ({"cores": 4}, "machine.cores"),
        ({"virtual": "docker in kvm"}, "machine.virtual"),
        ({"virtual": None}, "machine.virtual"),
        ({"architecture": "aarch64"}, "machine.architecture"),
    ],
)
def test_another_machine_is_refused_and_has_another_id(change: dict[str, object], name: str) -> None:
    base = documents.document()
    other = replace(base, machine=replace(documents.machine(), **change))  # type: ignore[arg-type]
    assert between(base, other) == {name: "must"}
    assert fingerprint_id(fingerprint_of(base)) != fingerprint_id(fingerprint_of(other))


def test_a_kernel_release_is_told_and_changes_no_id() -> None:
    base = documents.document()
    other = replace(base, machine=replace(documents.machine(), release="6.2.0"))
    assert between(base, other) == {"machine.kernel": "should"}
    assert fingerprint_id(fingerprint_of(base)) == fingerprint_id(fingerprint_of(other))


@pytest.mark.parametrize(
    ("change", "name", "tier"),
    [
        ({"name": "NVIDIA H100"}, "gpu.name", "must"),
        ({"multiprocessors": 114}, "gpu.multiprocessors", "must"),
        ({"power_limit": 650.0}, "gpu.power_limit", "should"),  # the other does not say
        ({"mig": True}, "gpu.mig", "should"),
    ],
)
def test_another_device(change: dict[str, object], name: str, tier: str) -> None:
    base = gpu_documents.run()
    other = replace(base, gpus=(replace(base.gpus[0], **change),))  # type: ignore[arg-type]
    assert between(base, other) == {name: tier}


def test_power_caps_that_both_tell_must_be_the_same() -> None:
    base = gpu_documents.run()
    low, high = (replace(base, gpus=(replace(base.gpus[0], power_limit=w),)) for w in (500.0, 700.0))
    assert between(low, high) == {"gpu.power_limit": "must"}


def test_a_driver_branch_is_refused_and_its_update_is_told() -> None:
    base = gpu_documents.run()
    branch, update = (replace(base, gpus=(replace(base.gpus[0], driver=d),)) for d in ("590.1", "580.200"))
    assert between(base, branch)["driver.major"] == "must"
    assert between(base, update) == {"driver.version": "should"}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (("python", "a.py", "-n", "8"), ("python", "a.py", "-n", "16"), {"workload.arguments": "must"}),
        (("python", "a.py"), ("python", "b.py"), {"workload.program": "should"}),
        (("python", "/w/v1/a.py", "-n", "8"), ("/usr/bin/python", "/w/v2/a.py", "-n", "8"), {}),
        (("python", "/w/v1/a.py", "/w/v1/in"), ("python", "/w/v2/a.py", "/w/v2/in"), {}),
        (("python", "/w/v1/a.py", "--i=/w/v1/in"), ("python", "/w/v2/a.py", "--i=/w/v2/in"), {}),
        (("python", "a.py", "/data/1"), ("python", "a.py", "/data/2"), {"workload.arguments": "must"}),
        (("python", "-m", "p.a", "1"), ("python", "-m", "p.a", "2"), {"workload.arguments": "must"}),
        (("python", "-c", "f(1)"), ("python", "-c", "f(2)"), {"workload.program": "should"}),
        (("python", "-X", "dev", "a.py", "1"), ("python", "a.py", "1"), {}),
        (("./v1/prog", "x"), ("./v2/prog", "x"), {}),
        (("./prog", "x y"), ("./prog", "x", "y"), {"workload.arguments": "must"}),
        (("python",), ("python",), {}),
    ],
)
def test_another_input_is_refused_and_another_version_is_not(
    before: tuple[str, ...], after: tuple[str, ...], found: dict[str, str]
) -> None:
    base = documents.document()
    first, second = (replace(base, workload=Workload(c, "a", "/home/x")) for c in (before, after))
    assert between(first, second) == found


def test_another_problem_size_is_refused() -> None:
    base = documents.document()
    other = replace(base, timings=(replace(documents.timing(), flops=1e9),))
    assert between(base, other) == {"workload.work": "must"}


def test_cold_and_warm_caches_are_not_compared() -> None:
    base = documents.document()
    runs = [replace(base, facts={"cache before each call": cache}) for cache in ("warm", "cold")]
    assert between(*runs) == {"mode.cache": "must"}


def test_a_tool_of_another_major_version_is_another_tool() -> None:
    base = documents.document()
    other = replace(base, tools={**base.tools, "valgrind": "4.0.0"})
    found = {d.name: d for d in fingerprint_differences(fingerprint_of(base), fingerprint_of(other))}
    assert found["tool.valgrind"].tier == "must"
    assert found["tool.versions"].tier == "should"


def test_a_document_that_tells_nothing_has_a_fingerprint() -> None:
    bare = RunDocument("x", "cpu", "running", Workload((), "x", ""), "")
    assert told(bare) == {"mode.backend": "cpu", "mode.state": "running"}


def test_nothing_in_it_names_a_folder_or_the_machine() -> None:
    base = documents.document()
    secret = replace(base, workload=Workload(("python", "/home/alice/a.py"), "a", "/home/alice"))
    assert not [value for value in told(secret).values() if "alice" in value]


def test_every_field_has_its_reason_and_a_weight() -> None:
    for field in all_fields().values():
        assert field.tier in ("must", "should")
        assert field.why
        assert field.title


# ---------------------------------------------------------------- the command of a copy that was given away


def of_command(*words: str) -> RunDocument:
    whole = documents.document()
    return replace(whole, workload=Workload(words, "w", "/work/ann"))


def printed(document: RunDocument) -> RunDocument:
    """What `--format json` gives of it, read back."""
    return run_from_json(json.loads(run(document)))


@pytest.mark.parametrize(
    ("one", "other", "tier"),
    [
        ((), (), None),
        (("--size", "8"), ("--size", "8"), None),
        (("--size", "8"), ("--size", "9"), "must"),
        (("--run-name", "x y"), ("--run-name", "x y"), "should"),  # nobody knows whether they are the same
        (("--run-name", "x y"), ("--run-name", "other words"), "should"),
        (("--run-name", "x y"), ("--run-name", "x y", "--size", "8"), "must"),
        (("--run-name", "x y", "--size=8"), ("--run-name", "x y", "--size=9"), "must"),
        (("--name", "x y", "/work/ann/d/in.csv"), ("--name", "x y", "/work/ann/d/in.csv"), "should"),
        (
            ("--name", "x y", "--data=/home/ann/in.csv"),
            ("--name", "x y", "--data=/home/ann/in.csv"),
            "should",
        ),
    ],
)
def test_a_printed_run_may_be_compared_and_what_is_masked_is_a_doubt(
    one: tuple[str, ...], other: tuple[str, ...], tier: str | None
) -> None:
    first, second = (of_command("python", "/work/ann/t.py", *words) for words in (one, other))
    expected = {"workload.arguments": tier} if tier else {}
    for before, after in (
        (first, printed(second)),
        (printed(first), second),
        (printed(first), printed(second)),
    ):
        assert between(before, after) == expected


def test_whole_commands_are_told_apart_by_what_nobody_is_shown() -> None:
    first, second = (of_command("python", "t.py", "--run-name", name) for name in ("blau haus", "rot haus"))
    assert between(first, second) == {"workload.arguments": "must"}
    (told,) = fingerprint_differences(fingerprint_of(first), fingerprint_of(second))
    assert (told.baseline, told.candidate) == (f"--run-name {MASK}", f"--run-name {MASK}")


def test_the_fields_as_others_see_them_have_no_argument_that_is_not_harmless_and_stay_so() -> None:
    whole = fingerprint_of(of_command("python", "-c", "print('blau haus')", "hunter2", "--size", "8"))
    shown = shown_features(whole)
    values = {feature.name: feature.value for feature in shown}
    assert values["workload.program"] == f"python -c {MASK}"
    assert values["workload.arguments"] == f"{MASK} --size 8"
    assert shown_features(shown) == shown
    assert [f for f in shown if not f.name.startswith("workload.")] == [
        f for f in whole if not f.name.startswith("workload.")
    ]
    broken = tuple(replace(f, value="it's") if f.name == "workload.arguments" else f for f in whole)
    assert {f.name: f.value for f in shown_features(broken)}["workload.arguments"] == MASK

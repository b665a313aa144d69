"""What two runs must have alike, and what is told of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.comparability import all_fields, fingerprint_differences, fingerprint_id, fingerprint_of
from profkit.core.types import RunDocument, Workload
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

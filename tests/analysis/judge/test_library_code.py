"""Targets at places in code that a user cannot change: the interpreter's, a library's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.library_code import owner_of
from profkit.analysis.judge.target_checks import TargetContext
from profkit.analysis.judge.verdicts import context_of, evaluate_targets
from profkit.core.types import RUN, Hotspot, Profile, RunDocument, Scope, VerdictWord
from profkit.profiling.summarize import targets_for
from profkit.reporting.facts import brief_reason, fact_text
from tests import documents
from tests.documents import reading

TARGETS = {target.name: target for target in targets_for("cpu")}
PYTHON = "/opt/python/lib/libpython3.11.so.1.0"
JSON = "/opt/python/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so"
LIBM, OWN = "/usr/lib/x86_64-linux-gnu/libm.so.6", "/srv/bonds/bin/ladder"


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        (PYTHON, "Python"),
        ("/usr/bin/python3.12", "Python"),
        (JSON, "Python"),
        (LIBM, "libm"),
        ("/venv/lib/python3.11/site-packages/scipy.libs/libscipy_openblas-6cd.so", "libscipy_openblas-6cd"),
        (OWN, None),
        ("/usr/bin/sqlite3", None),  # the program that runs
        ("/srv/app/kernels.cpython-311-x86_64-linux-gnu.so", None),
        ("ladder.cpp", None),
        (None, None),
    ],
)
def test_code_of_the_interpreter_and_of_installed_libraries_has_an_owner(
    path: str | None, owner: str | None
) -> None:
    assert owner_of(path) == owner


@pytest.mark.parametrize(
    ("target", "library", "word", "why"),
    [
        ("branch-miss-rate", PYTHON, "not-applicable", "the interpreter's own code"),
        ("branch-miss-rate", JSON, "not-applicable", "the interpreter's own code"),
        ("branch-miss-rate", LIBM, "not-applicable", "libm's own code"),
        ("branch-miss-rate", OWN, "fail", ""),
        ("simd-utilization", LIBM, "not-applicable", "libm's own code"),
        ("simd-utilization", OWN, "fail", ""),
        # which data they walk through is the program's choice
        ("l1-miss-rate", PYTHON, "fail", ""),
    ],
)
def test_what_a_place_of_library_code_misses_is_judged_only_if_the_program_can_change_it(
    target: str, library: str, word: VerdictWord, why: str
) -> None:
    place, metric = Scope("function", "_PyEval_EvalFrameDefault", library), TARGETS[target].metric
    value = 0.0 if target == "simd-utilization" else 14.2
    told = [reading(metric, value, scope=RUN), reading(metric, value, scope=place)]
    context = TargetContext(hottest=(place,), hottest_share=0.3)
    for verdict in evaluate_targets([TARGETS[target]], told, context):
        assert (verdict.verdict, brief_reason(verdict.reason), verdict.value) == (word, why, value)
        assert bool(verdict.advice) is (word == "fail")


def run_of(*places: tuple[str, float], counted: bool = True) -> RunDocument:
    """A run that mispredicts this often in functions of these files, each of which takes a tenth of the time."""
    spots = tuple(
        Hotspot(
            f"f{n}",
            1e6,
            1e6,
            1,
            None,
            None,
            library=path,
            counters={"Ir": 1e6, "Bcm": missed if counted else 0.0},
        )
        for n, (path, missed) in enumerate(places)
    )
    profile = Profile("callgrind", "instructions", 1e7, spots, kind="counted-functions")
    libraries = tuple(
        Hotspot(name := path.rpartition("/")[2], missed, missed, 1, None, None, library=name)
        for path, missed in places
    )
    sampled = Profile("perf", "s", sum(missed for _, missed in places), libraries, kind="libraries")
    return replace(documents.empty(), profiles=(profile, sampled))


@pytest.mark.parametrize(
    ("places", "counted", "word"),
    [
        (((PYTHON, 5e4), (JSON, 2e4), (OWN, 3e4)), True, "not-applicable"),
        (((PYTHON, 4e4), (OWN, 6e4)), True, "fail"),
        (((PYTHON, 0.6), (OWN, 0.4)), False, "not-applicable"),  # a processor counted: by the time there
        (((PYTHON, 0.4), (OWN, 0.6)), False, "fail"),
    ],
)
def test_a_run_is_not_blamed_for_misses_that_are_mostly_in_library_code(
    places: tuple[tuple[str, float], ...], counted: bool, word: VerdictWord
) -> None:
    context = context_of(run_of(*places, counted=counted))
    told = [reading("branch.miss_rate", 6.5, scope=RUN)]
    (verdict,) = evaluate_targets([TARGETS["branch-miss-rate"]], told, context)
    assert verdict.verdict == word
    assert ("in the interpreter's own code, which a program cannot change" in fact_text(verdict.reason)) is (
        word == "not-applicable"
    )
    told = [reading("branch.miss_rate", 3.0, scope=RUN)]
    assert evaluate_targets([TARGETS["branch-miss-rate"]], told, context)[0].verdict == "pass"

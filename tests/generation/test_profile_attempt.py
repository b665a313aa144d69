"""The profile of an attempt: which passes it does, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from profkit.core.types import RunDocument
from profkit.generation import judging as module
from profkit.profiling import drill_down
from profkit.profiling.profile import ProfileOptions
from tests.evaluation_documents import a_test, passed
from tests.kernels.evaluation.test_profiled_tests import RUN, evaluation


@pytest.mark.parametrize(
    ("device", "depth", "passes"),
    [
        ("cuda:0", "standard", ("trace", "counters", "explain")),
        ("cuda:0", "gate", None),
        ("cpu", "standard", None),
    ],
)
def test_of_a_kernel_on_a_gpu_only_the_passes_that_speak_of_it_are_done(
    device: str,
    depth: str,
    passes: tuple[str, ...] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[ProfileOptions] = []

    def profile(wanted: ProfileOptions, progress: object) -> tuple[RunDocument, Path]:
        asked.append(wanted)
        folder = wanted.output / "run"
        folder.mkdir(parents=True)
        return RUN, folder

    monkeypatch.setattr(drill_down, "profile_workload", profile)
    evaluation(tmp_path, passed(a_test("relu.default"), 2.0), device=device)
    assert module.main([str(tmp_path), depth]) == 0
    assert [(options.passes, options.depth) for options in asked] == [(passes, depth)]


def test_where_there_is_no_profile_its_reason_is_raised(tmp_path: Path) -> None:
    evaluation(tmp_path, passed(a_test("relu.default"), 2.0), device="cuda:7")
    with pytest.raises(module.NoProfile, match=r"GPU|cuda|CUDA|nvidia|NVIDIA"):
        module.profile_attempt(tmp_path, "gate", Event())
